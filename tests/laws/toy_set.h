// ToySet: an observed-remove set of fingerprints in a few lines, correct or with a deliberate
// fault.
//
// It checks the laws themselves: the correct set obeys them, and each fault breaks one.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"
#include "tests/laws/history.h"

namespace semel {

enum class Fault : std::uint8_t {
  none,
  merge_revives,         // a removed entry that meets a live one comes back
  merge_drops_news,      // an entry is lost if it comes with a merge of two sites of others
  merge_is_silent,       // never says that it changed anything
  merge_favours_itself,  // keeps its own entries
  compare_forgets_removals,
  compare_is_total,        // orders by the number of dots
  add_reuses_a_dot,        // after a removal
  removal_takes_the_last,  // the greatest dot
  removal_without_delta,
  delta_without_fingerprint,  // right only where fingerprints are equal
  delta_skips_gaps,
  delta_join_revives,
  digest_of_the_path,
  digest_forgets_removals,
  bytes_of_the_path,
  decode_loses_the_last,
  refusal_leaves_a_trace,  // a dot is used up by an add for which there is no room
  contains_misses,         // a key with two entries
  // Only reused dots show these (fork_laws.h).
  forks_of_states_pass,
  forks_of_deltas_pass,
  forks_before_a_delta_pass,  // the preceding dot is not checked
  forks_join_in_deltas,
  fork_names_no_site,
};
inline constexpr std::size_t kFaults = 19;  // that the laws of one history find
inline constexpr std::size_t kForkFaults = 5;
inline Fault planted_fault = Fault::none;  // in everything that follows

// The states of dots: unknown, then an entry, then removed. Deltas are the same.
class ToyDots {
 public:
  static constexpr std::uint64_t kRemoved = 0;
  std::map<Dot, std::uint64_t> dots;  // fingerprints, or kRemoved
  struct Lived {
    std::uint64_t life, before;  // the dot's own, and that of the dot before it
    bool operator==(const Lived&) const = default;
  };
  std::map<Dot, Lived> lives;  // of the same dots
  std::uint64_t path = 0;      // its history, which only faults look at

  bool empty() const { return dots.empty(); }
  bool operator==(const ToyDots& other) const { return dots == other.dots && lives == other.lives; }

  // The site that has a dot with two lives.
  std::optional<SiteId> clash(const ToyDots& other, bool look_before) const {
    for (const auto& [dot, lived] : lives) {
      const auto there = other.lives.find(dot);
      if (there != other.lives.end() && there->second != lived) return dot.site;
      const auto next = other.lives.find({dot.site, dot.counter + 1});
      const auto before = other.lives.find({dot.site, dot.counter - 1});
      if (!look_before) continue;
      if (next != other.lives.end() && next->second.before != lived.life) return dot.site;
      if (before != other.lives.end() && before->second.life != lived.before) return dot.site;
    }
    return std::nullopt;
  }
  static Error forked(SiteId site) {
    return {Errc::forked, "toy set: forked",
            planted_fault == Fault::fork_names_no_site ? 99u : site};
  }

  void join(const ToyDots& other, bool revive) {
    path = path * 31 + other.path + 1;
    for (const auto& [dot, fingerprint] : other.dots) {
      std::uint64_t& here = dots.try_emplace(dot, fingerprint).first->second;
      here = revive ? std::max(here, fingerprint) : std::min(here, fingerprint);
      lives.emplace(dot, other.lives.at(dot));
    }
  }
  void write(Sink out) const {
    Writer w(out);
    for (const auto& [dot, fingerprint] : dots) {
      w.u64(dot.packed());
      w.u64(fingerprint);
      w.u64(lives.at(dot).life);
      w.u64(lives.at(dot).before);
    }
  }
  static ToyDots read(ByteView in) {
    ToyDots read;
    for (Reader r(in); r.rest() > 0;) {
      const Dot dot = Dot::unpacked(r.u64());
      read.dots[dot] = r.u64();
      read.lives[dot] = {r.u64(), r.u64()};
    }
    return read;
  }
};

class ToyDelta : public ToyDots {
 public:
  Result<void> merge(const ToyDelta& other) {
    const std::optional<SiteId> site = clash(other, true);
    if (site && planted_fault != Fault::forks_join_in_deltas) return forked(*site);
    join(other, planted_fault == Fault::delta_join_revives);
    return {};
  }
  void encode(Sink out) const { write(out); }
  static Result<ToyDelta> decode(ByteView in) {
    ToyDelta delta;
    static_cast<ToyDots&>(delta) = read(in);
    return delta;
  }
};

class ToySet {
 public:
  using Delta = ToyDelta;
  static constexpr bool kRemoves = true;
  static constexpr std::uint64_t kRoom = 6;  // of adds: merges go beyond

  Result<Dot> add(Digest key, SiteLife by, Delta* delta) {
    const SiteId site = by.site;
    std::uint64_t last = 0;
    for (const auto& [dot, fingerprint] : state_.dots) {
      const bool counts =
          planted_fault != Fault::add_reuses_a_dot || fingerprint != ToyDots::kRemoved;
      if (dot.site == site && counts) last = dot.counter;
    }
    const Dot dot{site, last + 1};
    if (cardinality() >= kRoom) {
      if (planted_fault == Fault::refusal_leaves_a_trace) refuse(dot);
      return Error{Errc::full, "toy set: no room"};
    }
    set(dot, fingerprint_of(key));
    const auto before = state_.lives.find({site, last});
    const std::uint64_t life_before = before == state_.lives.end() ? 0 : before->second.life;
    state_.lives[dot] = delta->lives[dot] = {by.life, life_before};
    delta->dots[dot] = planted_fault == Fault::delta_without_fingerprint ? 1 : fingerprint_of(key);
    return dot;
  }

  bool contains(Digest key) const {
    const std::size_t entries = dots(key).size();
    return entries > 0 && !(planted_fault == Fault::contains_misses && entries == 2);
  }
  void contains(std::span<const Digest> keys, std::span<bool> found) const {
    std::transform(keys.begin(), keys.end(), found.begin(), [&](Digest k) { return contains(k); });
  }
  std::vector<Dot> dots(Digest key) const {
    std::vector<Dot> found;
    for (const auto& [dot, fingerprint] : state_.dots) {
      if (fingerprint == fingerprint_of(key)) found.push_back(dot);
    }
    return found;
  }

  std::optional<Dot> remove(Digest key, Delta* delta) {
    const std::vector<Dot> found = dots(key);
    if (found.empty()) return std::nullopt;
    const Dot dot = planted_fault == Fault::removal_takes_the_last ? found.back() : found.front();
    take_out(dot, delta);
    return dot;
  }
  Result<bool> remove(Digest key, Dot dot, Delta* delta) {
    const auto here = state_.dots.find(dot);
    if (here == state_.dots.end()) return Error{Errc::gap, "toy set: a dot from the future"};
    if (here->second == ToyDots::kRemoved) return false;
    if (here->second != fingerprint_of(key)) return Error{Errc::invalid, "toy set: another key"};
    take_out(dot, delta);
    return true;
  }

  Result<bool> merge(const ToySet& other) {
    const std::optional<SiteId> site = state_.clash(other.state_, true);
    if (site && planted_fault != Fault::forks_of_states_pass) return ToyDots::forked(*site);
    return join(other.state_, true);
  }
  Result<bool> merge(const Delta& delta) {
    if (const Result<void> admitted = admits(delta); !admitted) return admitted.error();
    return join(delta, false);
  }
  Result<void> admits(const Delta& delta) const {
    const std::optional<SiteId> site =
        state_.clash(delta, planted_fault != Fault::forks_before_a_delta_pass);
    if (site && planted_fault != Fault::forks_of_deltas_pass) return ToyDots::forked(*site);
    for (const auto& [dot, fingerprint] : delta.dots) {
      const Dot before{dot.site, dot.counter - 1};
      const bool known = state_.dots.contains(before) || delta.dots.contains(before);
      if (before.counter > 0 && !known && planted_fault != Fault::delta_skips_gaps) {
        return Error{Errc::gap, "toy set: a gap"};
      }
    }
    return {};
  }

  Result<std::partial_ordering> compare(const ToySet& other) const {
    if (const auto site = state_.clash(other.state_, true)) return ToyDots::forked(*site);
    if (planted_fault == Fault::compare_is_total) {
      return std::partial_ordering(state_.dots.size() <=> other.state_.dots.size());
    }
    const bool less = within(other), more = other.within(*this);
    if (less && more) return std::partial_ordering::equivalent;
    if (less) return std::partial_ordering::less;
    return more ? std::partial_ordering::greater : std::partial_ordering::unordered;
  }

  std::uint64_t cardinality() const {
    std::uint64_t live = 0;
    for (const auto& [dot, fingerprint] : state_.dots) live += fingerprint != ToyDots::kRemoved;
    return live;
  }

  Digest digest(const Hasher& hasher) const {
    Bytes bytes;
    for (const auto& [dot, fingerprint] : state_.dots) {
      if (planted_fault == Fault::digest_forgets_removals && fingerprint == ToyDots::kRemoved)
        continue;
      Writer(bytes).u64(dot.packed());
      Writer(bytes).u64(fingerprint);
      Writer(bytes).u64(state_.lives.at(dot).life);
    }
    if (planted_fault == Fault::digest_of_the_path) Writer(bytes).u64(state_.path);
    return hasher({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  void encode(Sink out) const {
    state_.write(out);
    if (planted_fault == Fault::bytes_of_the_path) {
      Writer(out).u64(0);
      Writer(out).u64(state_.path);
    }
  }
  static Result<ToySet> decode(ByteView in) {
    ToySet set;
    if (planted_fault == Fault::bytes_of_the_path) in = in.first(in.size() - 16);
    set.state_ = ToyDots::read(in);
    if (planted_fault == Fault::decode_loses_the_last && set.state_.dots.size() > 4) {
      set.state_.lives.erase(std::prev(set.state_.dots.end())->first);
      set.state_.dots.erase(std::prev(set.state_.dots.end()));
    }
    return set;
  }

  bool operator==(const ToySet& other) const { return state_ == other.state_; }

 private:
  static std::uint64_t fingerprint_of(Digest key) { return 1 + (key.hi >> 60); }

  void set(Dot dot, std::uint64_t fingerprint) {
    state_.dots[dot] = fingerprint;
    state_.path = state_.path * 31 + dot.counter;
  }
  void refuse(Dot dot) {
    state_.dots[dot] = ToyDots::kRemoved;
    state_.lives[dot] = {};
  }
  void take_out(Dot dot, Delta* delta) {
    set(dot, ToyDots::kRemoved);
    if (planted_fault == Fault::removal_without_delta) return;
    delta->dots[dot] = ToyDots::kRemoved;
    delta->lives[dot] = state_.lives.at(dot);
  }

  Result<bool> join(const ToyDots& other, bool is_state) {
    const ToyDots before = state_;
    ToyDots news = other;
    if (planted_fault == Fault::merge_favours_itself) {
      std::erase_if(news.dots,
                    [&](const auto& known) { return before.dots.contains(known.first); });
    }
    if (planted_fault == Fault::merge_drops_news && is_state) {
      std::erase_if(news.dots, [&](const auto& known) {
        return known.first.counter > 2 && !before.dots.contains(known.first);
      });
    }
    state_.join(news, planted_fault == Fault::merge_revives);
    return planted_fault != Fault::merge_is_silent && !(state_ == before);
  }

  bool within(const ToySet& other) const {
    return std::all_of(state_.dots.begin(), state_.dots.end(), [&](const auto& known) {
      const auto there = other.state_.dots.find(known.first);
      return there != other.state_.dots.end() &&
             (known.second != ToyDots::kRemoved || there->second == ToyDots::kRemoved ||
              planted_fault == Fault::compare_forgets_removals);
    });
  }

  ToyDots state_;
};

}  // namespace semel
