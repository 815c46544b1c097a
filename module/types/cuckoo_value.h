// CuckooValue: the filter behind a key of CF.*.
//
// Contract  A series of observed-remove cuckoo filters (semel/crdt/series.h) with chains that are
//           apart: what was added is found until it is removed, as often as it was added; the error
//           is at most goal().error for each chain, however large the filter grows.
// Chains    module/types/chain_tags.h. add() needs an own chain; remove() takes from any.
// Lives     The dots of a chain are numbered within a life, which has a tag of 64 random bits too: the
//           SiteId of a dot is the alias of a life. A value that was loaded, restored or copied, and
//           one that is replayed at a replica, is closed: whoever adds to it for a client begins a
//           life. So what is added after a restore or a failover never has the name of anything that
//           was added and lost, and merges with all that there is.
// Merge     Piece by piece: a dump of one filter, loaded into another, in order. Entries that were
//           removed in one copy of a chain are removed in the other.
// Format    docs/formats/module_cuckoo_v2.md: the value, and the chunks of a dump.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "module/host/value.h"
#include "module/types/chain_tags.h"
#include "semel/crdt/series.h"
#include "semel/hash/hasher.h"
#include "semel/hash/keyed_digest.h"

namespace semel::module {

class CuckooValue final : public host::Value {
 public:
  static const host::TypeSpec kType;

  // Bucket size and iterations are RedisBloom's: kept to be told, and without effect here.
  struct Goal {
    double error;
    std::uint64_t capacity;
    std::uint32_t bucket_size;     // 1 to 255
    std::uint32_t max_iterations;  // 1 to 65,535
    std::uint32_t expansion;       // 0 to 32,768; 0: the filter does not grow

    Result<void> check() const;  // Errc::invalid unless all are within their ranges
    bool operator==(const Goal&) const = default;
  };

  // Without chains. Errors as those of Goal::check and ObservedCuckooSeries::make.
  static Result<std::unique_ptr<CuckooValue>> make(const Secret& secret, const Goal& goal);
  static Result<std::unique_ptr<host::Value>> decode(ByteView in);

  // REQUIRES, of all that take digests: hasher() made them; of add: begin() was called, here or where
  // the value was before.
  bool contains(Digest key) const { return series_.contains(key); }
  void contains(std::span<const Digest> keys, std::span<bool> found) const {
    series_.contains(keys, found);
  }
  void prefetch(std::span<const Digest> keys) const { series_.prefetch(keys); }
  std::uint64_t count(Digest key) const { return series_.count(key); }
  Refusal add(Digest key, std::uint64_t max_bytes);
  bool remove(Digest key) { return series_.remove(key).has_value(); }

  const ChainTags& chains() const { return chains_; }
  const ChainTags& lives() const { return lives_; }
  // Whether the own life began here: only then may a client add. An effect adds in any case.
  bool open() const { return adds_left_ != 0; }
  // Makes these the own chain and life. The chain may be the own one already. Errc::invalid, and no
  // change, if there is such a life, or the chain is another; Errc::limit, and no change, if there
  // are too many of either. A life that was begun elsewhere leaves the value closed.
  enum class Begun : std::uint8_t { here, elsewhere };
  Result<void> begin(std::uint64_t chain, std::uint64_t life, Begun where);

  // A chunk of a dump, from a position on; no bytes, and next 0, at the end. A dump begins at
  // position 0, with a header. What is added or removed meanwhile is in it, or not.
  struct Chunk {
    std::uint64_t next;
    Bytes bytes;
  };
  Chunk dump(std::uint64_t position) const;
  // The value of a header: empty, and without an own chain.
  static Result<std::unique_ptr<CuckooValue>> load_header(ByteView chunk);
  // True if it changed anything. Errc::mismatch if the goals differ; Errc::gap if a piece before it
  // is missing; Errc::forked if somebody else added in a life that is known here; Errc::full if it
  // takes more memory than max_bytes allows; Errc::limit if there are too many chains or lives;
  // Errc::corrupt; and no change then. `chunk` may come from an enemy.
  Result<bool> load(ByteView chunk, std::uint64_t max_bytes);

  const Secret& secret() const { return secret_; }
  const Hasher& hasher() const { return hasher_; }
  const Goal& goal() const { return goal_; }
  // Whether two filters can merge.
  bool matches(const CuckooValue& other) const { return series_.goal() == other.series_.goal(); }
  std::uint64_t items() const { return static_cast<std::uint64_t>(series_.cardinality()); }
  std::uint64_t removed() const;  // since the filter was made, in all chains
  std::uint64_t buckets() const;
  std::size_t filters() const { return std::max<std::size_t>(1, series_.links().size()); }
  double error_now() const { return series_.live_fpr(); }
  double error_bound() const { return series_.fpr(); }
  std::uint64_t first_bytes() const;  // of the first link, when it is full

  void encode(Sink out) const override;
  std::uint64_t bytes() const override;
  // An empty filter with an own chain has the memory of its first link.
  std::uint64_t unreserved_bytes() const override;
  void reserve() override;
  std::unique_ptr<host::Value> copy() const override;
  std::size_t parts() const override;

  CuckooValue(const Secret& secret, const Hasher& hasher, const Goal& goal,
              ObservedCuckooSeries series)
      : secret_(secret), hasher_(hasher), goal_(goal), series_(std::move(series)) {}

 private:
  Secret secret_;
  Hasher hasher_;
  Goal goal_;
  ChainTags chains_;
  ChainTags lives_{ChainTags::kMostLives};
  std::uint64_t adds_left_ = 0;  // of a life that began here; no part of the value
  // Every chain of it is in chains_, and every site is a life: it has one life, which is its tag.
  ObservedCuckooSeries series_;
};

}  // namespace semel::module
