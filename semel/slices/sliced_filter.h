// SlicedFilter: one filter or window, made of slices that live elsewhere, as one producer sees it.
//
// Contract  An id is a duplicate if all of its slices know it.
//             test          returns duplicate or fresh
//             set           remembers ids, or renews them, in all of their slices. Returns what
//                           Window::insert does.
//             test_and_set  returns what test does, and sets the ids that are fresh. An id that
//                           comes twice in a call is a duplicate the second time.
//           An id that a slice refuses (full, stale) gets that verdict. Other slices may have taken
//           it. There it adds to the false positives, and it can be handed in again.
// Slices    The filter does not own its slices. SlicedFilters of several producers may share them
//           if they have the same placement, they say Producers::many (or have no ids in common),
//           and the slices allow several callers (semel/slices/thread_slice.h).
// Producers one: no id is handled by two producers at once. If it were, both might be told that it
//           is fresh. many: producers take turns at an id, by claims. At most one is told 'fresh'
//           within the window, even if producers crash, and exactly one if none crashes. A producer
//           that crashes delays the others for `claim_ms`. All producers must agree which slices
//           have failed.
// Failures  A slice whose call fails is `failed` from then on, until the caller says otherwise. It
//           is not asked. One live slice that does not know the id proves that it is new. If all
//           that were asked know it, SliceRules::needed decides. A failed slice misses ids. So when
//           it comes back, the caller makes it `returning` for a window: it is set, but not asked.
// Cost      Each round takes as long as its slowest slice. test and set take one round. With
//           Probing::pipelined, test takes up to k1 rounds, where k1 is the spread. test_and_set
//           takes 1 round with a spread of 1, else 2, or up to 1 + k1 if pipelined. Many producers
//           take up to 3 more.
// Threads   A call needs the object to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "semel/core/api.h"
#include "semel/slices/placement.h"
#include "semel/slices/slice.h"
#include "semel/window/window.h"

namespace semel {

// parallel: asks all slices of an id at once. pipelined: asks one after the other, up to the first
// that does not know the id. That takes more rounds and fewer messages.
enum class Probing : std::uint8_t { parallel, pipelined };

struct SliceRules {
  Probing probing = Probing::parallel;
  Producers producers = Producers::one;
  // Decides about an id if slices have failed and all the others know it. It is a duplicate if at
  // least this many of its hash functions were asked, and fresh otherwise. At most the spread.
  std::uint32_t needed = 0;
  TimeMs claim_ms = 10'000;  // how long a stalled producer's claim delays the others
};

// Counts the calls to one slice.
struct SliceLoad {
  std::uint64_t messages = 0;
  std::uint64_t lookups = 0;  // keys of test and test_and_set
  std::uint64_t sets = 0;     // keys of set
  std::uint64_t claims = 0;   // ids of claim, commit, release and forget
  bool operator==(const SliceLoad&) const = default;
};

struct SEMEL_API LoadReport {
  std::vector<SliceLoad> slices;

  SliceLoad total() const;
  // Returns (sum x)^2 / (S * sum x^2) for the lookups x of each slice (Jain, Chiu and Hawe, 1984):
  // 1 if all slices have equally many, 1/S if one has all, and 1 if there are none.
  double fairness() const;
  // Returns the share of all lookups that the busiest slice has: 1/S at best, 0 if there are none.
  double maximum_share() const;
};

class SEMEL_API SlicedFilter {
 public:
  struct Options {
    SliceRules rules = {};
    // With many producers, runs take owners from this number on. Hand in a random one.
    std::uint64_t first_owner = 0;
    // Waits a little, and returns the time. It is called with many producers, while others hold all
    // remaining ids. The time lets claims of crashed producers expire.
    std::function<TimeMs()> pause = {};
  };

  // Errors: Errc::invalid unless there is one slice for each slice of the placement, rules.needed
  // is at most its spread, rules.claim_ms is not negative, and Producers::many comes with a pause.
  static Result<SlicedFilter> make(const Placement& placement, std::vector<Slice*> slices,
                                   Options options);

  // If `at_ms` is empty, all events happened at now_ms. REQUIRES for all: the spans are of equal
  // size.
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts, TimeMs now_ms);
  void set(std::span<const Digest> ids, std::span<const TimeMs> at_ms, std::span<Verdict> verdicts,
           TimeMs now_ms);
  void test_and_set(std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                    std::span<Verdict> verdicts, TimeMs now_ms);

  std::span<const SliceState> states() const { return states_; }
  // REQUIRES: slice < placement().slices().
  void set_state(std::size_t slice, SliceState state);

  // Returns the present probability that a new id is taken for a duplicate: the mean over all
  // placements.
  double false_positive_rate() const;
  std::uint64_t bytes() const;  // of all slices

  const Placement& placement() const { return placement_; }
  const LoadReport& load() const { return load_; }

 private:
  SlicedFilter(const Placement& placement, std::vector<Slice*> slices, Options options);

  void run(SliceAction action, std::span<const Digest> ids, std::span<const TimeMs> at_ms,
           std::span<Verdict> verdicts, TimeMs now_ms);
  void count(const SliceMessage& message);

  Placement placement_;
  std::vector<Slice*> slices_;
  Options options_;
  std::vector<SliceState> states_;
  LoadReport load_;
  std::uint64_t runs_ = 0;
};

}  // namespace semel
