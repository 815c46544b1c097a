#include "semel/core/internal/zeroed.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace semel::inline core_internal {

// calloc() knows which memory is fresh from the system, but it cannot align. So a large block
// begins before the address that is returned. The word before that address holds the start of the
// block.
void* allocate_zeroed(std::size_t bytes, std::size_t align) {
  if (bytes < kZeroedBySystem) {
    return std::memset(::operator new (bytes, std::align_val_t{align}), 0, bytes);
  }
  const std::size_t extra = align + sizeof(void*);
  if (bytes > SIZE_MAX - extra) throw std::bad_alloc();
  void* const block = std::calloc(bytes + extra, 1);
  if (block == nullptr) throw std::bad_alloc();
  auto* const from = static_cast<std::byte*>(block) + sizeof(void*);
  const std::size_t skip = -reinterpret_cast<std::uintptr_t>(from) & (align - 1);
  auto* const memory = reinterpret_cast<void**>(from + skip);
  memory[-1] = block;
  return memory;
}

void release_zeroed(void* memory, std::size_t bytes, std::size_t align) noexcept {
  if (bytes < kZeroedBySystem) {
    ::operator delete (memory, std::align_val_t{align});
  } else {
    std::free(static_cast<void**>(memory)[-1]);
  }
}

}  // namespace semel::inline core_internal
