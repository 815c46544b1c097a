// Huge pages: pages of 2 MiB.
//
// A random access to a table of many megabytes misses both the cache and the TLB. Huge pages avoid
// the TLB miss. They have a price: an id added to an empty table takes 2 MiB of memory for each
// line that it sets, and a process that forks copies 2 MiB for each line that is written.
#pragma once

#include <cstddef>

namespace semel::inline bits_internal {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Asks the system to back the whole huge pages inside this memory with huge pages. This is only
// advice: the system may decline it, and that does no harm.
void advise_huge_pages(void* memory, std::size_t bytes);

// Turns advise_huge_pages() on or off for the whole process. It is on by default. Memory that was
// advised earlier keeps its huge pages. Any thread may call this.
void allow_huge_pages(bool allowed);

}  // namespace semel::inline bits_internal
