#include "semel/sift/any_sifter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/error_rate.h"
#include "semel/hash/seal.h"

namespace semel {
namespace {

// docs/formats/any_sifter_v1.md. All integers little-endian.
constexpr std::uint32_t kMagic = 0x31534153;  // "SAS1"
constexpr std::size_t kHeaderSize = 56, kTrailerSize = 8;

constexpr std::uint64_t kClaimsShare = 8;

std::uint64_t claims_cap(std::uint64_t max_bytes) {
  return max_bytes == kNoCap ? kNoCap : max_bytes / kClaimsShare;
}
std::uint64_t window_cap(std::uint64_t max_bytes) {
  return max_bytes == kNoCap ? kNoCap : max_bytes - max_bytes / kClaimsShare;
}

Result<void> check(const SiftGoal& goal) {
  if (goal.structure > SiftStructure::exact || goal.when_full > WhenFull::forget ||
      !goal.hash.valid()) {
    return Error{Errc::invalid, "no such structure, policy or hash"};
  }
  if (goal.window_ms <= 0) return Error{Errc::invalid, "a window must be longer than zero"};
  if (goal.ids == 0) return Error{Errc::invalid, "a window needs room for one id"};
  if (goal.keep_ms < 0) return Error{Errc::invalid, "claims are kept for zero or longer"};
  if (goal.structure == SiftStructure::exact) {
    // By its bits: a zero with a sign would be another encoding.
    if (std::bit_cast<std::uint64_t>(goal.fpr) == 0) return {};
    return Error{Errc::invalid, "an exact window has no error"};
  }
  if (!is_error_rate(goal.fpr)) return kErrorRateRefused;
  return {};
}

ForgetfulFilter::Goal forgetful_goal(const SiftGoal& goal) {
  return {.window_ms = goal.window_ms,
          .fpr = goal.fpr,
          .ids = goal.ids,
          .layout = BloomLayout::blocked4,  // a seventh less memory than with three lines, at 1e-6
          .max_bytes = window_cap(goal.max_bytes),
          .when_full = goal.when_full,
          .hash = goal.hash};
}

SlidingShape::Goal sliding_goal(const SiftGoal& goal) {
  return {.window_ms = goal.window_ms,
          .fpr = goal.fpr,
          .ids = goal.ids,
          .growth = SlidingGrowth::doubling,
          .max_bytes = window_cap(goal.max_bytes),
          .when_full = goal.when_full,
          .hash = goal.hash};
}

ExactWindow::Goal exact_goal(const SiftGoal& goal) {
  return {.window_ms = goal.window_ms,
          .ids = goal.ids,
          .max_bytes = window_cap(goal.max_bytes),
          .when_full = goal.when_full,
          .hash = goal.hash};
}

// Whether a window that was read is what the goal asks for. How it is laid out, it says itself: another
// version may choose otherwise.
bool fits(const ForgetfulFilter& window, const SiftGoal& goal) {
  ForgetfulFilter::Goal asked = forgetful_goal(goal);
  asked.past_lanes = window.goal().past_lanes;
  asked.layout = window.goal().layout;
  return window.goal() == asked;
}
bool fits(const SlidingFilter& window, const SiftGoal& goal) {
  const SlidingShape& shape = window.shape();
  return shape.window_ms == goal.window_ms && shape.fpr == goal.fpr && shape.equal_timers == 1 &&
         shape.max_bytes == window_cap(goal.max_bytes) && shape.when_full == goal.when_full &&
         shape.hash == goal.hash;
}
bool fits(const ExactWindow& window, const SiftGoal& goal) {
  ExactWindow::Goal asked = exact_goal(goal);
  asked.generations = window.goal().generations;
  return window.goal() == asked;
}

std::uint64_t remembered(const ForgetfulFilter& window, TimeMs now_ms) {
  return window.ids(now_ms);
}
std::uint64_t remembered(const SlidingFilter& window, TimeMs now_ms) { return window.ids(now_ms); }
std::uint64_t remembered(const ExactWindow& window, TimeMs now_ms) { return window.size(now_ms); }

// Loads all lines of an id at once. A check would wait for the first before it asks for the others; only
// a test of an id that is new does not need them.
template <class W>
void touch(const W& window, Digest id) {
  if constexpr (requires { window.touch(id); }) window.touch(id);
}

}  // namespace

Result<AnySifter> AnySifter::make(const SiftGoal& goal, TimeMs now_ms) {
  if (const Result<void> sound = check(goal); !sound) return sound.error();
  const auto over = [&](auto window) -> Result<AnySifter> {
    if (!window) return window.error();
    return AnySifter(goal, Sifter(*std::move(window), goal.keep_ms));
  };
  switch (goal.structure) {
    case SiftStructure::forgetful:
      return over(ForgetfulFilter::make(forgetful_goal(goal), now_ms));
    case SiftStructure::timers:
      return over(SlidingFilter::make(sliding_goal(goal), now_ms));
    case SiftStructure::exact:
      break;
  }
  return over(ExactWindow::make(exact_goal(goal), now_ms));
}

// Within one millisecond there is nothing to advance, and the one step of the sifter is enough.
Sighting AnySifter::add(Digest id, TimeMs now_ms, TimeMs at_ms) {
  return std::visit(
      [&](auto& sifter) {
        touch(sifter.window(), id);
        if (now_ms > sifter.now()) {
          const Sighting sighting = sifter.test(id, now_ms);
          if (sighting != Sighting::fresh) return sighting;
          sifter.advance(now_ms);
        }
        return sifter.add(id, at_ms);
      },
      sifter_);
}

bool AnySifter::add(std::span<const Digest> ids, TimeMs now_ms, std::span<Sighting> sightings) {
  const auto any_change = [&] {
    return std::any_of(sightings.begin(), sightings.end(), [](Sighting s) { return changes(s); });
  };
  return std::visit(
      [&](auto& sifter) {
        if (now_ms > sifter.now()) {
          sifter.test(ids, now_ms, sightings);
          if (!any_change()) return false;
          sifter.advance(now_ms);
        }
        std::fill(sightings.begin(), sightings.end(), kUnjudged);
        sifter.add(ids, sightings);
        return any_change();
      },
      sifter_);
}

Sighting AnySifter::insert(Digest id, TimeMs now_ms, TimeMs at_ms) {
  return std::visit(
      [&](auto& sifter) {
        if (sifter.claims().look(id, now_ms) == Claim::pending) return Sighting::pending;
        if (now_ms > sifter.now()) sifter.advance(now_ms);
        return sifter.insert(id, at_ms);
      },
      sifter_);
}

Sighting AnySifter::test(Digest id, TimeMs now_ms) const {
  return std::visit(
      [&](const auto& sifter) {
        touch(sifter.window(), id);
        return sifter.test(id, now_ms);
      },
      sifter_);
}

void AnySifter::test(std::span<const Digest> ids, TimeMs now_ms,
                     std::span<Sighting> sightings) const {
  std::visit([&](const auto& sifter) { sifter.test(ids, now_ms, sightings); }, sifter_);
}

Sighting AnySifter::claim(Digest id, std::uint64_t owner, TimeMs until_ms, TimeMs now_ms) {
  return std::visit(
      [&](auto& sifter) {
        if (sifter.claims().owner(id, now_ms) != owner) {
          const Sighting sighting = sifter.test(id, now_ms);
          if (sighting != Sighting::fresh) return sighting;
        }
        if (now_ms > sifter.now()) sifter.advance(now_ms);
        if (!sifter.claims().owner(id) && sifter.claims().size() >= most_claims()) {
          return Sighting::full;
        }
        return sifter.claim(id, owner, until_ms);
      },
      sifter_);
}

Commit AnySifter::commit(Digest id, std::uint64_t owner, TimeMs now_ms) {
  return std::visit(
      [&](auto& sifter) {
        const std::optional<std::uint64_t> holder = sifter.claims().owner(id, now_ms);
        if (holder != owner) {
          const bool taken = !holder && sifter.test(id, now_ms) == Sighting::seen;
          return taken ? Commit::seen : Commit::lost;
        }
        if (now_ms > sifter.now()) sifter.advance(now_ms);
        return sifter.commit(id, owner);
      },
      sifter_);
}

bool AnySifter::release(Digest id, std::uint64_t owner, TimeMs now_ms) {
  return std::visit(
      [&](auto& sifter) {
        if (sifter.claims().owner(id, now_ms) != owner) return false;
        if (now_ms > sifter.now()) sifter.advance(now_ms);
        return sifter.release(id, owner);
      },
      sifter_);
}

void AnySifter::advance(TimeMs now_ms) {
  std::visit(
      [&](auto& sifter) {
        if (now_ms > sifter.now()) sifter.advance(now_ms);
      },
      sifter_);
}

std::uint64_t AnySifter::cardinality(TimeMs now_ms) const {
  return std::visit([&](const auto& sifter) { return remembered(sifter.window(), now_ms); },
                    sifter_);
}

std::uint64_t AnySifter::most_claims() const {
  return goal_.max_bytes == kNoCap ? kNoCap : claims_cap(goal_.max_bytes) / kClaimBytes;
}

TimeMs AnySifter::now() const {
  return std::visit([](const auto& sifter) { return sifter.now(); }, sifter_);
}
Promise AnySifter::promise() const {
  return std::visit([](const auto& sifter) { return sifter.promise(); }, sifter_);
}
WindowCounts AnySifter::counts() const {
  return std::visit([](const auto& sifter) { return sifter.window().counts(); }, sifter_);
}
double AnySifter::false_positive_rate() const {
  return std::visit([](const auto& sifter) { return sifter.false_positive_rate(); }, sifter_);
}
std::uint64_t AnySifter::claims() const {
  return std::visit([](const auto& sifter) { return sifter.claims().size(); }, sifter_);
}
std::uint64_t AnySifter::bytes() const {
  return std::visit([](const auto& sifter) { return sifter.bytes(); }, sifter_);
}

void AnySifter::encode(Sink out) const {
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(goal_.structure));
  w.u8(static_cast<std::uint8_t>(goal_.when_full));
  w.u8(static_cast<std::uint8_t>(goal_.hash.kind));
  w.u8(0);
  w.u64(static_cast<std::uint64_t>(goal_.window_ms));
  w.u64(std::bit_cast<std::uint64_t>(goal_.fpr));
  w.u64(goal_.ids);
  w.u64(goal_.max_bytes);
  w.u64(goal_.hash.seed);
  w.u64(static_cast<std::uint64_t>(goal_.keep_ms));
  std::visit([&](const auto& sifter) { sifter.encode(out); }, sifter_);
  seal.close();
}

Result<AnySifter> AnySifter::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  SiftGoal goal{};
  goal.structure = static_cast<SiftStructure>(r.u8());
  goal.when_full = static_cast<WhenFull>(r.u8());
  goal.hash.kind = static_cast<HashKind>(r.u8());
  const std::uint8_t reserved = r.u8();
  goal.window_ms = static_cast<TimeMs>(r.u64());
  goal.fpr = std::bit_cast<double>(r.u64());
  goal.ids = r.u64();
  goal.max_bytes = r.u64();
  goal.hash.seed = r.u64();
  goal.keep_ms = static_cast<TimeMs>(r.u64());
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "sift: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "sift: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "sift: checksum"};
  }
  if (reserved != 0 || !check(goal)) return Error{Errc::corrupt, "sift: goal"};

  const auto over = [&](auto sifter) -> Result<AnySifter> {
    // Behind a sound checksum, a part that is of another kind is as corrupt as any other.
    if (!sifter) return Error{Errc::corrupt, sifter.error().what};
    if (!fits(sifter->window(), goal) || sifter->claims().keep_ms() != goal.keep_ms) {
      return Error{Errc::corrupt, "sift: two goals"};
    }
    AnySifter any(goal, *std::move(sifter));
    if (any.claims() > any.most_claims()) return Error{Errc::corrupt, "sift: number of claims"};
    return any;
  };
  const ByteView part = body.subspan(kHeaderSize);
  switch (goal.structure) {
    case SiftStructure::forgetful:
      return over(Sifter<ForgetfulFilter>::decode(part));
    case SiftStructure::timers:
      return over(Sifter<SlidingFilter>::decode(part));
    case SiftStructure::exact:
      break;
  }
  return over(Sifter<ExactWindow>::decode(part));
}

}  // namespace semel
