#include "semel/bits/lines.h"

#include <sys/mman.h>

namespace semel {

void advise_huge_pages(void* memory, std::size_t bytes) {
  // Whole pages only: the tail beyond the last one may belong to somebody else.
  (void)madvise(memory, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
}

}  // namespace semel
