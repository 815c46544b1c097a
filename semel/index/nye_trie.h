// NyeTrie: the count, volume, XOR of digests and sum of measures of any range of an ordered store,
// from a few bytes for each container of records.
//
// Contract  sum() of a node or a range covers the records that the store held when the trie was
//           last refreshed. It reads at most two containers.
//           The containers depend on the records alone: they are the highest nodes of the trie with
//           at most `burst_bytes` of keys and values, or with one record. Two tries of equal
//           records are equal, whatever their history. A container is a range of the store: the
//           trie keeps no record, no key and no digest of a single record.
//           A write only marks a container; it reads nothing. refresh() reads what is marked, and
//           nothing else. A new trie is marked as a whole, so its first refresh is a bulk load in
//           one ordered pass.
//           A trie may have a function that gives each record a measure, a number (aggregate.h).
// Memory    23 to 25 bytes for each container of some dozen records, 1 more after random writes.
//           Measures add 2 to 4 bytes (up to 16 bits), 6 (32 bits) or 10 (64 bits). Waiting marks
//           add up to 0.7 MB (bytes()).
// Cost      mark: some ns now, about 0.2 us at the next refresh or batch. refresh: the reading of
//           the marked containers. sum, branch: O(log containers) and what has to be read.
// Threads   Const calls may run at the same time; every other call needs the object to itself.
// Format    docs/formats/nye_trie_v1.md.
// Source    Trutna, 'Nye's trie and floret estimators', UCB/EECS-2010-30, section 3. Ours branches
//           on bits instead of bytes, and does not read before it writes (docs/papers.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/index/aggregate.h"
#include "semel/index/bit_path.h"
#include "semel/index/entry_digest.h"
#include "semel/store/ordered_store.h"

namespace semel {

class SEMEL_API NyeTrie {
 public:
  static constexpr std::uint32_t kLeastBurst = 256;
  static constexpr std::uint32_t kMostBurst = 1U << 26;

  // A node whose records are not told apart.
  struct Container {
    BitPath path;
    Aggregate sum;
    bool operator==(const Container&) const = default;
  };

  // Makes a trie that is marked as a whole. REQUIRES: kLeastBurst <= burst_bytes <= kMostBurst.
  NyeTrie(std::uint32_t burst_bytes, const EntryDigest& digest, RecordMeasure measure = nullptr);
  // A trie that was moved from can only be assigned to, moved and destroyed.
  NyeTrie(NyeTrie&& other) noexcept;
  NyeTrie& operator=(NyeTrie&& other) noexcept;
  ~NyeTrie();

  void mark(std::string_view key);
  void mark(const KeyRange& range);
  bool marked() const;

  // Is called with the records that refresh() reads. If the trie is marked as a whole, these are
  // all records that the cursor sees, once each, in the order of their keys.
  using Seen =
      std::function<void(std::string_view key, std::string_view value, const Digest& entry)>;

  // Reads what is marked. After an error, what was not read is still marked. `seen` may be empty.
  Result<void> refresh(Cursor& cursor, const Seen& seen = nullptr);

  // REQUIRES for everything below: !marked(). The cursor sees the state of the last refresh, or
  // nearly: a container that the range cuts is read anew.
  Aggregate total() const;
  Result<Aggregate> sum(const BitPath& node, Cursor& cursor) const;
  Result<Aggregate> sum(const KeyRange& range, Cursor& cursor) const;
  // Returns the highest node at or below this one with records on both sides of its next bit.
  // Returns nullopt for a container, for a node within one, and for a node without records.
  std::optional<BitPath> branch(const BitPath& node) const;
  // Returns the containers that have keys in the range, in order. It includes those that the ends
  // of the range cut.
  std::vector<Container> containers(const KeyRange& range) const;
  std::size_t container_count() const;

  // Returns at most `most` nodes that partition the records of the range: a histogram of prefixes.
  // The heaviest node is split first. REQUIRES: most > 0.
  Result<std::vector<Container>> histogram(const KeyRange& range, std::size_t most,
                                           Cursor& cursor) const;

  std::uint32_t burst_bytes() const;
  std::size_t bytes() const;  // memory in use
  const EntryDigest& entry_digest() const;
  RecordMeasure measured_by() const;

  // Appends the encoding, with the marks, to `out`.
  void encode(Sink out) const;
  // Errc::mismatch if the digests were made with another key, or if the bytes have measures and
  // the caller gives no `measure`, or vice versa. REQUIRES: `measure` made the measures.
  static Result<NyeTrie> decode(ByteView in, const EntryDigest& digest,
                                RecordMeasure measure = nullptr);

  // A run of keys whose containers differ between the two tries.
  struct Unlike {
    KeyRange keys;
    std::uint64_t records = 0;  // in the other trie
  };
  // Returns where the two tries differ, in order. Neighbouring containers are joined.
  // REQUIRES: neither is marked.
  std::vector<Unlike> unlike(const NyeTrie& other) const;

  // Returns true if the containers are equal, both or neither have measures, and neither is marked.
  bool operator==(const NyeTrie& other) const;

 private:
  struct SEMEL_LOCAL Body;
  std::unique_ptr<Body> body_;
};

}  // namespace semel
