#include "semel/sift/sifter.h"

#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/hash/internal/sealed.h"
#include "semel/window/internal/goal_codec.h"

namespace semel {
namespace {

constexpr Format kFormat{"SIF", 1, "sifter"};  // docs/formats/sifter_v1.md

constexpr std::uint64_t kClaimsShare = 8;
constexpr std::size_t kBatch = 256;

std::uint64_t claims_cap(std::uint64_t max_bytes) {
  return max_bytes == kNoCap ? kNoCap : max_bytes / kClaimsShare;
}

Window::Goal window_goal(const Sifter::Goal& goal) {
  Window::Goal window = goal;
  if (goal.max_bytes != kNoCap) window.max_bytes -= claims_cap(goal.max_bytes);
  return window;
}

Result<void> check(const Sifter::Goal& goal) {
  if (goal.keep_ms < 0) return Error{Errc::invalid, "claims are kept for zero or longer"};
  if (goal.window_ms == kForever) return Error{Errc::invalid, "the window of a sifter has an end"};
  return window_internal::check(goal);
}

bool any_changes(std::span<const ClaimAnswer> answers) {
  return std::any_of(answers.begin(), answers.end(), changes);
}

}  // namespace

Result<Sifter> Sifter::make(const Goal& goal, TimeMs now_ms) {
  SEMEL_TRY(check(goal));
  Window window = SEMEL_TRY(Window::make(window_goal(goal), now_ms));
  return Sifter(goal, std::move(window), ClaimTable(goal.keep_ms, now_ms));
}

// Returns the answer for the window's verdict on an id that is not pending. A claim on an id that
// the window has just taken is overdue, and ends here: its owner hears `seen`.
ClaimAnswer Sifter::taken(Digest id, Verdict verdict) {
  switch (verdict) {
    case Verdict::fresh:
      claims_.take_over(id);
      return ClaimAnswer::fresh;
    case Verdict::duplicate:
      return ClaimAnswer::seen;
    case Verdict::stale:
      return ClaimAnswer::stale;
    case Verdict::full:
      break;
  }
  return ClaimAnswer::full;
}

// Within one millisecond there is nothing to advance, and one look at the window is enough. touch()
// loads all lines of the id at once; a check would wait for the first before it loads the others.
ClaimAnswer Sifter::test_and_insert(Digest id, TimeMs now_ms, TimeMs at_ms) {
  window_.touch(id);
  if (now_ms > now()) {
    if (pending(id, now_ms)) return ClaimAnswer::pending;
    if (window_.test(id, now_ms) == Verdict::duplicate) return ClaimAnswer::seen;
    advance(now_ms);
  }
  if (pending(id, now())) return ClaimAnswer::pending;
  return taken(id, window_.test_and_insert(id, at_ms));
}

bool Sifter::test_and_insert(std::span<const Digest> ids, TimeMs now_ms,
                             std::span<ClaimAnswer> answers) {
  SEMEL_ASSERT(ids.size() == answers.size());
  if (now_ms > now()) {
    test(ids, now_ms, answers);
    if (!any_changes(answers)) return false;
    advance(now_ms);
  }
  std::fill(answers.begin(), answers.end(), kUnjudged);
  for (std::size_t first = 0; first < ids.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, ids.size() - first);
    insert_few(ids.subspan(first, count), answers.subspan(first, count));
  }
  return any_changes(answers);
}

// Pending ids stay pending throughout the batch; the window judges the others. REQUIRES: at most
// kBatch ids.
void Sifter::insert_few(std::span<const Digest> ids, std::span<ClaimAnswer> answers) {
  std::array<Digest, kBatch> open;
  std::array<std::size_t, kBatch> place;
  std::array<Verdict, kBatch> verdicts;
  std::size_t count = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (pending(ids[i], now())) {
      answers[i] = ClaimAnswer::pending;
      continue;
    }
    open[count] = ids[i];
    place[count++] = i;
  }
  constexpr auto kNoVerdict = static_cast<Verdict>(0xff);
  std::fill_n(verdicts.begin(), count, kNoVerdict);
  const auto answer = [&] {
    for (std::size_t n = 0; n < count && verdicts[n] != kNoVerdict; ++n) {
      answers[place[n]] = taken(open[n], verdicts[n]);
    }
  };
  try {
    window_.test_and_insert(std::span<const Digest>(open).first(count),
                            std::span(verdicts).first(count));
  } catch (const std::bad_alloc&) {
    answer();
    throw;
  }
  answer();
}

ClaimAnswer Sifter::insert(Digest id, TimeMs now_ms, TimeMs at_ms) {
  if (pending(id, now_ms)) return ClaimAnswer::pending;
  advance(now_ms);
  const Verdict verdict = window_.insert(id, at_ms);
  if (verdict == Verdict::duplicate)
    claims_.take_over(id);  // a false positive that began after the claim
  return taken(id, verdict);
}

ClaimAnswer Sifter::test(Digest id, TimeMs now_ms) const {
  window_.touch(id);
  if (pending(id, now_ms)) return ClaimAnswer::pending;
  return window_.test(id, now_ms) == Verdict::duplicate ? ClaimAnswer::seen : ClaimAnswer::fresh;
}

void Sifter::test(std::span<const Digest> ids, TimeMs now_ms,
                  std::span<ClaimAnswer> answers) const {
  SEMEL_ASSERT(ids.size() == answers.size());
  std::array<Verdict, kBatch> verdicts;
  for (std::size_t first = 0; first < ids.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, ids.size() - first);
    window_.test(ids.subspan(first, count), now_ms, std::span(verdicts).first(count));
    for (std::size_t n = 0; n < count; ++n) {
      const bool seen = verdicts[n] == Verdict::duplicate;
      answers[first + n] = pending(ids[first + n], now_ms) ? ClaimAnswer::pending
                           : seen                          ? ClaimAnswer::seen
                                                           : ClaimAnswer::fresh;
    }
  }
}

ClaimAnswer Sifter::claim(Digest id, std::uint64_t owner, TimeMs until_ms, TimeMs now_ms) {
  if (claims_.owner(id, now_ms) != owner) {
    const ClaimAnswer answer = test(id, now_ms);
    if (answer != ClaimAnswer::fresh) return answer;
  }
  advance(now_ms);
  if (!claims_.owner(id) && claims_.size() >= most_claims()) return ClaimAnswer::full;
  const ClaimAnswer answer = claims_.claim(id, owner, until_ms);
  SEMEL_ASSERT(answer == ClaimAnswer::fresh);
  return answer;
}

// The id is inserted without a test. A test may have a false positive, which comes from other ids
// and ends when they are forgotten.
ClaimAnswer Sifter::commit(Digest id, std::uint64_t owner, TimeMs now_ms) {
  const std::optional<std::uint64_t> holder = claims_.owner(id, now_ms);
  if (holder != owner) {
    const bool seen = !holder && test(id, now_ms) == ClaimAnswer::seen;
    return seen ? ClaimAnswer::seen : ClaimAnswer::lost;
  }
  advance(now_ms);
  const Verdict verdict = window_.insert(id);
  SEMEL_ASSERT(verdict != Verdict::stale);  // the time is now()
  if (verdict == Verdict::full) return ClaimAnswer::full;
  claims_.release(id, owner);
  return ClaimAnswer::done;
}

ClaimAnswer Sifter::release(Digest id, std::uint64_t owner, TimeMs now_ms) {
  if (claims_.owner(id, now_ms) != owner) return ClaimAnswer::lost;
  advance(now_ms);
  return claims_.release(id, owner);
}

template <class Judge>
void Sifter::judge_each(std::span<const Digest> ids, std::span<ClaimAnswer> answers, Judge judge) {
  SEMEL_ASSERT(ids.size() == answers.size());
  std::fill(answers.begin(), answers.end(), kUnjudged);
  for_each_ahead(
      ids.size(), [&](std::size_t i) { window_.touch(ids[i]); },
      [&](std::size_t i) { answers[i] = judge(ids[i]); });
}

void Sifter::claim(std::span<const Digest> ids, std::uint64_t owner, TimeMs until_ms, TimeMs now_ms,
                   std::span<ClaimAnswer> answers) {
  judge_each(ids, answers, [&](Digest id) { return claim(id, owner, until_ms, now_ms); });
}

void Sifter::commit(std::span<const Digest> ids, std::uint64_t owner, TimeMs now_ms,
                    std::span<ClaimAnswer> answers) {
  judge_each(ids, answers, [&](Digest id) { return commit(id, owner, now_ms); });
}

// The window has no part in a release, so there is nothing to prefetch.
void Sifter::release(std::span<const Digest> ids, std::uint64_t owner, TimeMs now_ms,
                     std::span<ClaimAnswer> answers) {
  SEMEL_ASSERT(ids.size() == answers.size());
  std::transform(ids.begin(), ids.end(), answers.begin(),
                 [&](Digest id) { return release(id, owner, now_ms); });
}

void Sifter::advance(TimeMs now_ms) {
  if (now_ms <= now()) return;
  window_.advance(now_ms);
  claims_.advance(now_ms);
}

std::uint64_t Sifter::most_claims() const {
  return goal_.max_bytes == kNoCap ? kNoCap : claims_cap(goal_.max_bytes) / kClaimBytes;
}

void Sifter::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    w.u64(goal_.max_bytes);
    w.u64(encoded_size(claims_));
    claims_.encode(w.sink());
    window_.encode(w.sink());
  });
}

Result<Sifter> Sifter::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const std::uint64_t max_bytes = r.u64();
  const std::uint64_t size = r.u64();
  if (!r.ok() || size > r.rest()) return corrupt(kFormat, "size of the claims");
  ClaimTable claims = SEMEL_TRY(decoded_part(ClaimTable::decode(r.view(size))));
  Window window = SEMEL_TRY(decoded_part(Window::decode(r.view(r.rest()))));
  if (claims.commits() != 0) return corrupt(kFormat, "a commit among the claims");
  if (claims.now() != window.now()) return corrupt(kFormat, "two times");

  Goal goal{window.goal(), claims.keep_ms()};
  goal.max_bytes = max_bytes;
  if (!check(goal) || window_goal(goal) != window.goal()) return corrupt(kFormat, "goal");
  Sifter sifter(goal, std::move(window), std::move(claims));
  if (sifter.claims() > sifter.most_claims()) return corrupt(kFormat, "number of claims");
  return sifter;
}

}  // namespace semel
