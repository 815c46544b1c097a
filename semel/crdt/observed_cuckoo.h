// ObservedCuckoo: a cuckoo filter to which every site adds, and from which it removes what it has
// seen, on its own; all sites agree.
//
// Contract  Every add makes an entry with a dot of its own. A removal takes out one entry that it
//           has observed, at every site that it reaches and for good; an add that it had not seen
//           stays. Of several entries that may be the key's, the one with the least dot goes, so
//           that sites that remove the same key at once remove the same entry. A key that was added
//           is found until it is removed, if every removal is causally safe (crdt/causality.h), or
//           names the dot of an add of that very key: such a removal cannot take another key's
//           entry, however fingerprints collide.
// Merge     Entries in both states, in whatever slots, and entries in one that the other has not
//           seen: a join. compare() is its order: less when all that was seen here was seen there
//           and all that was removed here is removed there. A merge never fails for want of room.
// Lives     An add names the site and its life (crdt/internal/lives.h). A state, delta or part in which a site
//           has used its dots again is refused with Errc::forked, which is about that site.
//           renamed() gives the dots of one of the two histories to another site, so that both
//           merge (docs/replicas.md).
// Deltas    An update yields the entry or the removal, with its dot. Deltas merge with deltas in
//           any order. A state takes a delta only if it has seen what came before: Errc::gap
//           otherwise, and the sender has to send its state. Removals and adds that come in another
//           order than they were made (a DeltaLog keeps it) can hide a key that collides with
//           another, until all have come.
// Cost      As CuckooFilter, and a look at the dots for a removal. merge of a state: two looks for
//           each entry; of a delta: its entries and removals.
// Memory    As CuckooFilter with 64 bits for each dot, once an eighth is full; less before.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/observed_cuckoo_v2.md and observed_delta_v2.md.
// Source    Specification 4 of the thesis (docs/papers.md), with its faults mended.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/internal/entry_store.h"
#include "semel/crdt/internal/lives.h"
#include "semel/crdt/version_vector.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

// What happened to entries, by dot: each was added, or added and removed.
class ObservedDelta {
 public:
  // Nothing yet. REQUIRES: shape.valid() and shape.payload_bits == Dot::kBits.
  explicit ObservedDelta(const CuckooShape& shape);

  // Errc::mismatch, and no change, if the shapes differ; Errc::forked, and no change, if a dot is of
  // one life or entry here and of another there.
  Result<void> merge(const ObservedDelta& other);

  const CuckooShape& shape() const { return shape_; }
  bool empty() const { return changes_.empty(); }
  std::vector<SiteId> sites() const;  // whose dots are in it, ascending
  std::uint64_t bytes() const {       // with the nodes of the map
    return changes_.size() * (sizeof(Change) + 48) + lives_.runs().size() * sizeof(LifeRun);
  }

  void encode(Sink out) const;                       // equal deltas give equal bytes
  static Result<ObservedDelta> decode(ByteView in);  // `in` may come from an enemy

  bool operator==(const ObservedDelta&) const = default;

 private:
  friend class ObservedCuckoo;

  struct Change {
    std::uint64_t pair;
    std::uint64_t fingerprint;
    bool removed;
    bool operator==(const Change&) const = default;
  };

  // REQUIRES: the run ends with the dot.
  void record(std::uint64_t dot, const Change& change, const LifeRun& run);
  // Null unless a dot is of two entries.
  const std::uint64_t* dot_of_two(const ObservedDelta& other) const;

  CuckooShape shape_;
  std::map<std::uint64_t, Change> changes_;  // by packed dot
  Lives lives_;                              // of these dots
};

// What became of some consecutive dots of one site, those after number `first` up to number `last`:
// the entries that are there, by ascending number (their payload); the others were removed.
struct ObservedPart {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::vector<CuckooEntry> entries;
  std::vector<LifeRun> lives;  // of these dots, by number; the first run may begin before them

  bool sound(const CuckooShape& shape) const;
  // The same dots as the first ones of another site. REQUIRES: it is sound.
  ObservedPart from_one() const;
  bool operator==(const ObservedPart&) const = default;
};

class ObservedCuckoo {
 public:
  using Shape = CuckooShape;
  using Delta = ObservedDelta;
  static constexpr bool kRemoves = true;

  // Errors as those of CuckooShape::for_goal.
  static Result<Shape> shape_for(std::uint64_t keys, double fpr, HashId hash);

  // REQUIRES: shape.valid() and shape.payload_bits == Dot::kBits.
  explicit ObservedCuckoo(const Shape& shape);

  // Adds the key once more, as an event of this site, and gives its dot. Errc::full, and no change,
  // if there is no room; Errc::limit if the site has used up its numbers. What changed joins
  // `delta`. REQUIRES, of all that take a key: the digest was made by shape().hash; of all that
  // take a delta: it has the shape of the filter. A life adds to one object: not to a copy of it as
  // well, nor to one that was decoded.
  Result<Dot> add(Digest key, SiteLife site);
  Result<Dot> add(Digest key, SiteLife site, Delta& delta);
  // The same for many keys, in order, up to the first that fails; how many that are. Their dots
  // follow one another.
  std::size_t add(std::span<const Digest> keys, SiteLife site);
  std::size_t add(std::span<const Digest> keys, SiteLife site, Delta& delta);

  // Takes the memory of a full filter now, and keeps it. The state stays the same.
  void reserve() { entries_.reserve(); }
  bool contains(Digest key) const { return entries_.contains(key); }
  // Brings the lines that contains(key) will need first.
  [[gnu::always_inline]] void prefetch(Digest key) const { entries_.prefetch(key); }
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // The dots of all entries that may be of this key, ascending; how many they are, and the least of
  // them, without an allocation.
  std::vector<Dot> dots(Digest key) const;
  std::uint64_t count(Digest key) const { return entries_.count(shape().spot_of(key)); }
  std::optional<Dot> least_dot(Digest key) const;

  // Removes the entry with the least dot that may be of this key, and gives the dot; nothing if
  // there is none.
  std::optional<Dot> remove(Digest key);
  std::optional<Dot> remove(Digest key, Delta& delta);
  // Removes the entry of this dot; false, and no change, if it is not an entry of this key, or not
  // any more. Errc::gap if the dot has not been seen here; Errc::invalid if it is none.
  Result<bool> remove(Digest key, Dot dot);
  Result<bool> remove(Digest key, Dot dot, Delta& delta);
  // Removes one entry for each key, the least dot each time; removed[i] says whether there was one.
  // REQUIRES: the spans are of equal size.
  void remove(std::span<const Digest> keys, std::span<bool> removed);
  void remove(std::span<const Digest> keys, std::span<bool> removed, Delta& delta);

  // True if it changed anything. Errc::mismatch if the shapes differ; Errc::forked if a site has used
  // its dots again; of a delta also Errc::gap; and no change then.
  Result<bool> merge(const ObservedCuckoo& other);
  Result<bool> merge(const Delta& delta);
  // Whether merge(delta) would succeed.
  Result<void> admits(const Delta& delta) const;

  // What became of the next dots of a site after number `from`: up to one before which there are
  // nearly `most` entries, and to the last one seen if they are fewer. The last of a part is the
  // last seen, or a multiple of kPartStep. REQUIRES: most >= kPartStep; from <= context().at(site).
  static constexpr std::uint64_t kPartStep = 1 << 16;
  ObservedPart part(SiteId site, std::uint64_t from, std::uint64_t most) const;
  // The same for the dots after number `from` up to number `to`, however many entries that are.
  // REQUIRES: from < to <= context().at(site).
  ObservedPart part_between(SiteId site, std::uint64_t from, std::uint64_t to) const;
  // Joins a part of a state, as events of this site, which may have another id there. True if it
  // changed anything. Errc::gap if what came before the part has not been seen here; Errc::forked if
  // a dot is of one life or entry here and of another there; and no change then. REQUIRES:
  // part.sound(shape()).
  Result<bool> merge(SiteId site, const ObservedPart& part);

  // The last number of a site up to which both states have the same events, if it then made others
  // here than there. REQUIRES: the shapes are equal.
  std::optional<std::uint64_t> fork_from(const ObservedCuckoo& trunk, SiteId site) const;
  // This state, in which the dots that `from` made since it left `trunk` are dots of `to`, numbered
  // from 1 on; it then merges with `trunk`. The same state if there is no such fork. Errc::mismatch
  // if the shapes differ; Errc::invalid if `to` has dots here.
  Result<ObservedCuckoo> renamed(const ObservedCuckoo& trunk, SiteId from, SiteId to) const;

  // Errc::mismatch if the shapes differ; Errc::forked if a site has used its dots again.
  Result<std::partial_ordering> compare(const ObservedCuckoo& other) const;

  const Shape& shape() const { return entries_.shape(); }
  const VersionVector& context() const { return context_; }  // what has been seen
  const Lives& lives() const { return lives_; }              // and in which lives it was made
  std::uint64_t cardinality() const { return entries_.size(); }
  std::uint64_t keys() const { return entries_.size(); }
  std::uint64_t capacity() const { return shape().capacity(); }
  double live_fpr() const { return shape().expected_fpr(entries_.size()); }
  double load() const;                                            // may exceed 1
  std::uint64_t overflow() const { return entries_.overflow(); }  // entries beside the table
  std::uint64_t bytes() const { return entries_.bytes(); }

  // Depends on the state alone; a keyed hasher makes it unforgeable.
  Digest digest(const Hasher& hasher) const;

  void encode(Sink out) const;                        // equal states give equal bytes
  static Result<ObservedCuckoo> decode(ByteView in);  // `in` may come from an enemy

  bool operator==(const ObservedCuckoo& other) const;

 private:
  Result<Dot> add_to(Digest key, SiteLife site, Delta* delta);
  std::size_t add_to(std::span<const Digest> keys, SiteLife site, Delta* delta);
  std::optional<Dot> remove_from(Digest key, Delta* delta);
  Result<bool> remove_from(Digest key, Dot dot, Delta* delta);
  void remove_from(std::span<const Digest> keys, std::span<bool> removed, Delta* delta);
  bool at_most(const ObservedCuckoo& other) const;
  std::vector<std::uint64_t> entries_of_sites() const;

  EntryStore entries_;  // their payloads are packed dots, all of them in the context
  VersionVector context_;
  Lives lives_;  // of all dots of the context
};

}  // namespace semel
