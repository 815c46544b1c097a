// SharedSeries: the scalable replicated filters of the thesis: one chain of sub-filters for all
// sites.
//
// Contract  As semel/crdt/series.h, with this difference: every site adds to the same chain. So
//           the error stays below fpr() only while sites merge often. Sites that add to a link
//           before they merge fill it beyond its capacity. live_fpr() is the present error.
// Links     Link i = 1, 2, ... has room for first_keys * growth^(i-1) keys, and the share fpr / 2^i
//           of the error. A grow-only series adds to its last link, an observed one to the first
//           link with room.
// Merge     Link by link: a join. An update yields a delta, the changes of its links.
// Cost      Every link is searched, one after another.
// Threads   const members may run at once; any other call needs the object to itself.
// Source    Specifications 5 to 8 of 'Conflict-free replicated probabilistic filter'
//           (docs/papers.md).
#pragma once

#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/core/internal/error_rate.h"
#include "semel/core/result.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/internal/lives.h"
#include "semel/crdt/internal/observed_part.h"
#include "semel/crdt/internal/partial_order.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series.h"
#include "semel/hash/internal/sealed.h"

namespace semel::papers {

struct SharedGoal {
  double fpr;
  std::uint64_t first_keys;
  std::uint32_t growth;  // 1 or more
  HashId hash = {};

  Result<void> check() const {
    if (!is_error_rate(fpr)) return error_rate_refused();
    if (first_keys == 0 || growth == 0 || !hash.valid()) {
      return Error{Errc::invalid, "a shared series without keys, growth or hash"};
    }
    return {};
  }
  // REQUIRES: link > 0.
  double share(std::uint8_t link) const { return std::ldexp(fpr, -int{link}); }
  Result<std::uint64_t> capacity(std::uint8_t link) const {
    std::uint64_t keys = first_keys;
    for (std::uint8_t i = 1; i < link; ++i) {
      if (__builtin_mul_overflow(keys, std::uint64_t{growth}, &keys)) {
        return Error{Errc::limit, "a link for more than 2^64 keys"};
      }
    }
    return keys;
  }
  bool operator==(const SharedGoal&) const = default;
};

namespace shared_series {

inline constexpr Format kFormat{"PSS", 1, "shared series"};

// The links of a state or of a delta, by number.
template <class Part>
using Links = std::map<std::uint8_t, Part>;

template <class Part>
void encode(Sink out, const SharedGoal& goal, const Links<Part>& links) {
  seal(out, kFormat, [&](Writer& w) {
    w.f64(goal.fpr);
    w.u64(goal.first_keys);
    w.u32(goal.growth);
    write(w, goal.hash);
    for (const auto& [number, part] : links) {
      w.u8(number);
      w.u64(encoded_size(part));
      part.encode(w.sink());
    }
  });
}

template <class Part>
Result<std::pair<SharedGoal, Links<Part>>> decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  SharedGoal goal{};
  goal.fpr = r.f64();
  goal.first_keys = r.u64();
  goal.growth = r.u32();
  goal.hash = read_hash_id(r);
  if (!r.ok() || !goal.check()) return corrupt(kFormat, "goal");
  Links<Part> links;
  while (r.rest() > 0) {
    const std::uint8_t number = r.u8();
    Part part = SEMEL_TRY(Part::decode(r.view(r.u64())));
    if (!r.ok() || number == 0 || !links.emplace(number, std::move(part)).second) {
      return corrupt(kFormat, "links");
    }
  }
  return std::pair(goal, std::move(links));
}

}  // namespace shared_series

// The changes of a shared series.
template <class Filter>
class SharedDelta {
 public:
  using Part = typename Filter::Delta;

  explicit SharedDelta(const SharedGoal& goal) : goal_(goal) {}

  Result<void> merge(const SharedDelta& other) {
    if (goal_ != other.goal_) return Error{Errc::mismatch, "deltas of different goals"};
    shared_series::Links<Part> merged = parts_;
    for (const auto& [number, part] : other.parts_) {
      const auto [mine, fresh] = merged.try_emplace(number, part);
      if (!fresh) SEMEL_TRY(mine->second.merge(part));
    }
    parts_ = std::move(merged);
    return {};
  }

  const SharedGoal& goal() const { return goal_; }
  const shared_series::Links<Part>& parts() const { return parts_; }
  bool empty() const { return parts_.empty(); }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [number, part] : parts_) sum += part.bytes();
    return sum;
  }
  void encode(Sink out) const { shared_series::encode(out, goal_, parts_); }
  static Result<SharedDelta> decode(ByteView in) {
    auto [goal, parts] = SEMEL_TRY(shared_series::decode<Part>(in));
    SharedDelta delta(goal);
    delta.parts_ = std::move(parts);
    return delta;
  }
  bool operator==(const SharedDelta&) const = default;

 private:
  template <class>
  friend class SharedSeries;

  SharedGoal goal_;
  shared_series::Links<Part> parts_;  // none is empty
};

template <class Filter>
class SharedSeries {
 public:
  using Goal = SharedGoal;
  using Delta = SharedDelta<Filter>;
  static constexpr bool kRemoves = Filter::kRemoves;

  static Result<SharedSeries> make(const Goal& goal) {
    SEMEL_TRY(goal.check());
    SEMEL_TRY(shape_of(goal, 1));
    return SharedSeries(goal);
  }

  bool contains(Digest key) const {
    for (const auto& [number, filter] : links_) {
      if (filter.contains(key)) return true;
    }
    return false;
  }
  void contains(std::span<const Digest> keys, std::span<bool> found) const {
    for (std::size_t i = 0; i < keys.size(); ++i) found[i] = contains(keys[i]);
  }

  // Grow-only: adds the key. Returns true if it was certainly absent. Errc::limit if no further
  // link is possible.
  Result<bool> add(Digest key, SiteId /*site*/, Delta* delta = nullptr) requires(!kRemoves) {
    if (contains(key)) return false;
    if (!links_.empty() && room(links_.rbegin()->first) > 0) {
      const auto last = std::prev(links_.end());
      const Result<bool> added = change(delta, last->first, last->second, [&](auto* part) {
        return Result<bool>(last->second.add(key, part));
      });
      if (added) return *added;
    }
    return extend(delta,
                  [&](Filter& filter, auto* part) { return Result<bool>(filter.add(key, part)); });
  }
  // Adds many keys, up to the first for which there is no room. Returns the number of keys before
  // it.
  std::size_t add(std::span<const Digest> keys, SiteId site, std::span<bool> added,
                  Delta* delta = nullptr) requires(!kRemoves) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Result<bool> one = add(keys[i], site, delta);
      if (!one) return i;
      added[i] = *one;
    }
    return keys.size();
  }

  // Observed: adds the key once more, and returns its place. The chain of the place is 0.
  Result<LinkDot> add(Digest key, SiteLife site, Delta* delta = nullptr) requires(kRemoves) {
    for (auto& [number, filter] : links_) {
      if (room(number) == 0) continue;
      const Result<Dot> dot =
          change(delta, number, filter, [&](auto* part) { return filter.add(key, site, part); });
      if (dot) return LinkDot{0, number, *dot};
    }
    const Dot dot = SEMEL_TRY(
        extend(delta, [&](Filter& filter, auto* part) { return filter.add(key, site, part); }));
    return LinkDot{0, links_.rbegin()->first, dot};
  }
  std::size_t add(std::span<const Digest> keys, SiteLife site, std::span<LinkDot> dots,
                  Delta* delta = nullptr) requires(kRemoves) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Result<LinkDot> one = add(keys[i], site, delta);
      if (!one) return i;
      dots[i] = *one;
    }
    return keys.size();
  }

  // Removes the least dot in the latest link that may belong to this key.
  std::optional<LinkDot> remove(Digest key, Delta* delta = nullptr) requires(kRemoves) {
    for (auto link = links_.rbegin(); link != links_.rend(); ++link) {
      const std::optional<Dot> least = link->second.least_dot(key);
      if (!least) continue;
      const LinkDot at{0, link->first, *least};
      SEMEL_ASSERT(*remove(key, at, delta));
      return at;
    }
    return std::nullopt;
  }
  Result<bool> remove(Digest key, const LinkDot& at, Delta* delta = nullptr) requires(kRemoves) {
    const auto link = links_.find(at.link);
    if (link == links_.end()) return Error{Errc::gap, "an entry of a link not seen here"};
    return change(delta, at.link, link->second,
                  [&](auto* part) { return link->second.remove(key, at.dot, part); });
  }

  Result<bool> merge(const SharedSeries& other) {
    if (goal_ != other.goal_) return Error{Errc::mismatch, "series of different goals"};
    SEMEL_TRY(one_history(other));
    bool changed = false;
    for (const auto& [number, filter] : other.links_) {
      const auto [mine, fresh] = links_.try_emplace(number, filter);
      changed |= fresh || *mine->second.merge(filter);
    }
    return changed;
  }
  Result<bool> merge(const Delta& delta) {
    SEMEL_TRY(admits(delta));
    bool changed = false;
    for (const auto& [number, part] : delta.parts()) {
      const auto [mine, fresh] = links_.try_emplace(number, part.shape());
      changed |= *mine->second.merge(part) || fresh;
    }
    return changed;
  }
  Result<void> admits(const Delta& delta) const {
    if (goal_ != delta.goal()) return Error{Errc::mismatch, "a delta of another goal"};
    for (const auto& [number, part] : delta.parts()) {
      const auto mine = links_.find(number);
      SEMEL_TRY(mine == links_.end() ? Filter(part.shape()).admits(part)
                                     : mine->second.admits(part));
    }
    return {};
  }

  Result<std::partial_ordering> compare(const SharedSeries& other) const {
    if (goal_ != other.goal_) return Error{Errc::mismatch, "series of different goals"};
    SEMEL_TRY(one_history(other));
    return crdt_internal::order_of(at_most(other), other.at_most(*this));
  }

  const Goal& goal() const { return goal_; }
  double fpr() const { return goal_.fpr; }
  double live_fpr() const {
    double silent = 0;
    for (const auto& [number, filter] : links_) silent += std::log1p(-filter.live_fpr());
    return -std::expm1(silent);
  }
  double cardinality() const {
    double sum = 0;
    for (const auto& [number, filter] : links_) sum += static_cast<double>(filter.cardinality());
    return sum;
  }
  std::uint64_t capacity() const {
    std::uint64_t sum = 0;
    for (const auto& [number, filter] : links_) sum += *goal_.capacity(number);
    return sum;
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [number, filter] : links_) sum += filter.bytes();
    return sum;
  }
  const std::map<std::uint8_t, Filter>& links() const { return links_; }

  Digest digest(const Hasher& hasher) const {
    Digest sum = hasher.of_numbers(std::bit_cast<std::uint64_t>(goal_.fpr), goal_.first_keys,
                                   goal_.growth, goal_.hash.kind, goal_.hash.seed);
    for (const auto& [number, filter] : links_) {
      const Digest link = filter.digest(hasher);
      sum ^= hasher.of_numbers(number, link.lo, link.hi);
    }
    return sum;
  }

  void encode(Sink out) const { shared_series::encode(out, goal_, links_); }
  static Result<SharedSeries> decode(ByteView in) {
    auto [goal, links] = SEMEL_TRY(shared_series::decode<Filter>(in));
    SharedSeries series(goal);
    series.links_ = std::move(links);
    return series;
  }

  bool operator==(const SharedSeries&) const = default;

 private:
  explicit SharedSeries(const Goal& goal) : goal_(goal) {}

  static Result<typename Filter::Shape> shape_of(const Goal& goal, std::uint8_t link) {
    return Filter::shape_for(SEMEL_TRY(goal.capacity(link)), goal.share(link), goal.hash);
  }

  std::uint64_t room(std::uint8_t number) {
    const std::uint64_t keys = links_.at(number).keys(), capacity = *goal_.capacity(number);
    return keys < capacity ? capacity - keys : 0;
  }

  // Calls `update` with the part of the delta for this link, or with nullptr.
  template <class Update>
  auto change(Delta* delta, std::uint8_t number, const Filter& filter, Update update) {
    if (delta == nullptr) return update(static_cast<typename Filter::Delta*>(nullptr));
    const auto part = delta->parts_.try_emplace(number, filter.shape()).first;
    auto result = update(&part->second);
    if (part->second.empty()) delta->parts_.erase(part);
    return result;
  }

  // Opens the next link for a key.
  template <class Add>
  auto extend(Delta* delta, Add add)
      -> decltype(add(std::declval<Filter&>(), std::declval<typename Filter::Delta*>())) {
    const std::uint8_t last = links_.empty() ? 0 : links_.rbegin()->first;
    if (last == SeriesGoal::kMostLinks) return Error{Errc::limit, "at most 255 links"};
    const auto number = static_cast<std::uint8_t>(last + 1);
    Filter filter(SEMEL_TRY(shape_of(goal_, number)));
    auto added = change(delta, number, filter, [&](auto* part) { return add(filter, part); });
    SEMEL_ASSERT(added.has_value());  // an empty filter has room for a key
    links_.emplace(number, std::move(filter));
    return added;
  }

  Result<void> one_history(const SharedSeries& other) const {
    if constexpr (kRemoves) {
      for (const auto& [number, filter] : other.links_) {
        const auto here = links_.find(number);
        if (here == links_.end()) continue;
        if (const auto site = crdt_internal::ObservedParts::clash(here->second, filter)) {
          return crdt_internal::forked(*site);
        }
      }
    }
    return {};
  }

  bool at_most(const SharedSeries& other) const {
    for (const auto& [number, filter] : links_) {
      const auto there = other.links_.find(number);
      if (there == other.links_.end() || !std::is_lteq(*filter.compare(there->second))) {
        return false;
      }
    }
    return true;
  }

  Goal goal_;  // check() holds
  std::map<std::uint8_t, Filter> links_;
};

}  // namespace semel::papers
