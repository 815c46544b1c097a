// NyeTrie: count, volume, XOR of digests and sum of measures of any range of an ordered store, from
// a few bytes for each container of records.
//
// Contract  sum() of a node or of a range is that over the records which the store held when the
//           trie was last refreshed; to get it at most two containers are read.
//           The containers are a function of the records alone: the highest nodes of the trie with
//           no more than `burst_bytes` of keys and values, or with one record. Two tries of equal
//           records are equal, whatever way led there.
// Measure   A number that a function gives each record, if the trie has one (aggregate.h).
// Containers  are ranges of the store: no record, no key and no digest of a single record is kept.
// Marks     A write marks; it does not read. refresh() reads what is marked, and nothing else. A
//           new trie is marked as a whole: its first refresh is a bulk load in one ordered pass.
// Memory    23 to 25 bytes for each container of some dozens, 1 more after random writes; with
//           measures of up to 16 bits 2 to 4 more, of 32 bits 6, of 64 bits 10; and up to 0.7 MB
//           while marks wait (bytes()).
// Cost      mark: some ns now, about 0.2 us at the next refresh or batch. refresh: the reading of
//           the marked containers. sum, branch: O(log containers) and what has to be read.
// Threads   Const calls may run at the same time; every other call needs the object to itself.
// Format    docs/formats/nye_trie_v1.md.
// Source    Trutna, 'Nye's trie and floret estimators', UCB/EECS-2010-30, section 3; on bits
//           instead of bytes, and without reading before writing (docs/papers.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/index/aggregate.h"
#include "semel/index/bit_path.h"
#include "semel/index/entry_digest.h"
#include "semel/index/internal/container.h"
#include "semel/index/internal/container_blocks.h"
#include "semel/index/internal/key_buffer.h"
#include "semel/store/ordered_store.h"

namespace semel {

class NyeTrie {
 public:
  static constexpr std::uint32_t kLeastBurst = 256;
  static constexpr std::uint32_t kMostBurst = 1U << 26;

  using Container = semel::Container;

  // Marked as a whole. REQUIRES: kLeastBurst <= burst_bytes <= kMostBurst.
  NyeTrie(std::uint32_t burst_bytes, const EntryDigest& digest, Measure measure = nullptr);

  void mark(std::string_view key);
  void mark(const KeyRange& range);
  bool marked() const { return marks_.any() || !pending_.empty(); }

  // Told the records that refresh() reads. Of a trie that is marked as a whole these are all that
  // the cursor sees, once each, in the order of their keys.
  using Seen =
      std::function<void(std::string_view key, std::string_view value, const Digest& entry)>;

  // Reads what is marked. After an error what was not read is still marked. `seen` may be empty.
  Result<void> refresh(Cursor& cursor, const Seen& seen = nullptr);

  // REQUIRES of all that follows: !marked(). The cursor sees the state of the last refresh, or
  // nearly: a container that is cut by the range is read anew.
  Aggregate total() const { return blocks_.total(); }
  Result<Aggregate> sum(const BitPath& node, Cursor& cursor) const;
  Result<Aggregate> sum(const KeyRange& range, Cursor& cursor) const;
  // The highest node at or below this one that has records on both sides of its next bit, as far
  // as the trie goes: nullopt for a container, what is within one, and where nothing is.
  std::optional<BitPath> branch(const BitPath& node) const;
  // The containers that have keys in the range, in order; those that its ends cut are included.
  std::vector<Container> containers(const KeyRange& range) const;
  std::size_t container_count() const { return blocks_.containers(); }

  // At most `most` nodes that part the records of the range, heaviest split first: a histogram of
  // prefixes.
  Result<std::vector<Container>> histogram(const KeyRange& range, std::size_t most,
                                           Cursor& cursor) const;

  std::uint32_t burst_bytes() const { return burst_bytes_; }
  std::size_t bytes() const;  // of memory
  const EntryDigest& entry_digest() const { return digest_; }
  Measure measured_by() const { return measure_; }

  // Marks travel with it. Appends to `out`.
  void encode(Sink out) const;
  // Errc::mismatch if the digests were made with another key, or if it has measures and there is no
  // `measure`, or the other way round. REQUIRES: measures were made by this function.
  static Result<NyeTrie> decode(ByteView in, const EntryDigest& digest, Measure measure = nullptr);

  // Keys of containers that are not the same in both.
  struct Unlike {
    KeyRange keys;
    std::uint64_t records = 0;  // of the other
  };
  // Returns where the two differ, in order: neighbours are one. REQUIRES: neither is marked.
  std::vector<Unlike> unlike(const NyeTrie& other) const;

  // Equal containers, measures on both sides or on neither, and no marks.
  bool operator==(const NyeTrie& other) const;

 private:
  // Between containers there are gaps, which hold no record; a key that is written there marks the
  // gap. Gap i is that before container i; one more is behind the last container.
  class Marks {
   public:
    struct OfBlock {
      std::uint64_t containers = 0;
      std::uint64_t gaps = 0;
    };
    bool any() const { return !blocks_.empty() || last_gap_; }
    void mark_container(const ContainerBlocks& blocks, const ContainerBlocks::Walk& at);
    void mark_gap_before(const ContainerBlocks& blocks, const ContainerBlocks::Walk& at);
    OfBlock of(std::size_t block) const { return blocks_.empty() ? OfBlock{} : blocks_[block]; }
    bool container(const ContainerBlocks::Walk& at) const {
      return (of(at.block()).containers >> at.index() & 1) != 0;
    }
    bool gap_before(const ContainerBlocks::Walk& at) const {
      return (of(at.block()).gaps >> at.index() & 1) != 0;
    }
    bool last_gap() const { return last_gap_; }
    std::size_t bytes() const { return blocks_.capacity() * sizeof(OfBlock); }

   private:
    std::vector<OfBlock> blocks_;  // none if none is marked
    bool last_gap_ = false;
  };
  class Rebuild;
  struct Margins {
    std::uint64_t before = 0;
    std::uint64_t after = 0;
  };

  ContainerBlocks::Walk at_or_after(const std::optional<std::string>& key) const;
  void settle();
  void mark_pending(Marks& marks) const;
  Margins margins(std::size_t block) const;
  std::vector<bool> blocks_to_rebuild() const;
  // The digest is not const: const calls, of which many may run, take copies of digest_.
  Aggregate of_record(std::string_view key, std::string_view value, EntryDigest& digest) const;
  Result<Aggregate> read(const KeyRange& range, Cursor& cursor) const;

  std::uint32_t burst_bytes_;
  EntryDigest digest_;
  Measure measure_;
  ContainerBlocks blocks_;
  Marks marks_;
  KeyBuffer pending_;  // keys that are marked, not looked up yet
};

}  // namespace semel
