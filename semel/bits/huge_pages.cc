#include "semel/bits/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace semel {

// What is before the first whole page and beyond the last may belong to somebody else.
void advise_huge_pages(void* memory, std::size_t bytes) {
  const std::size_t skip = -reinterpret_cast<std::uintptr_t>(memory) & (kHugePageBytes - 1);
  if (bytes < skip + kHugePageBytes) return;
  (void)::madvise(static_cast<std::byte*>(memory) + skip,
                  (bytes - skip) / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
}

}  // namespace semel
