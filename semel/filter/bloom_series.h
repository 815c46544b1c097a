// BloomSeries: a Bloom filter for a set whose size nobody knows beforehand.
//
// Contract  add(x) is true the first time and false ever after. For a key never added it is wrongly
//           false with a probability of at most fpr(), whatever the number of keys. Filter i of the
//           series (1, 2, ...) is made for the error fpr * 6 / (pi^2 * i^2) at its capacity, and
//           these errors add up to fpr. fpr() bounds the mean over random digests; live_fpr() is
//           computed from the bits that are now in the series.
// Growth    The next filter is made when a new key finds the last one full. A known key changes
//           nothing.
// Cost      Every filter is searched: about log2(keys / first_keys) cache misses for a new key.
//           live_fpr, encode, decode and == pass over all the bits.
// Memory    Each filter has room for twice the keys of the one before, so a quarter of the room is
//           unused on average. Filter i takes 2.9 * log2(i) bits per key more than the first.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/series_v1.md.
// Source    Almeida, Baquero, Preguiça & Hutchison, 'Scalable Bloom filters', IPL 101(6), 2007.
//           Our error budget falls as 1/i^2 instead of geometrically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/filter/bloom_filter.h"

namespace semel {

class BloomSeries {
 public:
  struct Goal {
    double fpr;
    std::uint64_t first_keys = 1 << 16;  // the capacity of the first filter
    HashId hash = {};
    bool operator==(const Goal&) const = default;
  };

  // Errc::invalid unless first_keys > 0 and 0 < fpr < 1. Errc::limit if the first filter is
  // impossible (see BloomShape::for_goal).
  static Result<BloomSeries> make(const Goal& goal);

  // Returns bytes() of a series with so many keys. Fails like make(), and with Errc::limit if a
  // series cannot become so large.
  static Result<std::uint64_t> bytes_for(const Goal& goal, std::uint64_t keys);

  // Returns true if the key was certainly absent. Returns false if it was present or seemed to be.
  // Errc::limit, and no change, if the next filter is impossible (see BloomShape::for_goal).
  // REQUIRES: the digest was made by the hash of the goal.
  Result<bool> add(Digest key);
  bool contains(Digest key) const;

  // Adds or looks up many keys, in order. Equal keys in a batch are recognised. After Errc::limit
  // the keys that still had room stay added. REQUIRES: the spans are of equal size.
  Result<void> add(std::span<const Digest> keys, std::span<bool> added);
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // Adds keys up to the first new one for which there is no room. Returns the number of keys before
  // that one, usually all. The rest are not looked at. REQUIRES: the spans are of equal size.
  std::size_t add_while_room(std::span<const Digest> keys, std::span<bool> added);

  const Goal& goal() const { return goal_; }
  double fpr() const { return goal_.fpr; }
  double live_fpr() const;
  std::uint64_t keys() const { return keys_; }  // the calls of add() that returned true
  std::uint64_t bytes() const;
  std::size_t filters() const { return links_.size(); }

  // Appends the encoding to `out`. Equal series give equal bytes.
  void encode(Sink out) const;
  // Reads one series that fills `in` exactly. `in` is untrusted.
  static Result<BloomSeries> decode(ByteView in);

  bool operator==(const BloomSeries&) const = default;

 private:
  struct Link {
    BloomFilter filter;
    std::uint64_t capacity;
    std::uint64_t keys = 0;  // at most capacity
    bool operator==(const Link&) const = default;
  };

  explicit BloomSeries(const Goal& goal) : goal_(goal) {}

  // The goals of filter `link` of a series, counted from 0.
  static double share_of(const Goal& goal, std::size_t link);  // of the error
  static Result<std::uint64_t> capacity_of(const Goal& goal, std::size_t link);
  static Result<BloomShape> shape_of(const Goal& goal, std::size_t link);
  Result<void> grow();

  Goal goal_;
  std::vector<Link> links_;  // oldest first, never empty; all but the last are full
  std::uint64_t keys_ = 0;
};

}  // namespace semel
