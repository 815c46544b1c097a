// Series: a filter for a set whose size nobody knows beforehand, at sites that add on their own.
//
// Contract  What its filters promise, and: contains(y) for a key y never added is true with a
//           probability of at most fpr(), a bound on the mean over random digests, whatever the
//           number of keys. With Chains::own it holds however seldom the sites merge and however
//           unevenly they add, because no site fills another's links and each has its share of the
//           error; with Chains::shared only while they merge often: merged links hold more keys
//           than they were made for. With Chains::apart each chain adds the fpr of the goal, and
//           the sum is the bound. live_fpr() is what the links now amount to, in both. Deltas
//           that arrive out of order can fill a link of an observed series beyond its capacity for
//           a while: a removal that made room may come last. In the order of a DeltaLog they do
//           not.
// Links     A series is a product: a map from (chain, link) to a sub-filter, where an absent one is
//           in its initial state. A site adds to its own chain, or all sites to chain 0; any site
//           removes from any. Capacities and errors follow from the goal (crdt/series_goal.h), so
//           that sites make the same link in the same shape without a word. Grow-only: a key goes
//           to the last link of the chain, and when that is full to the next. Observed: to the
//           first link with room, so that the last ones empty under churn.
// Removal   By key and place (LinkDot), as an add gave it: exact. By key alone: keys that meet in
//           one link need not meet in another, so that the entry of another key in a later link can
//           be taken in place of the key's own, and that other key is lost: with a probability of
//           at most live_fpr(), a bound on the mean, and far less as a rule, because later links
//           have the longest fingerprints and are looked at first.
// Shrinking An emptied link frees its table by itself (crdt/internal/entry_store.h). What it has seen stays,
//           some bytes for each site: without it, merging an older state would bring back what was
//           removed. A link that was never used does not exist.
// Merge     Link by link: a join. compare() is its order. A merge that fails changes nothing.
// Deltas    Every update yields one, the changes of its links. See crdt/series_delta.h.
// Cost      Every link is looked at: sites * log2(keys / first_keys) lookups for an absent key. The
//           batch forms ask link by link, with loads ahead, and strike out what is found. bytes,
//           live_fpr, cardinality: those of every link.
// Memory    As the filters; a quarter of the room of a chain is unused in the mean.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/filter_series_v1.md.
// Source    Specifications 5 to 8 of the thesis (docs/papers.md), with a budget for each site.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <type_traits>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/internal/link_map.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series_delta.h"
#include "semel/crdt/series_goal.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

// The place of an entry in an observed series: dots are numbered within a link.
struct LinkDot {
  SiteId chain = 0;
  std::uint8_t link = 0;
  Dot dot;

  LinkId id() const { return {chain, link}; }
  bool operator==(const LinkDot&) const = default;
};

// What series of all filters share.
template <class Filter>
class SeriesBase {
 public:
  using Goal = SeriesGoal;
  using Delta = SeriesDelta<Filter>;
  static constexpr bool kRemoves = Filter::kRemoves;

  // REQUIRES, of all that take a key: the digest was made by the hash of the goal; of all that take
  // a delta to join: it has the goal of the series; of all that take spans: they are of equal size.
  bool contains(Digest key) const;
  void contains(std::span<const Digest> keys, std::span<bool> found) const;
  // Begins to load what contains() will look at first: for a caller that has other work meanwhile.
  void prefetch(std::span<const Digest> keys) const;

  // True if it changed anything. Errc::mismatch if the goals differ; Errc::limit if both together
  // have more sites than the goal allows; Errc::forked if a site has used its dots again; of a delta
  // also what the filters say; and no change then.
  Result<bool> merge(const SeriesBase& other);
  Result<bool> merge(const Delta& delta);
  // Whether merge(delta) would succeed.
  Result<void> admits(const Delta& delta) const;

  // Errc::mismatch if the goals differ; Errc::forked if a site has used its dots again.
  Result<std::partial_ordering> compare(const SeriesBase& other) const;

  const Goal& goal() const { return goal_; }
  // That of the goal; with Chains::apart for each chain that there is, as often as its links are
  // filled.
  double fpr() const;
  double live_fpr() const;
  double cardinality() const;      // the sum of what the links say
  std::uint64_t capacity() const;  // of the links that there are
  std::uint64_t bytes() const;
  // Takes the memory of the first link of a site's chain before a key comes, and keeps it until keys
  // come from elsewhere. The state stays the same: what is reserved is neither encoded nor copied.
  // REQUIRES: the series is empty.
  void reserve(SiteId site);
  std::uint64_t reserved_bytes() const { return spare_.bytes(); }  // those of bytes()
  const std::map<LinkId, Filter>& links() const { return links_.map(); }

  // A part of a link of another state, or of one that came in parts: what Filter::merge takes for
  // it. True if it changed anything. Errc::limit as for a state, and what Filter::merge says;
  // Errc::limit or Errc::full if there can be no such link; and no change then. REQUIRES: as
  // Filter::merge, for the shape that the goal gives to the link.
  template <class... Part>
  Result<bool> merge_part(LinkId id, const Part&... part);
  // Of any link that the goal admits.
  Result<typename Filter::Shape> shape_of(std::uint8_t link) const;
  // How many more keys a site adds, as a rule, before it opens a link; and the shape of that one.
  // Errc::limit or Errc::full if there can be none.
  std::uint64_t room(SiteId site) const;
  Result<typename Filter::Shape> next_shape(SiteId site) const;

  // Depends on the state alone; a keyed hasher makes it unforgeable.
  Digest digest(const Hasher& hasher) const;

  void encode(Sink out) const;  // equal states give equal bytes

  bool operator==(const SeriesBase&) const = default;

 protected:
  explicit SeriesBase(const Goal& goal) : goal_(goal) {}

  static Result<SeriesBase> make_base(const Goal& goal);
  static Result<SeriesBase> decode_base(ByteView in);

  using Links = LinkMap<Filter>;
  using Entry = typename Links::Entry;

  // Errc::limit if the site would be one more than the goal allows.
  Result<void> admits_site(SiteId site) const;
  // The number of the next link of a chain. Errc::limit if it has all that it can have.
  Result<std::uint8_t> next_number(SiteId chain) const;
  // A link that is not in the map yet: the next of the chain.
  Result<std::map<LinkId, Filter>> next_link(SiteId chain);

  // Calls `update` with the part of `delta` for this link, or with nothing if there is no delta.
  template <class Update>
  static auto record(Delta* delta, LinkId id, const typename Filter::Shape& shape, Update update) {
    return delta == nullptr ? update() : delta->change(id, shape, update);
  }

  Goal goal_;    // check() holds
  Links links_;  // none is in its initial state
  SpareLink<Filter> spare_;
};

template <class Filter>
class GrowSeries : public SeriesBase<Filter> {
 public:
  using typename SeriesBase<Filter>::Goal;
  using typename SeriesBase<Filter>::Delta;

  // An empty series. Errors as those of SeriesGoal::check, and of the filter's shape_for where the
  // first link would be impossible.
  static Result<GrowSeries> make(const Goal& goal);

  // True if the key was certainly not there before; false, and no change, if it was or seemed to
  // be. Errc::limit, and no change, if the site would be one more than the goal allows, or no
  // further link is possible. What changed joins `delta`.
  Result<bool> add(Digest key, SiteId site) { return add_one(key, site, nullptr); }
  Result<bool> add(Digest key, SiteId site, Delta& delta) { return add_one(key, site, &delta); }
  // The same for many keys, in order, up to the first new one for which there is no room; how many
  // that are: all, as a rule.
  std::size_t add(std::span<const Digest> keys, SiteId site, std::span<bool> added) {
    return add_all(keys, site, added, nullptr);
  }
  std::size_t add(std::span<const Digest> keys, SiteId site, std::span<bool> added, Delta& delta) {
    return add_all(keys, site, added, &delta);
  }

  // How many keys were added to each link that there is. A Bloom filter knows it no more when it
  // has been merged or decoded, and estimates it: whoever has kept the numbers beside the bytes
  // sets them, so that the next link is opened at the same key as where the numbers come from.
  std::map<LinkId, std::uint64_t> link_keys() const;
  // A cuckoo filter knows better, and stays with what it knows. REQUIRES: there is such a link.
  void set_link_keys(LinkId id, std::uint64_t keys);

  // Reads one series that fills `in` exactly. `in` may come from an enemy. Errc::mismatch if a link
  // has another shape than the goal gives it here; Errc::limit for too many sites.
  static Result<GrowSeries> decode(ByteView in);

 private:
  using Base = SeriesBase<Filter>;
  using Base::links_;

  explicit GrowSeries(Base&& base) : Base(std::move(base)) {}

  Result<bool> add_one(Digest key, SiteId site, Delta* delta);
  std::size_t add_all(std::span<const Digest> keys, SiteId site, std::span<bool> added,
                      Delta* delta);
  const typename Base::Entry* last_link(SiteId chain) const;  // null if there is none
  // Opens the next link for a key that no link contains.
  Result<bool> extend(Digest key, SiteId site, Delta* delta);
};

template <class Filter>
class ObservedSeries : public SeriesBase<Filter> {
 public:
  using typename SeriesBase<Filter>::Goal;
  using typename SeriesBase<Filter>::Delta;

  // An empty series. Errors as those of SeriesGoal::check, and of the filter's shape_for where the
  // first link would be impossible.
  static Result<ObservedSeries> make(const Goal& goal);

  // Adds the key once more, as an event of this site, and gives its place. Errc::limit, and no
  // change, if the site would be one more than the goal allows, or no further link is possible.
  // What changed joins `delta`. REQUIRES: a life adds to one object: not to a copy of it as well, nor
  // to one that was decoded (docs/replicas.md).
  Result<LinkDot> add(Digest key, SiteLife site) {
    return add_one(key, this->goal_.chain_of(site.site), site, nullptr);
  }
  Result<LinkDot> add(Digest key, SiteLife site, Delta& delta) {
    return add_one(key, this->goal_.chain_of(site.site), site, &delta);
  }
  // The same, to the chain of another site. Sites that add to one chain without merging fill its
  // links beyond their capacity. REQUIRES: the goal has Chains::apart.
  Result<LinkDot> add(Digest key, SiteLife site, SiteId chain) {
    SEMEL_ASSERT(this->goal_.chains == Chains::apart);
    return add_one(key, chain, site, nullptr);
  }
  // The same for many keys, in order, up to the first that fails; how many that are.
  std::size_t add(std::span<const Digest> keys, SiteLife site, std::span<LinkDot> dots) {
    return add_all(keys, site, dots, nullptr);
  }
  std::size_t add(std::span<const Digest> keys, SiteLife site, std::span<LinkDot> dots,
                  Delta& delta) {
    return add_all(keys, site, dots, &delta);
  }

  // How many entries may be of this key.
  std::uint64_t count(Digest key) const;

  // Removes, of all entries that may be of this key, one in the latest link, and of these the one
  // with the least dot, then in the least chain; gives its place, or nothing if there is none.
  std::optional<LinkDot> remove(Digest key) { return remove_one(key, nullptr); }
  std::optional<LinkDot> remove(Digest key, Delta& delta) { return remove_one(key, &delta); }
  // Removes the entry at this place; false, and no change, if it is not an entry of this key, or
  // not any more. Errc::gap if it has not been seen here; Errc::invalid if it is none.
  Result<bool> remove(Digest key, const LinkDot& at) { return remove_at(key, at, nullptr); }
  Result<bool> remove(Digest key, const LinkDot& at, Delta& delta) {
    return remove_at(key, at, &delta);
  }
  // Removes one entry for each key, chosen in the same way, in order.
  void remove(std::span<const Digest> keys, std::span<bool> removed) {
    remove_all(keys, removed, nullptr);
  }
  void remove(std::span<const Digest> keys, std::span<bool> removed, Delta& delta) {
    remove_all(keys, removed, &delta);
  }

  // This state, in which the dots that `from` made since it left `trunk` are dots of `to`; it then
  // merges with `trunk`. Links that merge as they are stay as they are. Errc::mismatch if the goals
  // differ; Errc::invalid if `to` has dots here. Places that add() gave for these dots are void.
  Result<ObservedSeries> renamed(const ObservedSeries& trunk, SiteId from, SiteId to) const;

  // Reads one series that fills `in` exactly. `in` may come from an enemy. Errc::mismatch if a link
  // has another shape than the goal gives it here; Errc::limit for too many sites.
  static Result<ObservedSeries> decode(ByteView in);

 private:
  using Base = SeriesBase<Filter>;
  using Base::links_;

  explicit ObservedSeries(Base&& base) : Base(std::move(base)) {}

  Result<LinkDot> add_one(Digest key, SiteId chain, SiteLife site, Delta* delta);
  std::size_t add_all(std::span<const Digest> keys, SiteLife site, std::span<LinkDot> dots,
                      Delta* delta);
  // Opens the next link of a chain for a key.
  Result<LinkDot> extend(Digest key, SiteId chain, SiteLife site, Delta* delta);
  std::optional<LinkDot> remove_one(Digest key, Delta* delta);
  Result<bool> remove_at(Digest key, const LinkDot& at, Delta* delta);
  void remove_all(std::span<const Digest> keys, std::span<bool> removed, Delta* delta);
};

template <class Filter>
using Series = std::conditional_t<Filter::kRemoves, ObservedSeries<Filter>, GrowSeries<Filter>>;

using GrowBloomSeries = Series<GrowBloom>;
using GrowCuckooSeries = Series<GrowCuckoo>;
using ObservedCuckooSeries = Series<ObservedCuckoo>;

extern template class SeriesBase<GrowBloom>;
extern template class SeriesBase<GrowCuckoo>;
extern template class SeriesBase<ObservedCuckoo>;
extern template class GrowSeries<GrowBloom>;
extern template class GrowSeries<GrowCuckoo>;
extern template class ObservedSeries<ObservedCuckoo>;

}  // namespace semel
