// Sifter: takes every id once, in one step or in two, over a Window.
//
//   Sifter sifter = SEMEL_TRY(Sifter::make({{.window_ms = 600'000, .fpr = 1e-6}}, now_ms));
//   if (sifter.test_and_insert(id, now_ms) == ClaimAnswer::fresh) take(event);
//
// Contract  test_and_insert() takes a fresh id at once, so a crash between it and the work loses
//           the event. A claim gives the id to one owner for some time; a commit takes it. Until
//           then the id is `pending` for all others. Claims are few and kept exactly
//           (claim_table.h); only a commit enters the window, so a false positive never loses a
//           claim.
// Time      Every call first advances to its `now_ms`. A time before now() counts as now().
// Change    A call that changes nothing does not even advance time. changes() tells by the answer.
//           So a replica that gets only the changing calls, with their times, holds the same bytes.
//           It may begin with the bytes of any moment.
// Memory    max_bytes bounds the window and the claims: an eighth of it is for claims, kClaimBytes
//           each.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/sifter_v1.md.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "semel/core/api.h"
#include "semel/core/clock.h"
#include "semel/core/result.h"
#include "semel/core/sink.h"
#include "semel/hash/digest.h"
#include "semel/sift/claim_table.h"
#include "semel/window/window.h"

namespace semel {

class SEMEL_API Sifter {
 public:
  static constexpr std::uint64_t kClaimBytes = 128;
  // The value of `at_ms` for events that happen at the time of the call.
  static constexpr TimeMs kAtCall = std::numeric_limits<TimeMs>::max();
  // The answer to ids of a batch that were not judged, because memory ran out.
  static constexpr auto kUnjudged = static_cast<ClaimAnswer>(0xff);

  struct Goal : Window::Goal {
    // The time after its deadline in which a claim that nobody took over can still be committed.
    TimeMs keep_ms = 0;
    bool operator==(const Goal&) const = default;
  };

  // Errors: those of Window::make for its part of max_bytes, and Errc::invalid for a negative
  // keep_ms or a window without an end.
  static Result<Sifter> make(const Goal& goal, TimeMs now_ms);

  // REQUIRES for all ids: the digest was made by goal().hash.

  // Takes a fresh id. `at_ms` is when the event happened. An overdue claim on the id is lost if the
  // id is taken.
  ClaimAnswer test_and_insert(Digest id, TimeMs now_ms, TimeMs at_ms = kAtCall);
  // Does the same for many ids, in order. Returns true if anything changed. If memory runs out at
  // an id, the ids before it have their answers, and that id is kUnjudged. REQUIRES: the spans are
  // of equal size.
  bool test_and_insert(std::span<const Digest> ids, TimeMs now_ms, std::span<ClaimAnswer> answers);
  // Remembers the id from `at_ms` on, even if it is known. Changes something unless the answer is
  // pending.
  ClaimAnswer insert(Digest id, TimeMs now_ms, TimeMs at_ms = kAtCall);

  // Returns fresh, pending or seen.
  ClaimAnswer test(Digest id, TimeMs now_ms) const;
  void test(std::span<const Digest> ids, TimeMs now_ms, std::span<ClaimAnswer> answers) const;

  // Returns fresh if the claim is granted; otherwise pending, seen, or full if there is no room for
  // another claim.
  ClaimAnswer claim(Digest id, std::uint64_t owner, TimeMs until_ms, TimeMs now_ms);
  // Returns done, seen, lost or full.
  ClaimAnswer commit(Digest id, std::uint64_t owner, TimeMs now_ms);
  // Gives the id back. Returns done or lost.
  ClaimAnswer release(Digest id, std::uint64_t owner, TimeMs now_ms);

  // These do the same for many ids of one owner, in order. If memory runs out at an id, the ids
  // before it have their answers, and that id is kUnjudged. REQUIRES: the spans are of equal size.
  void claim(std::span<const Digest> ids, std::uint64_t owner, TimeMs until_ms, TimeMs now_ms,
             std::span<ClaimAnswer> answers);
  void commit(std::span<const Digest> ids, std::uint64_t owner, TimeMs now_ms,
              std::span<ClaimAnswer> answers);
  void release(std::span<const Digest> ids, std::uint64_t owner, TimeMs now_ms,
               std::span<ClaimAnswer> answers);

  void advance(TimeMs now_ms);

  const Goal& goal() const { return goal_; }
  // Returns how many ids are remembered. For filters it is an estimate.
  std::uint64_t ids(TimeMs now_ms) const { return window_.ids(now_ms); }
  std::uint64_t most_claims() const;

  // These hold as of the last change.
  TimeMs now() const { return window_.now(); }
  WindowPromise promise() const { return window_.promise(); }
  WindowCounts counts() const { return window_.counts(); }
  double false_positive_rate() const { return window_.false_positive_rate(); }
  std::uint64_t claims() const { return claims_.size(); }
  // Returns how many claims have expired since the sifter was made or decoded: after the deadline,
  // another owner or an insert took the id, or keep_ms passed.
  std::uint64_t claims_expired() const {
    return claims_.counts().taken_over + claims_.counts().dropped;
  }
  std::uint64_t bytes() const { return window_.bytes() + claims_.bytes(); }
  // Does what ClaimTable::renew() does.
  bool renew_claims(std::uint64_t section) { return claims_.renew(section); }

  // Appends the encoding. Equal states give equal bytes.
  void encode(Sink out) const;
  static Result<Sifter> decode(ByteView in);

  // Compares everything that decides what happens next.
  bool operator==(const Sifter& other) const = default;

 private:
  Sifter(const Goal& goal, Window window, ClaimTable claims)
      : goal_(goal), window_(std::move(window)), claims_(std::move(claims)) {}

  bool pending(Digest id, TimeMs now_ms) const {
    return claims_.look(id, now_ms) == ClaimAnswer::pending;
  }
  ClaimAnswer taken(Digest id, Verdict verdict);
  void insert_few(std::span<const Digest> ids, std::span<ClaimAnswer> answers);
  template <class Judge>
  void judge_each(std::span<const Digest> ids, std::span<ClaimAnswer> answers, Judge judge);

  Goal goal_;
  Window window_;      // of goal_, except for max_bytes, of which it has a share
  ClaimTable claims_;  // no commits: a committed id is in the window
};

}  // namespace semel
