// AnySifter: a Sifter over a structure that is chosen at run time, whose calls bring their time along.
//
// Contract  As in sifter.h. Every call is as of its `now_ms`: as if advance(now_ms) came first. A time
//           before now() counts as now().
// Change    A call that changes nothing leaves no trace, not even of its time: the answers for which
//           changes() is false. So a replica that gets the changing calls alone, with their times, holds
//           the same bytes; and so does one that began with the bytes of any moment.
// Memory    Bytes for an id, of a million that come evenly in a window, as expected:
//
//             error       1e-3   1e-6
//             forgetful    3.1    6.0   lanes that rotate (forgetful_filter.h)
//             timers        18     35   a timer in every cell, for events that come late
//             exact         28     28   full digests, no error
//
//           max_bytes bounds the window and the claims: an eighth of it is for claims, kClaimBytes each.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/any_sifter_v1.md.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <variant>

#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/sift/sifter.h"
#include "semel/window/exact_window.h"
#include "semel/window/forgetful_filter.h"
#include "semel/window/sliding_filter.h"

namespace semel {

enum class SiftStructure : std::uint8_t { forgetful = 0, timers = 1, exact = 2 };

struct SiftGoal {
  SiftStructure structure = SiftStructure::forgetful;
  TimeMs window_ms;
  double fpr = 0;               // the bound of the error; exact: 0
  std::uint64_t ids = 1 << 16;  // expected in a window; more may come
  std::uint64_t max_bytes = kNoCap;
  WhenFull when_full = WhenFull::refuse;
  HashId hash = {};
  TimeMs keep_ms = 0;  // a claim that nobody took over can be committed so long after its deadline

  bool operator==(const SiftGoal&) const = default;
};

// Whether the call that was answered so changed anything: a refusal is counted.
constexpr bool changes(Sighting sighting) {
  return sighting != Sighting::seen && sighting != Sighting::pending;
}
constexpr bool changes(Commit commit) { return commit == Commit::done || commit == Commit::full; }

class AnySifter {
 public:
  static constexpr std::uint64_t kClaimBytes = 128;
  // As the time of an event: that of the call.
  static constexpr TimeMs kAtCall = std::numeric_limits<TimeMs>::max();

  // Errc::invalid for a window or ids of zero or less, an error rate that is none, or other than 0
  // for exact, or a negative keep_ms; Errc::limit where the window would be impossible, or larger
  // than its part of max_bytes.
  static Result<AnySifter> make(const SiftGoal& goal, TimeMs now_ms);

  // REQUIRES, of all that take an id: the digest was made by goal().hash.

  Sighting add(Digest id, TimeMs now_ms, TimeMs at_ms = kAtCall);
  // The same for many, in order; whether anything changed. If memory runs out at one of them, those
  // before it have their sightings, and that one is kUnjudged.
  // REQUIRES: the spans are of equal size.
  bool add(std::span<const Digest> ids, TimeMs now_ms, std::span<Sighting> sightings);
  // Remembers the id from `at_ms` on, known or not. `seen` changes something here, `pending` does not.
  Sighting insert(Digest id, TimeMs now_ms, TimeMs at_ms = kAtCall);

  Sighting test(Digest id, TimeMs now_ms) const;
  void test(std::span<const Digest> ids, TimeMs now_ms, std::span<Sighting> sightings) const;

  // `full` if there is no room for another claim.
  Sighting claim(Digest id, std::uint64_t owner, TimeMs until_ms, TimeMs now_ms);
  Commit commit(Digest id, std::uint64_t owner, TimeMs now_ms);
  // Whether it changed anything.
  bool release(Digest id, std::uint64_t owner, TimeMs now_ms);

  // Nothing happens but that time passes.
  void advance(TimeMs now_ms);

  const SiftGoal& goal() const { return goal_; }
  std::uint64_t cardinality(TimeMs now_ms) const;  // ids remembered: an estimate for filters
  std::uint64_t most_claims() const;

  // As of the last change.
  TimeMs now() const;
  Promise promise() const;
  WindowCounts counts() const;
  double false_positive_rate() const;
  std::uint64_t claims() const;
  std::uint64_t bytes() const;

  // Appends the encoding to `out`. Equal states give equal bytes.
  void encode(Sink out) const;
  // Reads one sifter that fills `in` exactly. `in` may come from an enemy.
  static Result<AnySifter> decode(ByteView in);

  // Whether both hold the same, and would go on in the same way.
  bool operator==(const AnySifter& other) const = default;

 private:
  using Any = std::variant<Sifter<ForgetfulFilter>, Sifter<SlidingFilter>, Sifter<ExactWindow>>;

  AnySifter(const SiftGoal& goal, Any sifter) : goal_(goal), sifter_(std::move(sifter)) {}

  SiftGoal goal_;
  Any sifter_;  // of the structure that goal_ names
};

}  // namespace semel
