#include "semel/crdt/series.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "semel/core/assert.h"
#include "semel/crdt/internal/mergeable_filter.h"
#include "semel/crdt/internal/series_codec.h"
#include "semel/crdt/series_links.h"
#include "semel/filter/candidates.h"

namespace semel {
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

// Of several matching entries, the one in the latest link most likely belongs to the key, because
// its fingerprints are the longest. Links with equal numbers have one shape in all chains, so keys
// that collide in one collide in all. Among these any choice will do if all sites make the same
// one.
bool comes_before(const LinkDot& a, const LinkDot& b) {
  return std::tuple(b.link, a.dot, a.chain) < std::tuple(a.link, b.dot, b.chain);
}

}  // namespace

template <class Filter>
Result<SeriesBase<Filter>> SeriesBase<Filter>::make_base(const Goal& goal) {
  if (const Result<void> sound = goal.check(); !sound) return sound.error();
  if (const auto shape = series_links::shape_of<Filter>(goal, 1); !shape) return shape.error();
  return SeriesBase(goal);
}

// The last links of a chain are the largest and hold the most keys. Their lines are prefetched
// while other links are searched.
template <class Filter>
bool SeriesBase<Filter>::contains(Digest key) const {
  constexpr std::size_t kLinksAhead = 6;
  const std::span<const Entry> all = links_.entries();
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
  if (links_.entries().empty()) return;
  const Filter& last = *links_.entries().back().filter;
  for (const Digest key : keys) last.prefetch(key);
}

template <class Filter>
void SeriesBase<Filter>::contains(std::span<const Digest> keys, std::span<bool> found) const {
  SEMEL_ASSERT(keys.size() == found.size());
  Candidates unseen;
  for (std::size_t start = 0; start < keys.size(); start += kChunk) {
    unseen.take(keys, start);
    for (std::size_t i = links_.entries().size(); i-- > 0 && unseen.size > 0;) {
      unseen.strike_out(*links_.entries()[i].filter, found, true);
    }
    for (std::size_t i = 0; i < unseen.size; ++i) found[unseen.place[i]] = false;
  }
}

template <class Filter>
Result<bool> SeriesBase<Filter>::merge(const SeriesBase& other) {
  if (goal_ != other.goal_) return Error{Errc::mismatch, "series of different goals"};
  if (!series_links::within_sites(goal_, links(), other.links())) {
    return Error{Errc::limit, "more sites than the goal allows"};
  }
  if (const Result<void> one = series_links::one_history(links(), other.links()); !one) {
    return one.error();
  }
  spare_.drop();
  // All links are copied before any change, in case memory runs out.
  std::map<LinkId, Filter> fresh;
  for (const auto& [id, filter] : other.links()) {
    if (links_.find(id) == nullptr) fresh.emplace(id, filter);
  }
  bool changed = !fresh.empty();
  for (const auto& [id, filter] : other.links()) {
    Filter* mine = links_.find(id);
    if (mine == nullptr) continue;
    const Result<bool> merged = mine->merge(filter);
    SEMEL_ASSERT(merged);  // equal shapes by the goal, and one history
    changed |= *merged;
  }
  links_.take(std::move(fresh), goal_);
  return changed;
}

template <class Filter>
Result<void> SeriesBase<Filter>::admits(const Delta& delta) const {
  if (goal_ != delta.goal()) return Error{Errc::mismatch, "a delta of a series of another goal"};
  if (!series_links::within_sites(goal_, links(), delta.parts())) {
    return Error{Errc::limit, "more sites than the goal allows"};
  }
  if constexpr (kRemoves) {
    for (const auto& [id, part] : delta.parts()) {
      const Filter* mine = links_.find(id);
      const Result<void> admitted =
          mine == nullptr ? Filter(part.shape()).admits(part) : mine->admits(part);
      if (!admitted) return admitted.error();
    }
  }
  return {};
}

template <class Filter>
Result<bool> SeriesBase<Filter>::merge(const Delta& delta) {
  if (const Result<void> admitted = admits(delta); !admitted) return admitted.error();
  spare_.drop();
  // All links are made before any change, in case memory runs out.
  std::map<LinkId, Filter> fresh;
  for (const auto& [id, part] : delta.parts()) {
    if (links_.find(id) != nullptr) continue;
    Filter& filter = fresh.emplace(id, part.shape()).first->second;
    const Result<bool> merged = filter.merge(part);
    SEMEL_ASSERT(merged);
  }
  bool changed = !fresh.empty();
  for (const auto& [id, part] : delta.parts()) {
    Filter* mine = links_.find(id);
    if (mine == nullptr) continue;
    const Result<bool> merged = mine->merge(part);
    SEMEL_ASSERT(merged);
    changed |= *merged;
  }
  links_.take(std::move(fresh), goal_);
  return changed;
}

template <class Filter>
template <class... Part>
Result<bool> SeriesBase<Filter>::merge_part(LinkId id, const Part&... part) {
  if (Filter* mine = links_.find(id)) return Result<bool>(mine->merge(part...));
  if (const Result<void> admitted = admits_site(id.chain); !admitted) return admitted.error();
  const auto shape = shape_of(id.link);
  if (!shape) return shape.error();
  spare_.drop();
  std::map<LinkId, Filter> fresh;
  Filter& filter = fresh.emplace(id, *shape).first->second;
  const Result<bool> changed = filter.merge(part...);
  if (changed && *changed) links_.take(std::move(fresh), goal_);
  return changed;
}

template <class Filter>
Result<typename Filter::Shape> SeriesBase<Filter>::shape_of(std::uint8_t link) const {
  return series_links::shape_of<Filter>(goal_, link);
}

template <class Filter>
Result<std::partial_ordering> SeriesBase<Filter>::compare(const SeriesBase& other) const {
  if (goal_ != other.goal_) return Error{Errc::mismatch, "series of different goals"};
  if (const Result<void> one = series_links::one_history(links(), other.links()); !one) {
    return one.error();
  }
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
      const Result<std::partial_ordering> order = mine->second.compare(theirs->second);
      if (!order) return order.error();
      if (*order == std::partial_ordering::unordered) return *order;
      some_less |= *order < 0;
      some_greater |= *order > 0;
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
  for (auto link = links_.entries().begin(); link != links_.entries().end();) {
    if constexpr (kRemoves) {
      fill = std::max(
          fill, static_cast<double>(link->filter->keys()) / static_cast<double>(link->capacity));
    }
    const SiteId chain = link->id.chain;
    if (++link == links_.entries().end() || link->id.chain != chain) {
      chains += std::max(1.0, fill);
      fill = 0;
    }
  }
  return std::min(1.0, goal_.fpr * std::max(1.0, chains));
}

template <class Filter>
double SeriesBase<Filter>::live_fpr() const {
  double silent = 0;  // log of the chance that no link claims an absent key
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
  for (const Entry& link : links_.entries()) sum += link.capacity;
  return sum;
}

template <class Filter>
std::uint64_t SeriesBase<Filter>::bytes() const {
  std::uint64_t sum = spare_.bytes();
  for (const auto& [id, filter] : links()) sum += filter.bytes();
  return sum;
}

template <class Filter>
void SeriesBase<Filter>::reserve(SiteId site) {
  SEMEL_ASSERT(links().empty());
  Result<std::map<LinkId, Filter>> first = next_link(goal_.chain_of(site));
  SEMEL_ASSERT(first);  // make() has checked its shape
  if constexpr (requires(Filter & filter) { filter.reserve(); }) first->begin()->second.reserve();
  spare_.put(*std::move(first));
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
void SeriesBase<Filter>::encode(Sink out) const {
  series_codec::FrameWriter frame(
      out, {series_codec::kStateMagic, series_codec::kKindOf<Filter>, goal_}, links().size());
  for (const auto& [id, filter] : links()) frame.link(id, filter);
  frame.finish();
}

template <class Filter>
Result<SeriesBase<Filter>> SeriesBase<Filter>::decode_base(ByteView in) {
  const Result<series_codec::Frame> frame =
      series_codec::read(in, series_codec::kStateMagic, series_codec::kKindOf<Filter>);
  if (!frame) return frame.error();
  Result<SeriesBase> series = make_base(frame->goal);
  if (!series) return series.error();
  Result<std::map<LinkId, Filter>> links =
      series_links::decode_parts<Filter, Filter>(*frame, is_initial<Filter>);
  if (!links) return links.error();
  series->links_.take(*std::move(links), series->goal_);
  return series;
}

template <class Filter>
Result<void> SeriesBase<Filter>::admits_site(SiteId site) const {
  if (!goal_.shared()) {
    if (!links_.chain(site).empty()) return {};
  } else if constexpr (kRemoves) {
    const bool known = std::any_of(links().begin(), links().end(), [&](const auto& link) {
      return link.second.context().at(site) > 0;
    });
    if (known) return {};
  }
  std::set<SiteId> sites;
  series_links::insert_sites(goal_, links(), sites);
  if (sites.size() < goal_.sites) return {};
  return Error{Errc::limit, "one more site than the goal of the series allows"};
}

template <class Filter>
std::uint64_t SeriesBase<Filter>::room(SiteId site) const {
  const std::span<const Entry> mine = links_.chain(goal_.chain_of(site));
  if (mine.empty()) return 0;
  if constexpr (!kRemoves) return mine.back().room();
  std::uint64_t sum = 0;
  for (const Entry& link : mine) sum += link.room();
  return sum;
}

template <class Filter>
Result<typename Filter::Shape> SeriesBase<Filter>::next_shape(SiteId site) const {
  const Result<std::uint8_t> number = next_number(goal_.chain_of(site));
  if (!number) return number.error();
  return shape_of(*number);
}

template <class Filter>
Result<std::uint8_t> SeriesBase<Filter>::next_number(SiteId chain) const {
  const std::span<const Entry> mine = links_.chain(chain);
  const std::uint8_t last = mine.empty() ? 0 : mine.back().id.link;
  if (last == Goal::kMostLinks) return Error{Errc::limit, "a chain has at most 255 links"};
  return static_cast<std::uint8_t>(last + 1);
}

template <class Filter>
Result<std::map<LinkId, Filter>> SeriesBase<Filter>::next_link(SiteId chain) {
  const Result<std::uint8_t> number = next_number(chain);
  if (!number) return number.error();
  std::map<LinkId, Filter> spare = spare_.take({chain, *number});
  if (!spare.empty()) return spare;
  const auto shape = shape_of(*number);
  if (!shape) return shape.error();
  std::map<LinkId, Filter> link;
  link.emplace(LinkId{chain, *number}, *shape);
  return link;
}

template <class Filter>
Result<GrowSeries<Filter>> GrowSeries<Filter>::make(const Goal& goal) {
  Result<Base> base = Base::make_base(goal);
  if (!base) return base.error();
  return GrowSeries(*std::move(base));
}

template <class Filter>
Result<GrowSeries<Filter>> GrowSeries<Filter>::decode(ByteView in) {
  Result<Base> base = Base::decode_base(in);
  if (!base) return base.error();
  return GrowSeries(*std::move(base));
}

template <class Filter>
std::map<LinkId, std::uint64_t> GrowSeries<Filter>::link_keys() const {
  std::map<LinkId, std::uint64_t> keys;
  for (const auto& link : links_.entries())
    keys.emplace_hint(keys.end(), link.id, link.filter->keys());
  return keys;
}

template <class Filter>
void GrowSeries<Filter>::set_link_keys(LinkId id, std::uint64_t keys) {
  Filter* const filter = links_.find(id);
  SEMEL_ASSERT(filter != nullptr);
  if constexpr (requires { filter->set_keys(keys); }) filter->set_keys(keys);
}

template <class Filter>
const typename SeriesBase<Filter>::Entry* GrowSeries<Filter>::last_link(SiteId chain) const {
  const std::span<const typename Base::Entry> mine = links_.chain(chain);
  return mine.empty() ? nullptr : &mine.back();
}

template <class Filter>
Result<bool> GrowSeries<Filter>::add_one(Digest key, SiteId site, Delta* delta) {
  if (this->contains(key)) return false;
  const auto* last = last_link(this->goal_.chain_of(site));
  if (last != nullptr && last->room() > 0) {
    Filter& filter = *last->filter;
    const Result<bool> added =
        Base::record(delta, last->id, filter.shape(),
                     [&](auto&... part) -> Result<bool> { return filter.add(key, part...); });
    if (added) return *added;
  }
  return extend(key, site, delta);
}

template <class Filter>
Result<bool> GrowSeries<Filter>::extend(Digest key, SiteId site, Delta* delta) {
  if (const Result<void> admitted = this->admits_site(site); !admitted) return admitted.error();
  Result<std::map<LinkId, Filter>> link = this->next_link(this->goal_.chain_of(site));
  if (!link) return link.error();
  std::map<LinkId, Filter> fresh = *std::move(link);
  Filter& filter = fresh.begin()->second;
  const auto add = [&](auto&... part) -> Result<bool> { return filter.add(key, part...); };
  const Result<bool> added = Base::record(delta, fresh.begin()->first, filter.shape(), add);
  SEMEL_ASSERT(added && *added);  // an empty filter has room for a key
  links_.take(std::move(fresh), this->goal_);
  return true;
}

template <class Filter>
std::size_t GrowSeries<Filter>::add_all(std::span<const Digest> keys, SiteId site,
                                        std::span<bool> added, Delta* delta) {
  SEMEL_ASSERT(keys.size() == added.size());
  const SiteId chain = this->goal_.chain_of(site);
  Candidates unseen;
  for (std::size_t start = 0; start < keys.size(); start += kChunk) {
    // Other links answer for the keys that they know. The last link of the chain decides about the
    // rest.
    unseen.take(keys, start);
    const auto* last = last_link(chain);
    for (std::size_t i = links_.entries().size(); i-- > 0 && unseen.size > 0;) {
      const auto& link = links_.entries()[i];
      if (&link != last) unseen.strike_out(*link.filter, added, false);
    }
    while (unseen.size > 0) {
      std::size_t room = 0, taken = 0;
      if (last != nullptr) {
        Filter& filter = *last->filter;
        room = std::min<std::uint64_t>(unseen.size, last->room());
        const std::span<const Digest> some(unseen.keys.data(), room);
        const std::span<bool> answer(unseen.answer.data(), room);
        taken = Base::record(delta, last->id, filter.shape(), [&](auto&... part) {
          if constexpr (std::is_void_v<decltype(filter.add(some, answer, part...))>) {
            filter.add(some, answer, part...);
            return some.size();
          } else {
            return filter.add(some, answer, part...);
          }
        });
        for (std::size_t i = 0; i < taken; ++i) added[unseen.place[i]] = answer[i];
        unseen.drop_front(taken);
        if (taken > 0 && taken == room) continue;
        unseen.strike_out(filter, added, false);
        if (unseen.size == 0) break;
      }
      if (!extend(unseen.keys[0], site, delta)) return unseen.place[0];
      added[unseen.place[0]] = true;
      unseen.drop_front(1);
      last = last_link(chain);
    }
  }
  return keys.size();
}

template <class Filter>
Result<ObservedSeries<Filter>> ObservedSeries<Filter>::make(const Goal& goal) {
  Result<Base> base = Base::make_base(goal);
  if (!base) return base.error();
  return ObservedSeries(*std::move(base));
}

template <class Filter>
Result<ObservedSeries<Filter>> ObservedSeries<Filter>::decode(ByteView in) {
  Result<Base> base = Base::decode_base(in);
  if (!base) return base.error();
  return ObservedSeries(*std::move(base));
}

template <class Filter>
Result<LinkDot> ObservedSeries<Filter>::add_one(Digest key, SiteId chain, SiteLife site,
                                                Delta* delta) {
  const auto mine = links_.chain(chain);
  if (mine.empty() || this->goal_.shared()) {  // a site with its own chain was admitted before
    const SiteId newcomer = this->goal_.shared() ? site.site : chain;
    if (const Result<void> fits = this->admits_site(newcomer); !fits) return fits.error();
  }
  for (const auto& link : mine) {
    if (link.room() == 0) continue;
    Filter& filter = *link.filter;
    const Result<Dot> dot = Base::record(delta, link.id, filter.shape(), [&](auto&... part) {
      return filter.add(key, site, part...);
    });
    if (dot) return LinkDot{chain, link.id.link, *dot};
  }
  return extend(key, chain, site, delta);
}

template <class Filter>
Result<LinkDot> ObservedSeries<Filter>::extend(Digest key, SiteId chain, SiteLife site,
                                               Delta* delta) {
  Result<std::map<LinkId, Filter>> link = this->next_link(chain);
  if (!link) return link.error();
  std::map<LinkId, Filter> fresh = *std::move(link);
  const LinkId id = fresh.begin()->first;
  Filter& filter = fresh.begin()->second;
  const auto add = [&](auto&... part) { return filter.add(key, site, part...); };
  const Result<Dot> dot = Base::record(delta, id, filter.shape(), add);
  SEMEL_ASSERT(dot);  // an empty filter has room for a key
  links_.take(std::move(fresh), this->goal_);
  return LinkDot{id.chain, id.link, *dot};
}

template <class Filter>
std::size_t ObservedSeries<Filter>::add_all(std::span<const Digest> keys, SiteLife site,
                                            std::span<LinkDot> dots, Delta* delta) {
  SEMEL_ASSERT(keys.size() == dots.size());
  if (!this->admits_site(site.site)) return 0;
  const SiteId chain = this->goal_.chain_of(site.site);
  std::size_t done = 0;
  std::size_t at = 0;  // the current link of the chain
  while (done < keys.size()) {
    // The links before this one are full and stay so.
    const auto mine = links_.chain(chain);
    while (at < mine.size() && mine[at].room() == 0) ++at;
    if (at < mine.size()) {
      const auto& link = mine[at];
      Filter& filter = *link.filter;
      const std::size_t wanted = std::min<std::uint64_t>(keys.size() - done, link.room());
      const std::uint64_t last = filter.context().at(site.site);
      const std::size_t taken = Base::record(delta, link.id, filter.shape(), [&](auto&... part) {
        return filter.add(keys.subspan(done, wanted), site, part...);
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
  for (const auto& link : links_.entries()) link.filter->prefetch(key);
  for (const auto& link : links_.entries()) sum += link.filter->count(key);
  return sum;
}

template <class Filter>
std::optional<LinkDot> ObservedSeries<Filter>::remove_one(Digest key, Delta* delta) {
  bool removed = false;
  std::optional<LinkDot> chosen;
  for (const auto& link : links_.entries()) link.filter->prefetch(key);
  for (const auto& link : links_.entries()) {
    const std::optional<Dot> least = link.filter->least_dot(key);
    if (!least) continue;
    const LinkDot candidate{link.id.chain, link.id.link, *least};
    if (!chosen || comes_before(candidate, *chosen)) chosen = candidate;
  }
  if (chosen) removed = *remove_at(key, *chosen, delta);
  SEMEL_ASSERT(removed == chosen.has_value());
  return chosen;
}

template <class Filter>
Result<bool> ObservedSeries<Filter>::remove_at(Digest key, const LinkDot& at, Delta* delta) {
  Filter* filter = links_.find(at.id());
  if (filter == nullptr) return Error{Errc::gap, "an entry of a link not seen here"};
  return Base::record(delta, at.id(), filter->shape(),
                      [&](auto&... part) { return filter->remove(key, at.dot, part...); });
}

template <class Filter>
Result<ObservedSeries<Filter>> ObservedSeries<Filter>::renamed(const ObservedSeries& trunk,
                                                               SiteId from, SiteId to) const {
  if (this->goal_ != trunk.goal_) return Error{Errc::mismatch, "series of different goals"};
  constexpr Error kTaken{Errc::invalid, "dots are renamed to a site that has none yet"};
  ObservedSeries split = *make(this->goal_);
  std::map<LinkId, Filter> links;
  for (const auto& [id, filter] : this->links()) {
    const Filter* const there = trunk.links_.find(id);
    if (from == to || filter.context().at(to) != 0) return kTaken;
    if (there == nullptr || !filter.fork_from(*there, from)) {
      links.emplace(id, filter);
      continue;
    }
    if (this->goal_.shared()) {
      links.emplace(id, *filter.renamed(*there, from, to));
      continue;
    }
    const std::uint64_t fork = *filter.fork_from(*there, from);
    const auto take = [&](LinkId into, SiteId site, const ObservedPart& part) {
      const Result<bool> taken =
          links.try_emplace(into, filter.shape()).first->second.merge(site, part);
      SEMEL_ASSERT(taken);
    };
    for (const auto& [site, last] : filter.context().sites()) {
      if (site != from) take(id, site, filter.part_between(site, 0, last));
    }
    if (fork > 0) take(id, from, filter.part_between(from, 0, fork));
    const ObservedPart branch = filter.part_between(from, fork, filter.context().at(from));
    take({id.chain == from ? to : id.chain, id.link}, to, branch.from_one());
  }
  split.links_.take(std::move(links), this->goal_);
  return split;
}

// Finds the links that may hold a key for many keys at once. A removal adds no entries, so later
// keys need no other links.
template <class Filter>
void ObservedSeries<Filter>::remove_all(std::span<const Digest> keys, std::span<bool> removed,
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
        const std::optional<Dot> least = links_.find(id)->least_dot(some[i]);
        if (!least) continue;
        const LinkDot candidate{id.chain, id.link, *least};
        if (!chosen || comes_before(candidate, *chosen)) chosen = candidate;
      }
      removed[start + i] = chosen && *remove_at(some[i], *chosen, delta);
    }
  }
}

template Result<bool> SeriesBase<GrowBloom>::merge_part(LinkId, const std::uint64_t&,
                                                        const std::span<const std::uint64_t>&);
template Result<bool> SeriesBase<ObservedCuckoo>::merge_part(LinkId, const SiteId&,
                                                             const ObservedPart&);
template class SeriesBase<GrowBloom>;
template class SeriesBase<GrowCuckoo>;
template class SeriesBase<ObservedCuckoo>;
template class GrowSeries<GrowBloom>;
template class GrowSeries<GrowCuckoo>;
template class ObservedSeries<ObservedCuckoo>;

}  // namespace semel
