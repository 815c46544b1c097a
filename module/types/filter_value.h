// FilterValue: what the filters behind keys of BF.* and CF.* have in common.
//
// It is a series (semel/crdt/series.h) with chains that are apart, the tags of these chains, and
// the secret whose hash made the digests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "module/host/value.h"
#include "module/types/chain_tags.h"
#include "module/types/secret.h"
#include "semel/crdt/series.h"
#include "semel/hash/internal/checksum.h"

namespace semel::module {

template <class Series>
class FilterValue : public host::Value {
 public:
  // A chunk of a dump. A dump begins at position 0, with a header. `next` is the position of the
  // following chunk. At the end it is 0, and there are no bytes.
  struct Chunk {
    std::uint64_t next;
    Bytes bytes;
  };

  // REQUIRES: hasher() made the digests.
  bool contains(Digest key) const { return series_.contains(key); }
  void contains(std::span<const Digest> keys, std::span<bool> found) const {
    series_.contains(keys, found);
  }
  void prefetch(std::span<const Digest> keys) const { series_.prefetch(keys); }

  const ChainTags& chains() const { return chains_; }
  const Secret& secret() const { return secret_; }
  const Hasher& hasher() const { return hasher_; }
  // Returns true if two filters can merge.
  bool matches(const FilterValue& other) const { return series_.goal() == other.series_.goal(); }
  std::size_t filters() const { return std::max<std::size_t>(1, series_.links().size()); }
  double error_bound() const { return series_.fpr(); }
  virtual std::uint64_t first_bytes() const = 0;  // of the first link, when it is full

  std::uint64_t bytes() const override {
    // A link also has a node and a place in the list.
    constexpr std::uint64_t kOfLink = sizeof(series_.links().begin()->second) + 96;
    return sizeof(*this) + series_.bytes() + kOfLink * series_.links().size() + 8 * chains_.size();
  }
  // An empty filter with a chain of its own keeps the memory of its first link.
  std::uint64_t unreserved_bytes() const override {
    const bool wanted = chains_.own() && series_.links().empty() && series_.reserved_bytes() == 0;
    return wanted ? first_bytes() : 0;
  }
  void reserve() override {
    if (unreserved_bytes() != 0) series_.reserve(*chains_.own());
  }
  // Renews a link, unless it is large.
  bool renew(std::uint64_t section) override {
    constexpr std::uint64_t kLarge = std::uint64_t{64} << 10;
    return series_.renew(section, kLarge);
  }
  std::size_t parts() const override { return 1 + series_.links().size(); }

 protected:
  FilterValue(const Secret& secret, const Hasher& hasher, Series series)
      : secret_(secret), hasher_(hasher), series_(std::move(series)) {}

  // Returns the bytes without the reserved link.
  std::uint64_t used_bytes() const { return series_.bytes() - series_.reserved_bytes(); }
  // Returns a checksum of the goal and the hash: two filters merge only if they agree on both.
  std::uint64_t goal_name() const {
    const SeriesGoal& goal = series_.goal();
    Bytes bytes;
    bytes.reserve(28);  // without this, g++ 12 warns of an overflow that cannot happen
    Writer w(bytes);
    w.f64(goal.fpr);
    w.u64(goal.first_keys);
    w.u32(goal.growth);
    w.u64(goal.hash.seed);
    return checksum(bytes);
  }

  Secret secret_;
  Hasher hasher_;
  ChainTags chains_;
  Series series_;  // every chain of it is in chains_
};

}  // namespace semel::module
