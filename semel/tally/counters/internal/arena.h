// Arena: memory for very many small things that live and die with one object.
//
// Contract  allocate() returns memory that begins on a multiple of 16 bytes, or on a cache line if
//           the size is a multiple of one. release() keeps it for the next allocation of the same
//           size. All memory is freed with the arena, except allocations above kLargest.
// Layout    The arena grows by pieces of an eighth of its size or a little less, 16 KiB to 64 MiB,
//           in sizes that a general allocator does not round up. The huge pages inside make
//           additions to a million counters faster: 105 ns instead of 165. Allocations of one size
//           are cut in twos and fours that fill whole lines.
// Cost      An allocation takes a step or two. A new huge page takes longer, because the system
//           clears it: 4 ms in a virtual machine.
// Memory    There is no header for each allocation. At most an eighth is not yet in use, and sizes
//           are rounded up to 16. Allocations above kLargest come from operator new, and only
//           release() frees them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "semel/core/limits.h"

namespace semel::tally::internal {

// Returns the bytes that a general allocator takes for a request: a header, in steps of 16.
constexpr std::uint64_t allocated(std::uint64_t size) { return (size + 8 + 15) / 16 * 16; }

class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(std::size_t size);
  // Makes sure that this many bytes can be allocated without a large block (limits::kSmallBlock).
  void reserve(std::size_t bytes) {
    if (rest_size_ < bytes && bytes_ >= kSmall) take_piece(bytes, most_piece_);
  }
  // Limits further pieces to this many bytes each, but for the least size of a piece.
  void set_most_piece(std::uint64_t bytes) { most_piece_ = bytes; }
  // Returns how many bytes of the last piece allocate(size) uses up, if they are there. REQUIRES:
  // size is at most kLargest.
  std::size_t cut_for(std::size_t size) const;
  // Returns true if cuts of so many bytes in all take at most `most` further bytes of memory.
  bool fits(std::size_t cuts, std::uint64_t most) const {
    return cuts <= rest_size_ || least_piece(cuts) <= most;
  }
  // Makes sure that these cuts take no further memory, by a piece of at most `most` bytes if they
  // need one. REQUIRES: fits(cuts, most).
  void make_room(std::size_t cuts, std::uint64_t most) {
    if (cuts > rest_size_) take_piece(cuts, most);
  }
  // Returns how many bytes the next piece will have if it must have room for `bytes`.
  std::uint64_t next_piece(std::size_t bytes) const;
  std::size_t rest() const { return rest_size_; }
  // REQUIRES: `memory` came from allocate(size).
  void release(void* memory, std::size_t size) noexcept;
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t used_bytes() const { return used_; }  // allocated, and not released

  template <class T, class... Arguments>
  T* make(Arguments&&... arguments) {
    return new (allocate(sizeof(T))) T(std::forward<Arguments>(arguments)...);
  }
  template <class T>
  void destroy(T* object) noexcept {
    object->~T();
    release(object, sizeof(T));
  }

 private:
  static constexpr std::size_t kStep = 16, kLine = 64, kLargest = 5120;
  // Up to this size, pieces are small.
  static constexpr std::uint64_t kSmall = 8 * limits::kSmallBlock;

  struct Unused {
    Unused* next;
  };

  static std::size_t rounded(std::size_t size) { return (size + kStep - 1) / kStep * kStep; }
  static std::uint64_t least_piece(std::size_t bytes);
  void take_piece(std::size_t least, std::uint64_t most);

  std::array<Unused*, kLargest / kStep + 1> unused_{};  // by size
  std::vector<void*> pieces_;
  std::byte* rest_ = nullptr;  // of the last piece, in whole lines
  std::size_t rest_size_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t most_piece_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace semel::tally::internal
