// Huge pages: 2 MiB each. A random access to a table of many megabytes misses the TLB as well as the
// cache; huge pages take the first miss away. In return, one id that is added to an empty table takes
// 2 MiB of memory for each line it sets, and a process that forks copies 2 MiB for each line written.
#pragma once

#include <cstddef>

namespace semel {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Asks the system to back this memory with huge pages, as far as it has whole ones inside. Advice: it may
// be declined, and is harmless.
void advise_huge_pages(void* memory, std::size_t bytes);

// Says for the whole process whether advise_huge_pages() does anything: it does by default. Memory that
// was advised before stays so. May be called from any thread.
void allow_huge_pages(bool allowed);

}  // namespace semel
