// BloomValue: the filter behind a key of BF.*.
//
// Contract  A series of grow-only Bloom filters (semel/crdt/series.h) with chains that are apart: a
//           key that was added is found for ever, through copies, dumps, merges and restarts; the
//           error is at most goal().error for each chain, whatever the number of keys.
// Chains    module/types/chain_tags.h. add() needs an own chain.
// Merge     Piece by piece: a dump of one filter, loaded into another. Any order, any number of
//           times.
// Growth    A link is opened at a certain number of keys, which is kept beside the series: a copy
//           that was encoded and decoded goes on in the same way.
// Format    docs/formats/module_bloom_v1.md: the value, and the chunks of a dump.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "module/host/value.h"
#include "module/types/chain_tags.h"
#include "semel/crdt/series.h"
#include "semel/hash/hasher.h"
#include "semel/hash/keyed_digest.h"

namespace semel::module {

class BloomValue final : public host::Value {
 public:
  static const host::TypeSpec kType;

  struct Goal {
    double error;
    std::uint64_t capacity;
    std::uint32_t expansion;  // 0: the filter does not grow

    bool operator==(const Goal&) const = default;
  };

  // Without chains. Errors as those of GrowBloomSeries::make.
  static Result<std::unique_ptr<BloomValue>> make(const Secret& secret, const Goal& goal);
  static Result<std::unique_ptr<host::Value>> decode(ByteView in);

  // REQUIRES, of all that take digests: hasher() made them; of add: there is an own chain.
  bool contains(Digest key) const { return series_.contains(key); }
  void contains(std::span<const Digest> keys, std::span<bool> found) const {
    series_.contains(keys, found);
  }
  void prefetch(std::span<const Digest> keys) const { series_.prefetch(keys); }
  struct Added {
    bool added = false;  // the key was certainly not there
    Refusal refusal = Refusal::none;
  };
  Added add(Digest key, std::uint64_t max_bytes);
  // In order, up to the first new key that is refused: how many that are, and why.
  std::pair<std::size_t, Refusal> add(std::span<const Digest> keys, std::span<bool> added,
                                      std::uint64_t max_bytes);

  const ChainTags& chains() const { return chains_; }
  Result<void> begin_chain(std::uint64_t tag) { return chains_.begin(tag); }
  void disown() { chains_.disown(); }

  // A chunk of a dump, from a position on; no bytes, and next 0, at the end. A dump begins at
  // position 0, with a header. What is added meanwhile is in it, or not.
  struct Chunk {
    std::uint64_t next;
    Bytes bytes;
  };
  Chunk dump(std::uint64_t position) const;
  // The value of a header: empty, and without an own chain.
  static Result<std::unique_ptr<BloomValue>> load_header(ByteView chunk);
  // True if it changed anything. Errc::mismatch if the goals differ; Errc::invalid if there is no
  // such link; Errc::full if it would have to be larger than max_bytes allows; Errc::limit if there
  // are too many chains; Errc::corrupt; and no change then. `chunk` may come from an enemy.
  Result<bool> load(ByteView chunk, std::uint64_t max_bytes);

  const Secret& secret() const { return secret_; }
  const Hasher& hasher() const { return hasher_; }
  Goal goal() const {
    return {series_.goal().fpr, series_.goal().first_keys, series_.goal().growth};
  }
  // Whether two filters can merge.
  bool matches(const BloomValue& other) const { return series_.goal() == other.series_.goal(); }
  std::uint64_t items() const;     // added to all chains
  std::uint64_t capacity() const;  // of the links that there are, and of the first in any case
  std::size_t filters() const { return std::max<std::size_t>(1, series_.links().size()); }
  // The chance that a key which was never added is said to be there now.
  double error_now() const;
  double error_bound() const { return series_.fpr(); }
  std::uint64_t first_bytes() const { return series_.shape_of(1)->bits / 8; }  // of the first link

  void encode(Sink out) const override;
  std::uint64_t bytes() const override;
  // An empty filter with an own chain has the memory of its first link.
  std::uint64_t unreserved_bytes() const override;
  void reserve() override;
  std::unique_ptr<host::Value> copy() const override;
  std::size_t parts() const override;

  BloomValue(const Secret& secret, const Hasher& hasher, GrowBloomSeries series)
      : secret_(secret), hasher_(hasher), series_(std::move(series)) {}

 private:
  bool may_extend(std::uint64_t max_bytes) const;
  Refusal refusal(std::uint64_t max_bytes) const;

  Secret secret_;
  Hasher hasher_;
  ChainTags chains_;
  GrowBloomSeries series_;  // every chain of it is in chains_
};

}  // namespace semel::module
