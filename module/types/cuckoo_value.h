// CuckooValue: the filter behind a key of CF.*.
//
// Contract  A series of observed-remove cuckoo filters. An item is found until it is removed as
//           often as it was added. The error is at most goal().error for each chain, however large
//           the filter grows.
// Lives     The dots of a chain are numbered within a life. A tag of 64 random bits names a life,
//           and the SiteId of a dot is the alias of its life. A value is closed after it is loaded,
//           restored or copied, and while a replica replays it. Before a client adds to a closed
//           value, a new life begins. So no addition after a restore or a failover gets the name of
//           an earlier one that was lost.
// Merge     Chunk by chunk: a dump of one filter is loaded into another, in order. Entries that
//           were removed in one copy of a chain are removed in the other.
// Format    docs/formats/module_cuckoo_v1.md: the value, and the chunks of a dump.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "module/types/filter_value.h"
#include "semel/core/hidden.h"

namespace semel::crdt_internal {
struct ObservedPart;
}

namespace semel::module {

class CuckooValue final : public FilterValue<ObservedCuckooSeries> {
 public:
  static const host::TypeSpec kType;

  // Bucket size and iterations are those of RedisBloom. CF.INFO shows them; they have no effect.
  struct Goal {
    double error;
    std::uint64_t capacity;
    std::uint32_t bucket_size;     // 1 to 255
    std::uint32_t max_iterations;  // 1 to 65,535
    std::uint32_t expansion;       // 0 to 32,768; 0: the filter does not grow

    Result<void> check() const;  // Errc::invalid unless all are within their ranges
    bool operator==(const Goal&) const = default;
  };

  // Makes a value without chains. Errors are those of Goal::check and ObservedCuckooSeries::make.
  static Result<std::unique_ptr<CuckooValue>> make(const Secret& secret, const Goal& goal);
  static Result<std::unique_ptr<host::Value>> decode(ByteView in);

  std::uint64_t count(Digest key) const { return series_.count(key); }
  // Adds a key to the value's own chain. Errc::full if a further link would take more memory than
  // `max_bytes` allows (0: no limit); Errc::limit if no further link is possible.
  // REQUIRES: begin() was called, here or where the value was before; hasher() made the digest.
  Result<void> add(Digest key, std::uint64_t max_bytes);
  bool remove(Digest key) { return series_.remove(key).has_value(); }

  const ChainTags& lives() const { return lives_; }
  // Returns true if the value's own life began here. Only then may a client add. An effect always
  // may.
  bool open() const { return adds_left_ != 0; }
  // Makes these the value's own chain and life. The chain may be its own already. It fails without
  // a change: Errc::invalid if there is such a life, or another chain with this tag; Errc::limit if
  // there are too many of either. A life that began elsewhere leaves the value closed.
  enum class Begun : std::uint8_t { here, elsewhere };
  Result<void> begin(std::uint64_t chain, std::uint64_t life, Begun where);

  // A part of a link, for a dump or a merge: what became of some additions of one life. `next` is
  // the position of the piece after it. It stays valid when the value changes.
  struct Piece {
    std::uint64_t next;
    std::uint64_t chain;  // tags
    std::uint64_t life;
    std::uint8_t link;
    Hidden<crdt_internal::ObservedPart> part;

    // Takes as much out of the piece as one step of a merge can do.
    Piece cut();
    bool empty() const;
  };
  // Returns the piece at a position of a dump, or nothing at the end. It has up to `most` entries.
  // Finding it takes a pass over the dots of its link. So a merge takes larger pieces, and cuts
  // them.
  // REQUIRES: position > 0.
  static constexpr std::uint64_t kDumpEntries = 1 << 16;  // some hundred kilobytes
  static constexpr std::uint64_t kMergeEntries = 2 * kDumpEntries;
  std::optional<Piece> piece(std::uint64_t position, std::uint64_t most = kMergeEntries) const;
  Bytes encoded(const Piece& piece) const;
  // A key that is added or removed during a dump may be in it or not.
  Chunk dump(std::uint64_t position) const;
  // Returns true if the bytes begin like a chunk of a dump.
  static bool is_chunk(ByteView bytes);
  // Makes an empty value without a chain of its own from the header of a dump.
  static Result<std::unique_ptr<CuckooValue>> load_header(ByteView chunk);
  // Returns true if it changed anything. It fails without a change: Errc::mismatch if the goals
  // differ; Errc::gap if a piece before this one is missing; Errc::forked if somebody else added in
  // an open value's own life; Errc::full if the value would take more than `max_bytes` allows;
  // Errc::limit if there are too many chains or lives; Errc::corrupt.
  Result<bool> load(ByteView chunk, std::uint64_t max_bytes);
  // Does the same with a piece of another filter. REQUIRES: both match.
  Result<bool> take(const Piece& piece, std::uint64_t max_bytes);

  const Goal& goal() const { return goal_; }
  std::uint64_t items() const { return static_cast<std::uint64_t>(series_.cardinality()); }
  std::uint64_t removed() const;  // since the filter was made, in all chains
  std::uint64_t buckets() const;
  double error_now() const { return series_.live_fpr(); }
  std::uint64_t first_bytes() const override;

  void encode(Sink out) const override;
  std::uint64_t bytes() const override { return FilterValue::bytes() + 8 * lives_.size(); }
  std::unique_ptr<host::Value> clone() const override;
  std::unique_ptr<host::Value> copy() const override;
  host::Figures figures() const override {
    return {.items = items(), .capacity = std::max(goal_.capacity, series_.capacity())};
  }
  host::ErrorRate error_rate() const override { return {error_now(), goal_.error}; }

  CuckooValue(const Secret& secret, const Hasher& hasher, const Goal& goal,
              ObservedCuckooSeries series)
      : FilterValue(secret, hasher, std::move(series)), goal_(goal) {}

 private:
  std::unique_ptr<CuckooValue> twin() const;
  static constexpr std::size_t kStepEntries = 1 << 13;  // merged in a millisecond

  // Returns the bytes that the links take if the value's own chain fills up. REQUIRES: it has one.
  std::uint64_t bytes_when_full() const;

  Goal goal_;
  ChainTags lives_{ChainTags::kMostLives};  // every site of the series is one of them
  std::uint64_t adds_left_ = 0;             // of a life that began here; not a part of the encoding
};

}  // namespace semel::module
