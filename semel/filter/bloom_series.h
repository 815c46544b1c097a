// BloomSeries: a Bloom filter for a set whose size nobody knows beforehand.
//
// Contract  add(x) is true the first time and false ever after, except that for a key never added it
//           is false with a probability of at most fpr(), whatever the number of keys: filter i of
//           the series (1, 2, ...) is made for the error fpr * 6 / (pi^2 * i^2) at its capacity, and
//           these add up to fpr. That is a bound on the mean over random digests; live_fpr() is what
//           the bits now in the series amount to.
// Cost      Every filter is looked at: about log2(keys / first_keys) cache misses for a new key.
// Memory    Each filter has room for twice the keys of the one before, so that a quarter of the room
//           is unused in the mean. Filter i takes 2.9 * log2(i) bits per key more than the first.
// Threads   const members may run at once; any other call needs the object to itself.
// Source    Almeida, Baquero, Preguiça & Hutchison, 'Scalable Bloom filters', IPL 101(6), 2007, with
//           a budget that falls as 1/i^2 in place of a geometric one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/result.h"
#include "semel/filter/bloom_filter.h"

namespace semel {

class BloomSeries {
 public:
  struct Goal {
    double fpr;
    std::uint64_t first_keys = 1 << 16;  // the capacity of the first filter
    HashId hash = {};
  };

  // Errc::invalid unless first_keys > 0 and 0 < fpr < 1; Errc::limit where the first filter would be
  // impossible (see BloomShape::for_goal).
  static Result<BloomSeries> make(const Goal& goal);

  // True if the key was certainly not there before; false if it was, or seemed to be.
  // Errc::limit, and no change, when the next filter would be beyond limits::kFilterBits.
  // REQUIRES: the digest was made by the hash of the goal.
  Result<bool> add(Digest key);
  bool contains(Digest key) const;

  // The same for many keys, in order: equal keys among them are recognised. Errc::limit leaves the
  // keys added that still had room. REQUIRES: the spans are of equal size.
  Result<void> add(std::span<const Digest> keys, std::span<bool> added);

  double fpr() const { return goal_.fpr; }
  double live_fpr() const;
  std::uint64_t keys() const { return keys_; }  // for which add was true
  std::uint64_t bytes() const;
  std::size_t filters() const { return links_.size(); }

 private:
  struct Link {
    BloomFilter filter;
    std::uint64_t capacity;
    std::uint64_t keys = 0;  // at most capacity
  };

  explicit BloomSeries(const Goal& goal) : goal_(goal) {}
  Result<void> grow();

  Goal goal_;
  std::vector<Link> links_;  // oldest first, never empty; only the last takes keys
  std::uint64_t keys_ = 0;
};

}  // namespace semel
