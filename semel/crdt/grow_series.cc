// GrowSeries: a series whose keys stay. series.cc has what all series share.
#include <algorithm>

#include "semel/core/assert.h"
#include "semel/crdt/internal/link_map.h"
#include "semel/crdt/internal/series_parts.h"
#include "semel/crdt/series.h"
#include "semel/filter/internal/candidates.h"

namespace semel {

using crdt_internal::SeriesParts;

using filter_internal::Candidates;

namespace {

constexpr std::size_t kChunk = Candidates::kChunk;

}  // namespace

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
        SeriesParts::record(delta, mine.back().id, filter,
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
  const Result<bool> added = SeriesParts::record(delta, fresh.begin()->first, filter, add);
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
        taken = SeriesParts::record(delta, last->id, filter,
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

template class GrowSeries<GrowBloom>;
template class GrowSeries<GrowCuckoo>;

}  // namespace semel
