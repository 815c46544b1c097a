#include "semel/crdt/series.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/crdt/internal/link_map.h"
#include "semel/crdt/internal/observed_part.h"
#include "semel/crdt/internal/series_codec.h"
#include "semel/crdt/internal/series_links.h"
#include "semel/filter/internal/candidates.h"

namespace semel {

using crdt_internal::kSeriesDeltaFormat;
using crdt_internal::kSeriesFormat;
using crdt_internal::ObservedPart;
using filter_internal::Candidates;

namespace {

constexpr std::size_t kChunk = Candidates::kChunk;

template <class Filter>
bool is_initial(const Filter& filter) {
  if constexpr (Filter::kRemoves) {
    return filter.context().sites().empty();
  } else {
    return filter.cardinality() == 0;
  }
}

// Sets the number of keys in a filter that was decoded. Returns false if it cannot be.
template <class Filter>
bool set_keys(Filter& filter, std::uint64_t keys) {
  if constexpr (requires { filter.set_keys(keys); }) {
    return filter.set_keys(keys);
  } else {
    return filter.keys() == keys;
  }
}

// If several entries match, the one in the latest link most likely belongs to the key, because
// its fingerprints are the longest. Links with equal numbers have one shape in all chains, so keys
// that collide in one collide in all. Among these any choice will do if all sites make the same
// one.
bool comes_before(const LinkDot& a, const LinkDot& b) {
  return std::tuple(b.link, a.dot, a.chain) < std::tuple(a.link, b.dot, b.chain);
}

}  // namespace

template <class Filter>
SeriesDelta<Filter>::SeriesDelta(const SeriesGoal& goal) : goal_(goal) {
  SEMEL_ASSERT(goal.check());
}

template <class Filter>
Result<void> SeriesDelta<Filter>::merge(const SeriesDelta& other) {
  if (goal_ != other.goal_) return Error{Errc::mismatch, "deltas of series of different goals"};
  SEMEL_TRY(crdt_internal::within_sites(goal_, parts_, other.parts_));
  std::map<LinkId, Part> merged;
  for (const auto& [id, part] : other.parts_) {
    const auto mine = parts_.find(id);
    if (mine == parts_.end()) {
      merged.emplace(id, part);
    } else {
      SEMEL_TRY(merged.emplace(*mine).first->second.merge(part));
    }
  }
  parts_.swap(merged);
  parts_.merge(merged);  // adds those that only this one has
  return {};
}

template <class Filter>
std::uint64_t SeriesDelta<Filter>::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [id, part] : parts_) sum += sizeof id + part.bytes();
  return sum;
}

template <class Filter>
void SeriesDelta<Filter>::encode(Sink out) const {
  seal(out, kSeriesDeltaFormat, [&](Writer& w) {
    crdt_internal::write_header(w, {crdt_internal::kKindOf<Filter>, false, goal_}, parts_.size());
    for (const auto& [id, part] : parts_) {
      crdt_internal::write_link(w, id, {});
      part.encode(w.sink());
    }
  });
}

template <class Filter>
Result<SeriesDelta<Filter>> SeriesDelta<Filter>::decode(ByteView in) {
  const auto encoded = SEMEL_TRY(
      crdt_internal::read_series(in, kSeriesDeltaFormat, crdt_internal::kKindOf<Filter>, false));
  SeriesDelta delta(encoded.goal);
  delta.parts_ = SEMEL_TRY((crdt_internal::decode_parts<Filter, Part>(
      encoded, kSeriesDeltaFormat, [](const Part& part) { return part.empty(); })));
  return delta;
}

template <class Filter>
SeriesBase<Filter>::SeriesBase(const Goal& goal) : goal_(goal), body_(std::in_place) {}

template <class Filter>
Result<SeriesBase<Filter>> SeriesBase<Filter>::make_base(const Goal& goal) {
  SEMEL_TRY(goal.check());
  SEMEL_TRY(crdt_internal::shape_of<Filter>(goal, 1));
  return SeriesBase(goal);
}

// The last links of a chain are the largest and hold the most keys. Their lines are prefetched
// while other links are searched.
template <class Filter>
bool SeriesBase<Filter>::contains(Digest key) const {
  constexpr std::size_t kLinksAhead = 6;
  const auto all = body_->links.entries();
  std::size_t ahead = all.size();
  for (const std::size_t end = ahead - std::min(ahead, kLinksAhead); ahead > end;) {
    all[--ahead].filter->prefetch(key);
  }
  for (std::size_t i = all.size(); i-- > 0;) {
    if (ahead > 0) all[--ahead].filter->prefetch(key);
    if (all[i].filter->contains(key)) return true;
  }
  return false;
}

template <class Filter>
void SeriesBase<Filter>::prefetch(std::span<const Digest> keys) const {
  if (body_->links.entries().empty()) return;
  const Filter& last = *body_->links.entries().back().filter;
  for (const Digest key : keys) last.prefetch(key);
}

template <class Filter>
void SeriesBase<Filter>::contains(std::span<const Digest> keys, std::span<bool> found) const {
  SEMEL_ASSERT(keys.size() == found.size());
  Candidates unseen;
  for (std::size_t start = 0; start < keys.size(); start += kChunk) {
    unseen.take(keys, start);
    for (std::size_t i = body_->links.entries().size(); i-- > 0 && unseen.size > 0;) {
      unseen.strike_out(*body_->links.entries()[i].filter, found, true);
    }
    for (std::size_t i = 0; i < unseen.size; ++i) found[unseen.place[i]] = false;
  }
}

template <class Filter>
Result<bool> SeriesBase<Filter>::merge(const SeriesBase& other) {
  if (goal_ != other.goal_) return Error{Errc::mismatch, "series of different goals"};
  SEMEL_TRY(crdt_internal::within_sites(goal_, links(), other.links()));
  SEMEL_TRY(crdt_internal::one_history(links(), other.links()));
  body_->spare.drop();
  // All links are copied before any change, in case memory runs out.
  std::map<LinkId, Filter> fresh;
  for (const auto& [id, filter] : other.links()) {
    if (body_->links.find(id) == nullptr) fresh.emplace(id, filter);
  }
  bool changed = !fresh.empty();
  for (const auto& [id, filter] : other.links()) {
    Filter* mine = body_->links.find(id);
    if (mine == nullptr) continue;
    const Result<bool> merged = mine->merge(filter);
    SEMEL_ASSERT(merged);  // equal shapes by the goal, and one history
    changed |= *merged;
  }
  body_->links.take(std::move(fresh), goal_);
  return changed;
}

template <class Filter>
Result<void> SeriesBase<Filter>::admits(const Delta& delta) const {
  if (goal_ != delta.goal()) return Error{Errc::mismatch, "a delta of a series of another goal"};
  SEMEL_TRY(crdt_internal::within_sites(goal_, links(), delta.parts()));
  if constexpr (kRemoves) {
    for (const auto& [id, part] : delta.parts()) {
      const Filter* mine = body_->links.find(id);
      SEMEL_TRY(mine == nullptr ? Filter(part.shape()).admits(part) : mine->admits(part));
    }
  }
  return {};
}

template <class Filter>
Result<bool> SeriesBase<Filter>::merge(const Delta& delta) {
  SEMEL_TRY(admits(delta));
  body_->spare.drop();
  // All links are made before any change, in case memory runs out.
  std::map<LinkId, Filter> fresh;
  for (const auto& [id, part] : delta.parts()) {
    if (body_->links.find(id) != nullptr) continue;
    Filter& filter = fresh.emplace(id, part.shape()).first->second;
    const Result<bool> merged = filter.merge(part);
    SEMEL_ASSERT(merged);
  }
  bool changed = !fresh.empty();
  for (const auto& [id, part] : delta.parts()) {
    Filter* mine = body_->links.find(id);
    if (mine == nullptr) continue;
    const Result<bool> merged = mine->merge(part);
    SEMEL_ASSERT(merged);
    changed |= *merged;
  }
  body_->links.take(std::move(fresh), goal_);
  return changed;
}

template <class Filter>
template <class... Part>
Result<bool> SeriesBase<Filter>::merge_part(LinkId id, const Part&... part) {
  if (Filter* mine = body_->links.find(id)) return Result<bool>(mine->merge(part...));
  SEMEL_TRY(admits_site(id.chain));
  const auto shape = SEMEL_TRY(shape_of(id.link));
  body_->spare.drop();
  std::map<LinkId, Filter> fresh;
  const bool changed =
      SEMEL_TRY(Result<bool>(fresh.emplace(id, shape).first->second.merge(part...)));
  if (changed) body_->links.take(std::move(fresh), goal_);
  return changed;
}

template <class Filter>
Result<typename Filter::Shape> SeriesBase<Filter>::shape_of(std::uint8_t link) const {
  return crdt_internal::shape_of<Filter>(goal_, link);
}

template <class Filter>
Result<std::partial_ordering> SeriesBase<Filter>::compare(const SeriesBase& other) const {
  if (goal_ != other.goal_) return Error{Errc::mismatch, "series of different goals"};
  SEMEL_TRY(crdt_internal::one_history(links(), other.links()));
  bool some_less = false, some_greater = false;
  auto mine = links().begin();
  auto theirs = other.links().begin();
  while (mine != links().end() || theirs != other.links().end()) {
    if (theirs == other.links().end() || (mine != links().end() && mine->first < theirs->first)) {
      some_greater = true;
      ++mine;
    } else if (mine == links().end() || theirs->first < mine->first) {
      some_less = true;
      ++theirs;
    } else {
      const std::partial_ordering order = SEMEL_TRY(mine->second.compare(theirs->second));
      if (order == std::partial_ordering::unordered) return order;
      some_less |= order < 0;
      some_greater |= order > 0;
      ++mine;
      ++theirs;
    }
    if (some_less && some_greater) return std::partial_ordering::unordered;
  }
  if (some_less) return std::partial_ordering::less;
  return some_greater ? std::partial_ordering::greater : std::partial_ordering::equivalent;
}

template <class Filter>
double SeriesBase<Filter>::fpr() const {
  if (goal_.chains != Chains::apart) return goal_.fpr;
  // Sites that add to one chain independently fill its links more than once.
  double chains = 0, fill = 0;
  for (auto link = body_->links.entries().begin(); link != body_->links.entries().end();) {
    if constexpr (kRemoves) {
      fill = std::max(
          fill, static_cast<double>(link->filter->keys()) / static_cast<double>(link->capacity));
    }
    const SiteId chain = link->id.chain;
    if (++link == body_->links.entries().end() || link->id.chain != chain) {
      chains += std::max(1.0, fill);
      fill = 0;
    }
  }
  return std::min(1.0, goal_.fpr * std::max(1.0, chains));
}

template <class Filter>
double SeriesBase<Filter>::live_fpr() const {
  double silent = 0;  // log of the chance that no link has a false positive
  for (const auto& [id, filter] : links()) silent += std::log1p(-filter.live_fpr());
  return -std::expm1(silent);
}

template <class Filter>
double SeriesBase<Filter>::cardinality() const {
  double sum = 0;
  for (const auto& [id, filter] : links()) sum += static_cast<double>(filter.cardinality());
  return sum;
}

template <class Filter>
std::uint64_t SeriesBase<Filter>::capacity() const {
  std::uint64_t sum = 0;
  for (const auto& link : body_->links.entries()) sum += link.capacity;
  return sum;
}

template <class Filter>
Result<std::uint64_t> SeriesBase<Filter>::bytes_for(const Goal& goal, std::uint64_t keys) {
  SEMEL_TRY(goal.check());
  std::uint64_t bytes = 0;
  for (std::uint8_t link = 1;; ++link) {
    bytes += SEMEL_TRY(crdt_internal::shape_of<Filter>(goal, link)).bytes();
    const std::uint64_t room = *goal.capacity(link);
    if (keys <= room) return bytes;
    keys -= room;
    if (link == Goal::kMostLinks) return Error{Errc::limit, "a chain has at most 255 links"};
  }
}

template <class Filter>
std::uint64_t SeriesBase<Filter>::reserved_bytes() const {
  return body_->spare.bytes();
}

template <class Filter>
const std::map<LinkId, Filter>& SeriesBase<Filter>::links() const {
  return body_->links.map();
}

template <class Filter>
std::uint64_t SeriesBase<Filter>::bytes() const {
  std::uint64_t sum = body_->spare.bytes();
  for (const auto& [id, filter] : links()) sum += filter.bytes();
  return sum;
}

template <class Filter>
void SeriesBase<Filter>::reserve(SiteId site) {
  SEMEL_ASSERT(links().empty());
  Result<std::map<LinkId, Filter>> first = next_link(site);
  SEMEL_ASSERT(first);  // make() has checked its shape
  if constexpr (requires(Filter & filter) { filter.reserve(); }) first->begin()->second.reserve();
  body_->spare.put(*std::move(first));
}

template <class Filter>
bool SeriesBase<Filter>::renew(std::uint64_t index, std::uint64_t most_bytes) {
  const auto entries = body_->links.entries();
  if (index >= entries.size()) return false;
  if (entries[index].filter->bytes() <= most_bytes) body_->links.renew(index);
  return true;
}

template <class Filter>
Digest SeriesBase<Filter>::digest(const Hasher& hasher) const {
  Digest sum =
      hasher.of_numbers(std::bit_cast<std::uint64_t>(goal_.fpr), goal_.first_keys, goal_.sites,
                        goal_.chains, goal_.growth, goal_.hash.kind, goal_.hash.seed);
  for (const auto& [id, filter] : links()) {
    const Digest link = filter.digest(hasher);
    sum ^= hasher.of_numbers(id.chain, id.link, link.lo, link.hi);
  }
  return sum;
}

template <class Filter>
void SeriesBase<Filter>::encode_base(Sink out, bool counted) const {
  seal(out, kSeriesFormat, [&](Writer& w) {
    crdt_internal::write_header(w, {crdt_internal::kKindOf<Filter>, counted, goal_},
                                links().size());
    for (const auto& link : body_->links.entries()) {
      crdt_internal::write_link(w, link.id,
                                counted ? std::optional(link.filter->keys()) : std::nullopt);
      link.filter->encode(w.sink());
    }
  });
}

template <class Filter>
void SeriesBase<Filter>::encode(Sink out) const {
  encode_base(out, false);
}

template <class Filter>
Result<SeriesBase<Filter>> SeriesBase<Filter>::decode_base(ByteView in, bool counted) {
  const auto encoded = SEMEL_TRY(
      crdt_internal::read_series(in, kSeriesFormat, crdt_internal::kKindOf<Filter>, counted));
  SeriesBase series = SEMEL_TRY(make_base(encoded.goal));
  series.body_->links.take(SEMEL_TRY((crdt_internal::decode_parts<Filter, Filter>(
                               encoded, kSeriesFormat, is_initial<Filter>))),
                           series.goal_);
  if (counted) {
    for (const auto& link : encoded.links) {
      if (!set_keys(*series.body_->links.find(link.id), link.keys)) {
        return corrupt(kSeriesFormat, "keys of a link");
      }
    }
  }
  return series;
}

template <class Filter>
Result<void> SeriesBase<Filter>::admits_site(SiteId site) const {
  if (!body_->links.chain(site).empty()) return {};
  std::set<SiteId> sites;
  crdt_internal::insert_chains(links(), sites);
  if (sites.size() < goal_.sites) return {};
  return Error{Errc::limit, "one more site than the goal of the series allows"};
}

template <class Filter>
std::uint64_t SeriesBase<Filter>::room(SiteId site) const {
  const auto mine = body_->links.chain(site);
  if (mine.empty()) return 0;
  if constexpr (!kRemoves) return mine.back().room();
  std::uint64_t sum = 0;
  for (const auto& link : mine) sum += link.room();
  return sum;
}

template <class Filter>
Result<typename Filter::Shape> SeriesBase<Filter>::next_shape(SiteId site) const {
  return shape_of(SEMEL_TRY(next_number(site)));
}

template <class Filter>
Result<std::uint8_t> SeriesBase<Filter>::next_number(SiteId chain) const {
  const auto mine = body_->links.chain(chain);
  const std::uint8_t last = mine.empty() ? 0 : mine.back().id.link;
  if (last == Goal::kMostLinks) return Error{Errc::limit, "a chain has at most 255 links"};
  return static_cast<std::uint8_t>(last + 1);
}

template <class Filter>
Result<std::map<LinkId, Filter>> SeriesBase<Filter>::next_link(SiteId chain) {
  const std::uint8_t number = SEMEL_TRY(next_number(chain));
  std::map<LinkId, Filter> link = body_->spare.take({chain, number});
  if (link.empty()) link.emplace(LinkId{chain, number}, SEMEL_TRY(shape_of(number)));
  return link;
}

// A change that leaves the part of its link empty leaves no part.
template <class Filter>
template <class Update>
auto SeriesBase<Filter>::record(Delta* delta, LinkId id, const Filter& filter, Update update) {
  if (delta == nullptr) return update(static_cast<typename Filter::Delta*>(nullptr));
  const auto part = delta->parts_.try_emplace(id, filter.shape()).first;
  auto result = update(&part->second);
  if (part->second.empty()) delta->parts_.erase(part);
  return result;
}

template <class Filter>
Result<GrowSeries<Filter>> GrowSeries<Filter>::make(const Goal& goal) {
  return GrowSeries(SEMEL_TRY(Base::make_base(goal)));
}

template <class Filter>
Result<GrowSeries<Filter>> GrowSeries<Filter>::decode(ByteView in) {
  return GrowSeries(SEMEL_TRY(Base::decode_base(in, false)));
}

template <class Filter>
Result<GrowSeries<Filter>> GrowSeries<Filter>::decode_counted(ByteView in) {
  return GrowSeries(SEMEL_TRY(Base::decode_base(in, true)));
}

template <class Filter>
std::map<LinkId, std::uint64_t> GrowSeries<Filter>::link_keys() const {
  std::map<LinkId, std::uint64_t> keys;
  for (const auto& link : this->body_->links.entries())
    keys.emplace_hint(keys.end(), link.id, link.filter->keys());
  return keys;
}

template <class Filter>
std::uint64_t GrowSeries<Filter>::keys() const {
  std::uint64_t sum = 0;
  for (const auto& link : this->body_->links.entries()) sum += link.filter->keys();
  return sum;
}

template <class Filter>
Result<bool> GrowSeries<Filter>::add(Digest key, SiteId site, Delta* delta) {
  if (this->contains(key)) return false;
  const auto mine = this->body_->links.chain(site);
  if (!mine.empty() && mine.back().room() > 0) {
    Filter& filter = *mine.back().filter;
    const Result<bool> added =
        Base::record(delta, mine.back().id, filter,
                     [&](auto* part) -> Result<bool> { return filter.add(key, part); });
    if (added) return *added;
  }
  return extend(key, site, delta);
}

template <class Filter>
Result<bool> GrowSeries<Filter>::extend(Digest key, SiteId site, Delta* delta) {
  SEMEL_TRY(this->admits_site(site));
  std::map<LinkId, Filter> fresh = SEMEL_TRY(this->next_link(site));
  Filter& filter = fresh.begin()->second;
  const auto add = [&](auto* part) -> Result<bool> { return filter.add(key, part); };
  const Result<bool> added = Base::record(delta, fresh.begin()->first, filter, add);
  SEMEL_ASSERT(added && *added);  // an empty filter has room for a key
  this->body_->links.take(std::move(fresh), this->goal_);
  return true;
}

template <class Filter>
std::size_t GrowSeries<Filter>::add(std::span<const Digest> keys, SiteId site,
                                    std::span<bool> added, Delta* delta) {
  SEMEL_ASSERT(keys.size() == added.size());
  const auto last_link = [&] {
    const auto mine = this->body_->links.chain(site);
    return mine.empty() ? nullptr : &mine.back();
  };
  Candidates unseen;
  for (std::size_t start = 0; start < keys.size(); start += kChunk) {
    // Other links answer for the keys that they know. The last link of the chain decides about the
    // rest.
    unseen.take(keys, start);
    const auto* last = last_link();
    for (std::size_t i = this->body_->links.entries().size(); i-- > 0 && unseen.size > 0;) {
      const auto& link = this->body_->links.entries()[i];
      if (&link != last) unseen.strike_out(*link.filter, added, false);
    }
    while (unseen.size > 0) {
      std::size_t room = 0, taken = 0;
      if (last != nullptr) {
        Filter& filter = *last->filter;
        room = std::min<std::uint64_t>(unseen.size, last->room());
        const std::span<const Digest> some(unseen.keys.data(), room);
        const std::span<bool> answer(unseen.answer.data(), room);
        taken = Base::record(delta, last->id, filter,
                             [&](auto* part) { return filter.add(some, answer, part); });
        for (std::size_t i = 0; i < taken; ++i) added[unseen.place[i]] = answer[i];
        unseen.drop_front(taken);
        if (taken > 0 && taken == room) continue;
        unseen.strike_out(filter, added, false);
        if (unseen.size == 0) break;
      }
      if (!extend(unseen.keys[0], site, delta)) return unseen.place[0];
      added[unseen.place[0]] = true;
      unseen.drop_front(1);
      last = last_link();
    }
  }
  return keys.size();
}

template <class Filter>
Result<ObservedSeries<Filter>> ObservedSeries<Filter>::make(const Goal& goal) {
  return ObservedSeries(SEMEL_TRY(Base::make_base(goal)));
}

template <class Filter>
Result<ObservedSeries<Filter>> ObservedSeries<Filter>::decode(ByteView in) {
  return ObservedSeries(SEMEL_TRY(Base::decode_base(in, false)));
}

template <class Filter>
Result<LinkDot> ObservedSeries<Filter>::add(Digest key, SiteLife site, Delta* delta) {
  return add_one(key, site.site, site, delta);
}

template <class Filter>
Result<LinkDot> ObservedSeries<Filter>::add_to(SiteId chain, Digest key, SiteLife site) {
  SEMEL_ASSERT(this->goal_.chains == Chains::apart);
  return add_one(key, chain, site, nullptr);
}

template <class Filter>
Result<LinkDot> ObservedSeries<Filter>::add_within(SiteId chain, Digest key, SiteLife site) {
  SEMEL_ASSERT(this->goal_.chains == Chains::apart);
  return add_to_links(key, chain, site, nullptr);
}

template <class Filter>
Result<LinkDot> ObservedSeries<Filter>::add_one(Digest key, SiteId chain, SiteLife site,
                                                Delta* delta) {
  const Result<LinkDot> added = add_to_links(key, chain, site, delta);
  if (added || added.error().code != Errc::full) return added;
  if (this->body_->links.chain(chain).empty()) SEMEL_TRY(this->admits_site(chain));
  return extend(key, chain, site, delta);
}

template <class Filter>
Result<LinkDot> ObservedSeries<Filter>::add_to_links(Digest key, SiteId chain, SiteLife site,
                                                     Delta* delta) {
  for (const auto& link : this->body_->links.chain(chain)) {
    if (link.room() == 0) continue;
    Filter& filter = *link.filter;
    const Result<Dot> dot = Base::record(delta, link.id, filter,
                                         [&](auto* part) { return filter.add(key, site, part); });
    if (dot) return LinkDot{chain, link.id.link, *dot};
  }
  return Error{Errc::full, "no link of the chain has room for this key"};
}

template <class Filter>
Result<LinkDot> ObservedSeries<Filter>::extend(Digest key, SiteId chain, SiteLife site,
                                               Delta* delta) {
  std::map<LinkId, Filter> fresh = SEMEL_TRY(this->next_link(chain));
  const LinkId id = fresh.begin()->first;
  Filter& filter = fresh.begin()->second;
  const auto add = [&](auto* part) { return filter.add(key, site, part); };
  const Result<Dot> dot = Base::record(delta, id, filter, add);
  SEMEL_ASSERT(dot);  // an empty filter has room for a key
  this->body_->links.take(std::move(fresh), this->goal_);
  return LinkDot{id.chain, id.link, *dot};
}

template <class Filter>
std::size_t ObservedSeries<Filter>::add(std::span<const Digest> keys, SiteLife site,
                                        std::span<LinkDot> dots, Delta* delta) {
  SEMEL_ASSERT(keys.size() == dots.size());
  const SiteId chain = site.site;
  std::size_t done = 0;
  std::size_t at = 0;  // the current link of the chain
  while (done < keys.size()) {
    // The links before this one are full and stay so.
    const auto mine = this->body_->links.chain(chain);
    while (at < mine.size() && mine[at].room() == 0) ++at;
    if (at < mine.size()) {
      const auto& link = mine[at];
      Filter& filter = *link.filter;
      const std::size_t wanted = std::min<std::uint64_t>(keys.size() - done, link.room());
      const std::uint64_t last = filter.context().at(site.site);
      const std::size_t taken = Base::record(delta, link.id, filter, [&](auto* part) {
        return filter.add(keys.subspan(done, wanted), site, part);
      });
      for (std::size_t i = 0; i < taken; ++i) {
        dots[done++] = {chain, link.id.link, {site.site, last + i + 1}};
      }
      if (taken == wanted) continue;
    }
    // This link has no room for this key. The key goes to a later link, and the next key tries here
    // again.
    const Result<LinkDot> one = add_one(keys[done], chain, site, delta);
    if (!one) return done;
    dots[done++] = *one;
  }
  return done;
}

template <class Filter>
std::uint64_t ObservedSeries<Filter>::count(Digest key) const {
  std::uint64_t sum = 0;
  for (const auto& link : this->body_->links.entries()) link.filter->prefetch(key);
  for (const auto& link : this->body_->links.entries()) sum += link.filter->count(key);
  return sum;
}

template <class Filter>
std::optional<LinkDot> ObservedSeries<Filter>::remove(Digest key, Delta* delta) {
  bool removed = false;
  std::optional<LinkDot> chosen;
  for (const auto& link : this->body_->links.entries()) link.filter->prefetch(key);
  for (const auto& link : this->body_->links.entries()) {
    const std::optional<Dot> least = link.filter->least_dot(key);
    if (!least) continue;
    const LinkDot candidate{link.id.chain, link.id.link, *least};
    if (!chosen || comes_before(candidate, *chosen)) chosen = candidate;
  }
  if (chosen) removed = *remove(key, *chosen, delta);
  SEMEL_ASSERT(removed == chosen.has_value());
  return chosen;
}

template <class Filter>
Result<bool> ObservedSeries<Filter>::remove(Digest key, const LinkDot& at, Delta* delta) {
  Filter* filter = this->body_->links.find(at.id());
  if (filter == nullptr) return Error{Errc::gap, "an entry of a link not seen here"};
  return Base::record(delta, at.id(), *filter,
                      [&](auto* part) { return filter->remove(key, at.dot, part); });
}

template <class Filter>
Result<ObservedSeries<Filter>> ObservedSeries<Filter>::renamed(const ObservedSeries& trunk,
                                                               SiteId from, SiteId to) const {
  if (this->goal_ != trunk.goal_) return Error{Errc::mismatch, "series of different goals"};
  const Error kTaken{Errc::invalid, "dots are renamed to a site that has none yet"};
  ObservedSeries split = *make(this->goal_);
  std::map<LinkId, Filter> links;
  for (const auto& [id, filter] : this->links()) {
    const Filter* const there = trunk.body_->links.find(id);
    if (from == to || filter.context().at(to) != 0) return kTaken;
    if (there == nullptr || !filter.fork_from(*there, from)) {
      links.emplace(id, filter);
      continue;
    }
    const std::uint64_t fork = *filter.fork_from(*there, from);
    const auto& shape = filter.shape();
    const auto take = [&](LinkId into, SiteId site, const ObservedPart& part) {
      const Result<bool> taken = links.try_emplace(into, shape).first->second.merge(site, part);
      SEMEL_ASSERT(taken);
    };
    for (const auto& [site, last] : filter.context().sites()) {
      if (site != from) take(id, site, filter.part_between(site, 0, last));
    }
    if (fork > 0) take(id, from, filter.part_between(from, 0, fork));
    const ObservedPart branch = filter.part_between(from, fork, filter.context().at(from));
    take({id.chain == from ? to : id.chain, id.link}, to, branch.from_one());
  }
  split.body_->links.take(std::move(links), this->goal_);
  return split;
}

// Finds the links that may hold a key for many keys at once. A removal adds no entries, so later
// keys need no other links.
template <class Filter>
void ObservedSeries<Filter>::remove(std::span<const Digest> keys, std::span<bool> removed,
                                    Delta* delta) {
  SEMEL_ASSERT(keys.size() == removed.size());
  std::array<bool, kChunk> found;
  std::vector<std::pair<std::size_t, LinkId>> places;
  for (std::size_t start = 0; start < keys.size(); start += kChunk) {
    const std::span<const Digest> some = keys.subspan(start, std::min(keys.size() - start, kChunk));
    places.clear();
    for (const auto& [id, filter] : this->links()) {
      filter.contains(some, {found.data(), some.size()});
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (found[i]) places.emplace_back(i, id);
      }
    }
    std::sort(places.begin(), places.end());
    auto place = places.begin();
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::optional<LinkDot> chosen;
      for (; place != places.end() && place->first == i; ++place) {
        const LinkId id = place->second;
        const std::optional<Dot> least = this->body_->links.find(id)->least_dot(some[i]);
        if (!least) continue;
        const LinkDot candidate{id.chain, id.link, *least};
        if (!chosen || comes_before(candidate, *chosen)) chosen = candidate;
      }
      removed[start + i] = chosen && *remove(some[i], *chosen, delta);
    }
  }
}

template Result<bool> SeriesBase<GrowBloom>::merge_part(LinkId, const BloomPart&);
template Result<bool> SeriesBase<ObservedCuckoo>::merge_part(LinkId, const SiteId&,
                                                             const ObservedPart&);
template class SeriesDelta<GrowBloom>;
template class SeriesDelta<GrowCuckoo>;
template class SeriesDelta<ObservedCuckoo>;
template class SeriesBase<GrowBloom>;
template class SeriesBase<GrowCuckoo>;
template class SeriesBase<ObservedCuckoo>;
template class GrowSeries<GrowBloom>;
template class GrowSeries<GrowCuckoo>;
template class ObservedSeries<ObservedCuckoo>;

}  // namespace semel
