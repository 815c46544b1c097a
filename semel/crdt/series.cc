#include "semel/crdt/series.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/crdt/internal/link_map.h"
#include "semel/crdt/internal/observed_part.h"
#include "semel/crdt/internal/series_codec.h"
#include "semel/crdt/internal/series_links.h"
#include "semel/crdt/internal/series_parts.h"
#include "semel/filter/internal/candidates.h"

namespace semel {

using crdt_internal::kSeriesDeltaFormat;
using crdt_internal::kSeriesFormat;
using crdt_internal::ObservedPart;
using crdt_internal::ObservedParts;
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

namespace {

Result<bool> merge_into(GrowBloom& filter, const BloomPart& part) { return filter.merge(part); }
Result<bool> merge_into(ObservedCuckoo& filter, SiteId site, const ObservedPart& part) {
  return ObservedParts::merge(filter, site, part);
}

}  // namespace

template <class Filter, class... Part>
Result<bool> crdt_internal::SeriesParts::merge(SeriesBase<Filter>& series, LinkId id,
                                               const Part&... part) {
  if (Filter* mine = series.body_->links.find(id)) return merge_into(*mine, part...);
  SEMEL_TRY(series.admits_site(id.chain));
  const auto shape = SEMEL_TRY(series.shape_of(id.link));
  series.body_->spare.drop();
  std::map<LinkId, Filter> fresh;
  const bool changed = SEMEL_TRY(merge_into(fresh.emplace(id, shape).first->second, part...));
  if (changed) series.body_->links.take(std::move(fresh), series.goal_);
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
  if (goal_.chains != SeriesChains::apart) return goal_.fpr;
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

template Result<bool> crdt_internal::SeriesParts::merge(SeriesBase<GrowBloom>&, LinkId,
                                                        const BloomPart&);
template Result<bool> crdt_internal::SeriesParts::merge(SeriesBase<ObservedCuckoo>&, LinkId,
                                                        const SiteId&, const ObservedPart&);
template class SeriesDelta<GrowBloom>;
template class SeriesDelta<GrowCuckoo>;
template class SeriesDelta<ObservedCuckoo>;
template class SeriesBase<GrowBloom>;
template class SeriesBase<GrowCuckoo>;
template class SeriesBase<ObservedCuckoo>;

}  // namespace semel
