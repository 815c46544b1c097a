// LaneArray: up to 64 Bloom filters of one shape, the lanes. Their bits lie side by side, so that
// one probe looks into all lanes.
//
//   word j holds bit j of every lane             check an id in all lanes: AND of its k words
//
//              lane  7 6 5 4 3 2 1 0                word 3   1 0 1 1 0 0 1 0
//   word 0           1 0 0 1 0 0 1 0                word 9   0 0 1 1 0 1 1 1
//   word 1           0 0 1 1 0 1 0 0                word 4   1 0 1 0 0 0 1 1
//   ...                                             AND      0 0 1 0 0 0 1 0   in lanes 1 and 5
//
// Contract  After set(x, lane), test(x) has the bit of that lane, until the lane is cleared.
//           A word has 8, 16, 32 or 64 bits: the smallest size that holds the lanes.
// Layouts   plain: the probes of an id lie anywhere; each is a cache miss. blocked: the probes lie
//           evenly in one to four cache lines, which are chosen independently; each line is a miss.
//           A line of 64 bytes holds 64 words of 8 bits, or 8 words of 64 bits. So with more lanes
//           a line has fewer positions, and the layout costs more memory
//           (docs/math/forgetful.md has the price of each).
// Clearing  A lane is one bit in every word, so clearing it takes a pass over the whole array.
//           begin_sweep() makes the lanes read as empty at once. sweep() does the work, a piece at
//           a time, in any rhythm. A write into a line that the pass has not reached clears that
//           line first, and one bit for each line remembers it.
// Cost      test, set: the misses above. The batch forms prefetch.
// Memory    positions * word / 8 bytes, rounded up to whole lines, and 1/512 of it for the sweep.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "semel/bits/internal/line_array.h"
#include "semel/core/assert.h"
#include "semel/filter/bloom_filter.h"
#include "semel/hash/digest.h"
#include "semel/window/internal/lane_kernel.h"

namespace semel::window_internal {

struct LaneShape {
  BloomLayout layout;
  std::uint32_t lanes;      // 2 to 64
  std::uint32_t probes;     // k; plain: 1 to 32; blocked: 1 to 8 for each line
  std::uint64_t positions;  // the bits of a lane; blocked: a multiple of a line for each line

  bool valid() const;
  std::uint32_t word_bits() const { return lanes <= 8 ? 8 : std::bit_ceil(lanes); }
  std::uint32_t line_positions() const { return 512 / word_bits(); }
  // Returns the number of lines of an id; 0 if plain.
  std::uint32_t lines() const { return static_cast<std::uint32_t>(layout); }
  std::uint64_t array_lines() const {
    return positions / line_positions() + (positions % line_positions() != 0);
  }
  std::uint64_t bytes() const;  // of an array
  bool operator==(const LaneShape&) const = default;
};

class LaneArray {
 public:
  // REQUIRES: shape.valid().
  explicit LaneArray(const LaneShape& shape);
  LaneArray(const LaneArray& other);
  LaneArray(LaneArray&&) = default;
  LaneArray& operator=(const LaneArray& other) { return *this = LaneArray(other); }
  LaneArray& operator=(LaneArray&&) = default;
  ~LaneArray() = default;

  const LaneShape& shape() const { return shape_; }

  // Returns those of `lanes` in which all probes of the id are set: bit i for lane i.
  std::uint64_t test(Digest id, std::uint64_t lanes) const { return view_.test(view_, id, lanes); }
  void test(std::span<const Digest> ids, std::uint64_t lanes,
            std::span<std::uint64_t> found) const {
    lane_kernel::test(view_, ids, lanes, found);
  }

  // Does the same as test() on any processor. The test that compares the kernels needs it.
  std::uint64_t test_portable(Digest id, std::uint64_t lanes) const {
    return lane_kernel::test_for(view_, false)(view_, id, lanes);
  }
  void test_portable(std::span<const Digest> ids, std::uint64_t lanes,
                     std::span<std::uint64_t> found) const {
    lane_kernel::test(view_, ids, lanes, found, false);
  }

  // Writes the id into a lane. Returns how many of its bits were clear. REQUIRES: lane is less than
  // shape().lanes.
  std::uint32_t set(Digest id, std::uint32_t lane) {
    return view_.set(view_, id, std::uint64_t{1} << lane);
  }
  std::uint32_t set_portable(Digest id, std::uint32_t lane) {  // as test_portable()
    return lane_kernel::set_for(view_, false)(view_, id, std::uint64_t{1} << lane);
  }

  // Calls test() and, if that finds no lane, set().
  lane_kernel::TestAndSet test_and_set(Digest id, std::uint64_t lanes, std::uint32_t lane) {
    return lane_kernel::test_and_set(view_, id, lanes, std::uint64_t{1} << lane);
  }

  void touch(Digest id) const { lane_kernel::touch(view_, id); }  // prefetches
  void touch_for_test(Digest id) const { lane_kernel::touch_for_test(view_, id); }

  // Makes `lanes` read as empty at once. REQUIRES: !sweeping(), and there is at least one lane.
  void begin_sweep(std::uint64_t lanes);
  bool sweeping() const { return view_.sweeping != 0; }
  std::uint64_t swept_lines() const { return view_.swept; }  // while sweeping()
  std::uint64_t lines_left() const { return sweeping() ? shape_.array_lines() - view_.swept : 0; }
  // Continues the pass for so many lines, or to its end.
  void sweep(std::uint64_t lines);

  // Counts the bits that are set in each lane. O(size). REQUIRES: room for shape().lanes.
  void count(std::span<std::uint64_t> ones) const;

  // These get and set word j: bit i is for lane i. REQUIRES: j < shape().positions; to set it,
  // !sweeping().
  std::uint64_t word(std::uint64_t j) const { return lane_kernel::load(view_, j); }
  void set_word(std::uint64_t j, std::uint64_t lanes);

 private:
  LaneShape shape_;  // valid(), and never changes
  LineArray<std::uint64_t> words_;
  LineArray<std::uint64_t> cleaned_;
  // Views the two arrays and the sweep. It is stored, and passed by reference. A view made for each
  // call would be read before its parts are written, and the processor would wait for every miss in
  // turn.
  lane_kernel::View view_;
};

}  // namespace semel::window_internal
