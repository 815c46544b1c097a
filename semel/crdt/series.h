// Series: a filter for a set whose size nobody knows beforehand, at sites that add independently.
//
// Contract  Everything that its filters promise. In addition, contains(y) for a key y never added
//           is true with a probability of at most fpr(), whatever the number of keys. This bounds
//           the mean over random digests.
//           With SeriesChains::own the bound holds however seldom the sites merge and however
//           unevenly they add, because no site fills another's links and each has its share of the
//           error.
//           With SeriesChains::apart each chain adds the fpr of the goal, and the sum is the bound.
//           live_fpr() is computed from the links as they are now.
//           Deltas that arrive out of order can fill a link of an observed series beyond its
//           capacity for a while, because a removal that made room may come last. In the order of a
//           DeltaLog they do not.
// Links     A series is a product: a map from (chain, link) to a sub-filter, where an absent link
//           is in its initial state. A site adds to its own chain. Any site removes from any
//           chain. Capacities and errors follow from the goal (crdt/series_goal.h), so sites create
//           the same link in the same shape without coordination. Grow-only: a key goes to the last
//           link of the chain, or to a new link if that is full. Observed: a key goes to the first
//           link with room, so that the last links empty under churn.
// Removal   A removal by key and place (LinkDot, as add() returned it) is exact. A removal by key
//           alone may take another key's entry in a later link instead of the key's own, because
//           keys that collide in one link need not collide in another. That other key is then lost.
//           The probability is at most live_fpr(), a bound on the mean. It is usually far less,
//           because later links have the longest fingerprints and are searched first.
// Merge     Link by link: a join. compare() is its order. A merge that fails changes nothing. Every
//           update yields a delta, the changes of its links.
// Cost      Every link is searched: sites * log2(keys / first_keys) lookups for an absent key. The
//           batch forms ask link by link, prefetch, and drop the keys that are found. bytes,
//           live_fpr, cardinality: the cost of every link.
// Memory    As the filters. A quarter of the room of a chain is unused on average. An emptied link
//           frees its table. It keeps what it has seen, some bytes for each site. Without that,
//           merging an older state would bring back removed entries. A link that was never used
//           does not exist.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/series_v1.md; a delta: docs/formats/series_delta_v1.md.
// Source    Specifications 5 to 8 of the thesis (docs/papers.md), with an error budget for each
//           site. With one site it is a scalable Bloom filter (Almeida, Baquero, Preguiça &
//           Hutchison, IPL 101(6), 2007), whose error budget falls as 1/i^2 instead of
//           geometrically.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <type_traits>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/hidden.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series_goal.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

namespace crdt_internal {
template <class Filter>
struct Links;
struct SeriesParts;
}  // namespace crdt_internal

// The place of an entry in an observed series. Dots are numbered within a link.
struct LinkDot {
  SiteId chain = 0;
  std::uint8_t link = 0;
  Dot dot;

  LinkId id() const { return {chain, link}; }
  bool operator==(const LinkDot&) const = default;
};

// The changes of a series, link by link. Deltas merge in any order, any number of times.
template <class Filter>
class SEMEL_API SeriesDelta {
 public:
  using Part = typename Filter::Delta;

  // Makes an empty delta. REQUIRES: goal.check().
  explicit SeriesDelta(const SeriesGoal& goal);

  // Errc::mismatch if the goals differ or the two contradict each other about a link. Errc::limit
  // if both together come from more sites than the goal allows. Nothing changes then.
  Result<void> merge(const SeriesDelta& other);

  const SeriesGoal& goal() const { return goal_; }
  bool empty() const { return parts_.empty(); }
  std::uint64_t bytes() const;
  const std::map<LinkId, Part>& parts() const { return parts_; }

  void encode(Sink out) const;  // equal deltas give equal bytes
  // Errc::mismatch if a part does not have the shape that the goal gives it here. Errc::limit for
  // too many sites.
  static Result<SeriesDelta> decode(ByteView in);

  bool operator==(const SeriesDelta&) const = default;

 private:
  template <class>
  friend class SeriesBase;
  friend struct crdt_internal::SeriesParts;

  SeriesGoal goal_;
  std::map<LinkId, Part> parts_;  // none is empty
};

// The common part of series of all filters.
template <class Filter>
class SEMEL_API SeriesBase {
 public:
  using Goal = SeriesGoal;
  using Delta = SeriesDelta<Filter>;
  static constexpr bool kRemoves = Filter::kRemoves;

  // REQUIRES for every key: the digest was made by the hash of the goal. REQUIRES for every delta
  // to join: it has the goal of the series. REQUIRES for spans: they are of equal size.
  bool contains(Digest key) const;
  void contains(std::span<const Digest> keys, std::span<bool> found) const;
  // Prefetches what contains() will look at first, for a caller that has other work meanwhile.
  void prefetch(std::span<const Digest> keys) const;

  // Returns true if anything changed. Errc::mismatch if the goals differ. Errc::limit if both
  // together have more sites than the goal allows. Errc::forked if a site has reused its dots. A
  // delta may also fail with an error of the filters. Nothing changes then.
  Result<bool> merge(const SeriesBase& other);
  Result<bool> merge(const Delta& delta);
  // Returns an error if merge(delta) would fail.
  Result<void> admits(const Delta& delta) const;

  // Errc::mismatch if the goals differ. Errc::forked if a site has reused its dots.
  Result<std::partial_ordering> compare(const SeriesBase& other) const;

  const Goal& goal() const { return goal_; }
  // Returns the fpr of the goal. With SeriesChains::apart it counts once for each chain. A chain
  // whose links hold more entries than their capacity counts as often as its fullest link is
  // filled.
  double fpr() const;
  double live_fpr() const;
  double cardinality() const;      // the sum over the links
  std::uint64_t capacity() const;  // of all existing links
  std::uint64_t bytes() const;
  // Returns bytes() of a series with one chain of full links that has room for so many keys. Fails
  // like make(), and with Errc::limit or Errc::full if a chain cannot become so large.
  static Result<std::uint64_t> bytes_for(const Goal& goal, std::uint64_t keys);
  // Allocates the first link of a site's chain before a key comes, and keeps it until keys come
  // from elsewhere. The state stays the same: the reserved link is neither encoded nor copied.
  // REQUIRES: the series is empty.
  void reserve(SiteId site);
  std::uint64_t reserved_bytes() const;  // part of bytes()
  const std::map<LinkId, Filter>& links() const;

  // Returns the shape of any link that the goal admits.
  Result<typename Filter::Shape> shape_of(std::uint8_t link) const;
  // room() returns how many more keys a site usually adds before it opens a link. next_shape()
  // returns the shape of that link. Errc::limit or Errc::full if it is impossible.
  std::uint64_t room(SiteId site) const;
  Result<typename Filter::Shape> next_shape(SiteId site) const;

  // For hosts that move memory. Allocates the memory of a link anew, unless it has more than
  // `most_bytes`. The state stays. Returns false if there is no link with this index.
  bool renew(std::uint64_t index, std::uint64_t most_bytes);

  // The digest depends on the state alone. A keyed hasher makes it unforgeable.
  Digest digest(const Hasher& hasher) const;

  void encode(Sink out) const;  // equal states give equal bytes

  bool operator==(const SeriesBase&) const = default;

 protected:
  explicit SeriesBase(const Goal& goal);

  static Result<SeriesBase> make_base(const Goal& goal);
  // Reads the keys of each link too, if they were written.
  static Result<SeriesBase> decode_base(ByteView in, bool counted);
  void encode_base(Sink out, bool counted) const;

  // Errc::limit if the site would exceed the number that the goal allows.
  Result<void> admits_site(SiteId site) const;
  // Returns the number of the next link of a chain. Errc::limit if the chain is at its end.
  Result<std::uint8_t> next_number(SiteId chain) const;
  // Makes the next link of the chain, which is not in the map yet.
  Result<std::map<LinkId, Filter>> next_link(SiteId chain);

  Goal goal_;  // check() holds
  Hidden<crdt_internal::Links<Filter>> body_;

 private:
  friend struct crdt_internal::SeriesParts;
};

template <class Filter>
class SEMEL_API GrowSeries : public SeriesBase<Filter> {
 public:
  using typename SeriesBase<Filter>::Goal;
  using typename SeriesBase<Filter>::Delta;

  // Makes an empty series. Fails like SeriesGoal::check, or like the filter's shape_for if the
  // first link is impossible.
  static Result<GrowSeries> make(const Goal& goal);

  // Returns true if the key was certainly absent. Returns false, and changes nothing, if it was
  // present or seemed to be. Errc::limit, and no change, if the site would exceed the number that
  // the goal allows, or if no further link is possible. Errc::full, and no change, if the one link
  // of growth 0 is full. Adds the change to `delta`, if given.
  Result<bool> add(Digest key, SiteId site, Delta* delta = nullptr);
  // Adds many keys, in order, up to the first new one for which there is no room. Returns the
  // number of keys before that one, usually all.
  std::size_t add(std::span<const Digest> keys, SiteId site, std::span<bool> added,
                  Delta* delta = nullptr);

  // Returns how many keys were added to each existing link, and to all. A Bloom filter that was
  // merged or decoded no longer knows this number and estimates it.
  std::map<LinkId, std::uint64_t> link_keys() const;
  std::uint64_t keys() const;

  // Errc::mismatch if a link does not have the shape that the goal gives it here. Errc::limit for
  // too many sites.
  static Result<GrowSeries> decode(ByteView in);

  // Encodes and decodes the state and link_keys(). So the copy opens its next link at the same key
  // as the original. Equal states that were reached in other ways may give different bytes.
  void encode_counted(Sink out) const { this->encode_base(out, true); }
  static Result<GrowSeries> decode_counted(ByteView in);

 private:
  using Base = SeriesBase<Filter>;

  explicit GrowSeries(Base&& base) : Base(std::move(base)) {}

  // Opens the next link for a key that no link contains.
  Result<bool> extend(Digest key, SiteId site, Delta* delta);
};

template <class Filter>
class SEMEL_API ObservedSeries : public SeriesBase<Filter> {
 public:
  using typename SeriesBase<Filter>::Goal;
  using typename SeriesBase<Filter>::Delta;

  // Makes an empty series. Fails like SeriesGoal::check, or like the filter's shape_for if the
  // first link is impossible.
  static Result<ObservedSeries> make(const Goal& goal);

  // Adds the key once more, as an event of this site, and returns its place. Errc::limit, and no
  // change, if the site would exceed the number that the goal allows, or if no further link is
  // possible. Errc::full, and no change, if the one link of growth 0 is full. Adds the change to
  // `delta`, if given. REQUIRES: a life adds to one object only, never to a copy or a decoded one
  // (docs/replicas.md).
  Result<LinkDot> add(Digest key, SiteLife site, Delta* delta = nullptr);
  // Adds to the chain of another site. Sites that add to one chain without merging fill its links
  // beyond their capacity. REQUIRES: the goal has SeriesChains::apart.
  Result<LinkDot> add_to(SiteId chain, Digest key, SiteLife site);
  // Does the same, but opens no link. Errc::full, and no change, if a further link is needed: no
  // link of the chain has room for this key.
  Result<LinkDot> add_within(SiteId chain, Digest key, SiteLife site);
  // Adds many keys, in order, up to the first that fails. Returns the number of keys before that
  // one.
  std::size_t add(std::span<const Digest> keys, SiteLife site, std::span<LinkDot> dots,
                  Delta* delta = nullptr);

  // Returns how many entries may belong to this key.
  std::uint64_t count(Digest key) const;

  // Removes one of the entries that may belong to this key: one in the latest link, among these the
  // least dot, then the least chain. Returns its place, or nothing if there is no entry.
  std::optional<LinkDot> remove(Digest key, Delta* delta = nullptr);
  // Removes the entry at this place. Returns false, and changes nothing, if it is not an entry of
  // this key or was already removed. Errc::gap if it has not been seen here. Errc::invalid if there
  // is no such place.
  Result<bool> remove(Digest key, const LinkDot& at, Delta* delta = nullptr);
  // Removes one entry for each key, in order, chosen in the same way.
  void remove(std::span<const Digest> keys, std::span<bool> removed, Delta* delta = nullptr);

  // Returns this state, but the dots that `from` made since it left `trunk` become dots of `to`.
  // The result merges with `trunk`. Links that already merge stay as they are. Places that add()
  // returned for the renamed dots become invalid. Errc::mismatch if the goals differ. Errc::invalid
  // if `to` has dots here.
  Result<ObservedSeries> renamed(const ObservedSeries& trunk, SiteId from, SiteId to) const;

  // Errc::mismatch if a link does not have the shape that the goal gives it here. Errc::limit for
  // too many sites.
  static Result<ObservedSeries> decode(ByteView in);

 private:
  using Base = SeriesBase<Filter>;

  explicit ObservedSeries(Base&& base) : Base(std::move(base)) {}

  Result<LinkDot> add_one(Digest key, SiteId chain, SiteLife site, Delta* delta);
  // Adds to the first link of a chain that has room for a key. Errc::full if there is none.
  Result<LinkDot> add_to_links(Digest key, SiteId chain, SiteLife site, Delta* delta);
  // Opens the next link of a chain for a key.
  Result<LinkDot> extend(Digest key, SiteId chain, SiteLife site, Delta* delta);
};

template <class Filter>
using Series = std::conditional_t<Filter::kRemoves, ObservedSeries<Filter>, GrowSeries<Filter>>;

using GrowBloomSeries = Series<GrowBloom>;
using GrowCuckooSeries = Series<GrowCuckoo>;
using ObservedCuckooSeries = Series<ObservedCuckoo>;

extern template class SeriesDelta<GrowBloom>;
extern template class SeriesDelta<GrowCuckoo>;
extern template class SeriesDelta<ObservedCuckoo>;
extern template class SeriesBase<GrowBloom>;
extern template class SeriesBase<GrowCuckoo>;
extern template class SeriesBase<ObservedCuckoo>;
extern template class GrowSeries<GrowBloom>;
extern template class GrowSeries<GrowCuckoo>;
extern template class ObservedSeries<ObservedCuckoo>;

}  // namespace semel
