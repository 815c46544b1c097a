// SlicedFilter: one filter, or window, made of slices that live elsewhere, as one producer sees it.
//
// Contract  test, set and test_and_set of SliceRun (semel/slices/internal/slice_run.h), in one call each.
// Slices    are not owned, and may be shared: by the SlicedFilters of several producers, if they
//           have the same placement, say Producers::many (or have no ids in common), and the slices
//           bear several callers (semel/slices/internal/thread_slice.h).
// Failures  A slice whose call fails is `failed` from then on, until the caller says otherwise.
// Cost      A call is as many rounds as SliceRun says, each as long as its slowest slice.
// Threads   A call needs the object to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "semel/slices/internal/slice_run.h"
#include "semel/slices/placement.h"
#include "semel/slices/slice.h"
#include "semel/window/window.h"

namespace semel {

// What was asked of one slice.
struct SliceLoad {
  std::uint64_t messages = 0;
  std::uint64_t lookups = 0;  // keys of test and test_and_set
  std::uint64_t sets = 0;     // keys of set
  std::uint64_t claims = 0;   // ids of claim, commit, release and forget
  bool operator==(const SliceLoad&) const = default;
};

struct LoadReport {
  std::vector<SliceLoad> slices;

  SliceLoad total() const;
  // Of the lookups x: (sum x)^2 / (S * sum x^2), which is 1 if all slices have the same, and 1/S if
  // one has all (Jain, Chiu and Hawe, 1984). 1 if there are none.
  double fairness() const;
  // The share of all lookups that the busiest slice has; 1/S at best. 0 if there are none.
  double maximum_share() const;
};

class SlicedFilter {
 public:
  struct Options {
    SliceRules rules = {};
    // With many producers. Runs take the owners from this number on: hand in a random one.
    std::uint64_t first_owner = 0;
    // With many producers. Called while all that is left is held by others: waits a little, and
    // says what time it is, without which the claim of a producer that crashed would never be over.
    std::function<TimeMs()> pause = {};
  };

  // Errc::invalid unless there is a slice for each of the placement's, rules.needed is at most its
  // spread, rules.claim_ms is not negative, and with Producers::many there is a pause.
  static Result<SlicedFilter> make(const Placement& placement, std::vector<Slice*> slices,
                                   Options options);

  // REQUIRES, of all: spans of equal size; without `at_ms` all happened at now_ms.
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts, TimeMs now_ms);
  void set(std::span<const Digest> ids, std::span<const TimeMs> at_ms, std::span<Verdict> verdicts,
           TimeMs now_ms);
  void test_and_set(std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                    std::span<Verdict> verdicts, TimeMs now_ms);

  std::span<const SliceState> states() const { return states_; }
  // REQUIRES: slice < placement().slices().
  void set_state(std::size_t slice, SliceState state);

  // That a new id is taken for a duplicate, now: the mean over where it may be placed.
  double false_positive_rate() const;
  std::uint64_t bytes() const;  // of all slices

  const Placement& placement() const { return placement_; }
  const LoadReport& load() const { return load_; }

 private:
  SlicedFilter(const Placement& placement, std::vector<Slice*> slices, Options options);

  void run(SliceJob job, std::span<Verdict> verdicts);
  void count(const SliceMessage& message);

  Placement placement_;
  std::vector<Slice*> slices_;
  Options options_;
  std::vector<SliceState> states_;
  LoadReport load_;
  std::uint64_t runs_ = 0;
};

}  // namespace semel
