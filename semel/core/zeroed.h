// Memory of zeros, for tables of any size.
//
// What is large is not written to when it is allocated: the system hands out its zeros page by page, as
// they are first used. So a table of gigabytes is made at once, and costs what is used of it.
//
// A host with an allocator of its own defines these functions itself (module/host/allocator.cc). They
// have a file to themselves, so that the linker takes those of the host in their place.
#pragma once

#include <cstddef>

namespace semel {

// REQUIRES: `align` is a power of two, no less than that of a pointer.
void* allocate_zeroed(std::size_t bytes, std::size_t align);
// REQUIRES: what allocate_zeroed() was asked for.
void release_zeroed(void* memory, std::size_t bytes, std::size_t align) noexcept;

// Below this it is faster to write zeros than to ask the system for them.
inline constexpr std::size_t kZeroedBySystem = std::size_t{1} << 20;

}  // namespace semel
