#include "semel/bits/lines.h"

#include <sys/mman.h>

namespace semel {

void advise_huge_pages(void* memory, std::size_t bytes) {
  // Whole pages only: what is before the first and beyond the last may belong to somebody else.
  auto* const begin = static_cast<std::byte*>(memory);
  const std::size_t skip = -reinterpret_cast<std::uintptr_t>(begin) & (kHugePageBytes - 1);
  if (skip >= bytes) return;
  (void)madvise(begin + skip, (bytes - skip) / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
}

}  // namespace semel
