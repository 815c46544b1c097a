// LaneTable: one forgetful filter of fixed size: a ring of lanes, each with its times.
//
//   columns of the array      0    1    2    3    4    5    6    7
//                           [ 9 ][10 ][11 ][   ][   ][ 6 ][ 7 ][ 8 ]      period of each lane
//                                   ^ newest                ^ oldest
//
// Contract  An id is written to the newest lane, and recognised until that lane is dropped. A call
//           drops, rotates or sweeps lanes only if its comment here says so.
//           A dropped lane is empty at once. Its column is cleared when it is used again. Each
//           insert clears a part, so that the sweep is done when a quarter of the new lane is full,
//           and each sweep_until() clears a part.
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/limits.h"
#include "semel/core/result.h"
#include "semel/hash/internal/sealed.h"
#include "semel/window/internal/forgetful_math.h"
#include "semel/window/internal/lane_array.h"

namespace semel::window_internal {

inline constexpr Format kForgetfulFormat{"SFF", 1, "forgetful filter"};

// A lane, and the period in which it took its ids.
struct Lane {
  static constexpr TimeMs kNever = std::numeric_limits<TimeMs>::max();

  TimeMs begin_ms = 0;  // of the period
  // No id of the lane was accepted after this time. That holds once the period has ended. Until
  // then this is its beginning, or the time of the last id if the period lasts too long.
  TimeMs end_ms = 0;
  TimeMs first_ms = kNever;  // no id of the lane was accepted before this time
  std::uint64_t ids = 0;
  std::uint64_t ones = 0;  // bits that are set

  bool operator==(const Lane&) const = default;
};

class LaneTable {
 public:
  // A lane has room for `lane_ids`. REQUIRES: shape.valid().
  LaneTable(const LaneShape& shape, std::uint64_t lane_ids, TimeMs begin_ms);

  bool recognises(Digest id) const { return array_.test(id, live_) != 0; }
  // Answers as if the `dropped` oldest lanes had been dropped.
  bool recognises(Digest id, std::size_t dropped) const {
    return array_.test(id, columns_from(dropped)) != 0;
  }
  // Sets found[i] for the ids that are recognised, and leaves the others.
  void recognises(std::span<const Digest> ids, std::span<bool> found,
                  std::size_t dropped = 0) const;
  void touch(Digest id) const { array_.touch(id); }
  void touch_for_test(Digest id) const { array_.touch_for_test(id); }

  void insert(Digest id, TimeMs at_ms);
  // Inserts the id unless it is recognised. Returns false if it is.
  bool test_and_insert(Digest id, TimeMs at_ms);

  // Returns true if the present lane has no room for another id.
  bool lane_full() const;
  // Returns true if the present lane is sure to have room for this many ids.
  bool lane_takes(std::uint64_t ids) const;

  // Ends the present lane with `end_ms` as the time of its last id, and begins another. Completes a
  // sweep first: its progress is not encoded, so nothing may depend on it.
  // REQUIRES: can_rotate().
  void rotate(TimeMs end_ms, TimeMs begin_ms);
  bool can_rotate() const { return lanes_.size() < shape().lanes; }

  // Sweeps as far as the sweep should be after this share of the period, but for no longer than a
  // fraction of a millisecond.
  void sweep_until(double share_of_period);
  bool sweeping() const { return array_.sweeping(); }
  void finish_sweep() { array_.sweep(array_.lines_left()); }

  bool can_drop() const { return lanes_.size() > 1; }
  void drop_oldest();  // REQUIRES: can_drop()

  const LaneShape& shape() const { return array_.shape(); }
  std::uint64_t lane_ids() const { return lane_ids_; }
  std::uint64_t capacity() const;  // ids in a window, when lanes rotate because they are full
  const std::vector<Lane>& lanes() const { return lanes_; }  // the oldest first
  const Lane& oldest() const { return lanes_.front(); }
  const Lane& present() const { return lanes_.back(); }  // takes the new ids

  // Returns a lower bound of the ids that are remembered. An id that was inserted twice counts
  // twice.
  std::uint64_t ids(std::size_t dropped = 0) const;
  // Estimates the ids of each lane, the oldest first. A merged lane holds more than it counts.
  std::vector<double> lane_loads() const;
  TimeMs first_ms() const;  // the least time of an id that is remembered, or kNever
  double rate() const;      // of false positives, now
  std::uint64_t bytes() const {
    return shape().bytes() + sizeof *this + limits::kLanes * sizeof(Lane);
  }

  // Records that the present lane has ids up to this time.
  void prolong(TimeMs end_ms) { lanes_.back().end_ms = end_ms; }

  // Returns Errc::mismatch unless shape and times of the lanes are the same.
  Result<void> check_mergeable(const LaneTable& other) const;
  void merge(const LaneTable& other);  // REQUIRES: check_mergeable(other)

  // These write and read a table as docs/formats/forgetful_v1.md says.
  void encode(Writer& w) const;
  static Result<LaneTable> decode(Reader& in, BloomLayout layout, std::uint32_t lanes,
                                  TimeMs now_ms);

 private:
  std::uint32_t column(std::size_t lane) const {
    return static_cast<std::uint32_t>((oldest_ + lane) % shape().lanes);
  }
  std::uint64_t columns_from(std::size_t lane) const;  // of this lane and of those after it
  void update_live() { live_ = columns_from(0); }
  std::uint64_t by_age(std::uint64_t columns) const;
  void count(TimeMs at_ms);
  void sweep_for_insert();
  void append_lane(TimeMs begin_ms);

  LaneArray array_;
  std::uint64_t lane_ids_;
  std::uint64_t ones_limit_;  // a lane with more ones than this holds more ids than its count says
  std::uint64_t sweep_step_;  // lines for an insert
  std::uint64_t sweep_owed_ = 0;
  std::uint32_t oldest_ = 0;  // column
  std::uint64_t live_ = 0;    // columns in use
  std::uint64_t dirty_ = 0;   // columns that were in use and are not cleared
  std::vector<Lane> lanes_;   // the oldest first
};

}  // namespace semel::window_internal
