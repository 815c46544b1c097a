// Zeroed memory, for tables of any size.
//
// A large block is not written to when it is allocated: the system supplies zeroed pages as they
// are first used. So a table of gigabytes is made at once, and costs only the memory that is used.
//
// A host with its own allocator defines these functions itself (module/host/allocator.cc). They
// have their own source file so that the linker can take the host's versions instead.
#pragma once

#include <cstddef>

namespace semel::inline core_internal {

// Returns `bytes` bytes of zeros. REQUIRES: `align` is a power of two, and at least the alignment
// of a pointer.
void* allocate_zeroed(std::size_t bytes, std::size_t align);
// REQUIRES: the arguments of the call to allocate_zeroed() that returned `memory`.
void release_zeroed(void* memory, std::size_t bytes, std::size_t align) noexcept;

// Below this size, writing zeros is faster than asking the system for them.
inline constexpr std::size_t kZeroedBySystem = std::size_t{1} << 20;

}  // namespace semel::inline core_internal
