// ObservedSeries: a series from which keys are removed. series.cc has what all series share.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "semel/core/assert.h"
#include "semel/crdt/internal/link_map.h"
#include "semel/crdt/internal/observed_part.h"
#include "semel/crdt/internal/series_parts.h"
#include "semel/crdt/series.h"
#include "semel/filter/internal/candidates.h"

namespace semel {

using crdt_internal::ObservedPart;
using crdt_internal::ObservedParts;
using crdt_internal::SeriesParts;

namespace {

constexpr std::size_t kChunk = filter_internal::Candidates::kChunk;

// If several entries match, the one in the latest link most likely belongs to the key, because
// its fingerprints are the longest. Links with equal numbers have one shape in all chains, so keys
// that collide in one collide in all. Among these any choice will do if all sites make the same
// one.
bool comes_before(const LinkDot& a, const LinkDot& b) {
  return std::tuple(b.link, a.dot, a.chain) < std::tuple(a.link, b.dot, b.chain);
}

}  // namespace

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
  SEMEL_ASSERT(this->goal_.chains == SeriesChains::apart);
  return add_one(key, chain, site, nullptr);
}

template <class Filter>
Result<LinkDot> ObservedSeries<Filter>::add_within(SiteId chain, Digest key, SiteLife site) {
  SEMEL_ASSERT(this->goal_.chains == SeriesChains::apart);
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
    const Result<Dot> dot = SeriesParts::record(
        delta, link.id, filter, [&](auto* part) { return filter.add(key, site, part); });
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
  const Result<Dot> dot = SeriesParts::record(delta, id, filter, add);
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
      const std::size_t taken = SeriesParts::record(delta, link.id, filter, [&](auto* part) {
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
  return SeriesParts::record(delta, at.id(), *filter,
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
      Filter& renamed = links.try_emplace(into, shape).first->second;
      const Result<bool> taken = ObservedParts::merge(renamed, site, part);
      SEMEL_ASSERT(taken);
    };
    for (const auto& [site, last] : filter.context().sites()) {
      if (site != from) take(id, site, ObservedParts::between(filter, site, 0, last));
    }
    if (fork > 0) take(id, from, ObservedParts::between(filter, from, 0, fork));
    const std::uint64_t last = filter.context().at(from);
    const ObservedPart branch = ObservedParts::between(filter, from, fork, last);
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

template class ObservedSeries<ObservedCuckoo>;

}  // namespace semel
