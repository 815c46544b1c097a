// CounterIndex: finds a counter by its name.
//
// Contract  A hash table of counters that may decline one. While complete() is false, a name that
//           is not found may still be in the tree.
// Layout    Extendible hashing: a directory of 2^depth pointers to segments, by the first bits of a
//           hash. A segment is 64 cache lines of eight slots; a slot is a pointer of 48 bits under
//           16 bits of the hash. A counter lies in its home line or, if that is full, in the first
//           of the next seven that is not. So a line with a free slot ends a search. Slots are
//           filled from the front of a line, and removing a counter closes the gap. In a full line
//           a removal leaves a mark instead, because other counters may have gone past the line.
//           The mark stays until another counter takes the slot or the segment is split.
// Cost      find: one cache miss for the line and one for the counter. A segment that is 3/4 full
//           is split, which takes two dozen microseconds. The directory doubles now and then, which
//           copies 8 bytes for every 300 counters or so.
// Memory    8 bytes a slot. 3/8 to 3/4 of the slots are in use, so 11 to 21 bytes a counter.
// Limits    Names that were chosen to collide fill segments that no split relieves. The directory
//           never has more than 16 times the slots that the counters need; beyond that they are
//           declined.
// Source    Fagin, Nievergelt, Pippenger and Strong, 'Extendible hashing', ACM TODS 4(3), 1979.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "semel/hash/digest.h"
#include "semel/tally/counters/internal/arena.h"
#include "semel/tally/counters/internal/counter.h"

namespace semel::tally::internal {

class CounterIndex {
 public:
  using Hash = std::uint64_t;

  explicit CounterIndex(Arena& arena);  // the arena outlives it
  ~CounterIndex() = default;            // the segments are freed with the arena
  CounterIndex(const CounterIndex&) = delete;
  CounterIndex& operator=(const CounterIndex&) = delete;

  static Hash hash_of(std::string_view name) { return digest(name, 0).lo; }

  // Begins to load the line that candidate() reads.
  [[gnu::always_inline]] void touch(Hash hash) const {
    __builtin_prefetch(&segment(hash).slots[home(hash)]);
  }
  // Returns the first counter that matches the hash, but its name may be another. nullptr: the name
  // is not in here.
  Counter* candidate(Hash hash) const;
  Counter* find(Hash hash, std::string_view name) const;
  bool complete() const { return declined_ == 0; }

  // Allocates memory for a larger directory, if that is a large block (limits::kSmallBlock).
  void reserve() {
    if (directory_.size() * kPlaceBytes < limits::kSmallBlock / 4) return;
    spare_.reserve(2 * directory_.size());
  }
  // Splits full segments, so that put() will hardly ever decline.
  void make_room(Hash hash);
  // Returns true if make_room() splits a segment: it then cuts kSegmentBytes off the arena, nearly
  // always.
  bool splits(Hash hash) const { return is_full(segment(hash), hash); }
  static const std::size_t kSegmentBytes;
  // Returns the most that the directory grows by when a segment is split, with reserve().
  std::uint64_t growth() const { return 5 * allocated(directory_.size() * kPlaceBytes); }
  // REQUIRES: no counter of that name is in here.
  void put(Hash hash, Counter* counter) noexcept;
  // REQUIRES: the counter was put.
  void erase(Hash hash, const Counter* counter) noexcept;

  // Returns the bytes of the directory. The segments belong to the arena.
  std::uint64_t bytes() const {
    return allocated(directory_.capacity() * kPlaceBytes) +
           (spare_.capacity() == 0 ? 0 : allocated(spare_.capacity() * kPlaceBytes));
  }

 private:
  using Slot = std::uint64_t;
  struct Segment;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what the directory holds
  static constexpr std::size_t kPlaceBytes = sizeof(Segment*);
  static constexpr std::size_t kLine = 8, kLines = 64, kProbes = 8;
  static constexpr std::size_t kSlots = kLine * kLines;
  static constexpr std::size_t kFull = kSlots / 4 * 3;
  static constexpr std::uint64_t kMostSpread = 16;
  static constexpr Slot kFree = 0, kGone = 1;

  struct alignas(kLine * sizeof(Slot)) Segment {
    std::array<Slot, kSlots> slots{};
    std::uint32_t depth = 0;  // the number of bits that all its hashes have in common
    std::uint32_t taken = 0;  // slots that are not free: counters and marks
  };

  // The top bits of a hash choose in the directory, the bottom bits are the tag and the line.
  static Slot tag(Hash hash) { return hash << 48 | Slot{1} << 48; }  // neither kFree nor kGone
  static std::size_t home(Hash hash) { return (hash >> 16) % kLines * kLine; }
  static Counter* counter_in(Slot slot) {
    return reinterpret_cast<Counter*>(slot &
                                      (~Slot{0} >> 16));  // NOLINT(performance-no-int-to-ptr)
  }
  std::size_t place(Hash hash) const { return depth_ == 0 ? 0 : hash >> (64 - depth_); }
  Segment& segment(Hash hash) const { return *directory_[place(hash)]; }

  template <class Found>
  static Slot* search(Segment& segment, Hash hash, Found found);
  static Slot* open_slot(Segment& segment, Hash hash);
  static bool is_full(Segment& segment, Hash hash) {
    return segment.taken >= kFull || open_slot(segment, hash) == nullptr;
  }
  static bool put_into(Segment& segment, Hash hash, Counter* counter) noexcept;
  bool may_double() const;
  bool split(Hash hash);
  void share_out(Segment& segment, Segment& sibling) noexcept;

  Arena* arena_;
  std::vector<Segment*> directory_;  // a segment of depth d is in 2^(depth_ - d) places, in a row
  std::vector<Segment*> spare_;      // empty: memory for the next directory
  std::uint32_t depth_ = 0;
  std::uint64_t size_ = 0;      // of all counters that were put
  std::uint64_t declined_ = 0;  // of these
};

}  // namespace semel::tally::internal
