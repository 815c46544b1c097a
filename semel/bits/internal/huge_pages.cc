#include "semel/bits/internal/huge_pages.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>

namespace semel::inline bits_internal {
namespace {

constinit std::atomic<bool> huge_pages_allowed = true;

}  // namespace

void allow_huge_pages(bool allowed) { huge_pages_allowed = allowed; }

// Leaves out the parts before the first whole page and after the last: they may belong to others.
void advise_huge_pages(void* memory, std::size_t bytes) {
  if (!huge_pages_allowed) return;
  const std::size_t skip = -reinterpret_cast<std::uintptr_t>(memory) & (kHugePageBytes - 1);
  if (bytes < skip + kHugePageBytes) return;
  (void)::madvise(static_cast<std::byte*>(memory) + skip,
                  (bytes - skip) / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
}

}  // namespace semel::inline bits_internal
