// Huge pages: 2 MiB each. A random access to a table of many megabytes misses the TLB as well as the
// cache; huge pages take the first miss away.
#pragma once

#include <cstddef>

namespace semel {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Asks the system to back this memory with huge pages, as far as it has whole ones inside. Advice: it may
// be declined, and is harmless.
void advise_huge_pages(void* memory, std::size_t bytes);

}  // namespace semel
