// FloretSlabs: a floret for each slab of the records, so that one of a large range is a sum.
//
// Contract  The slabs part the keys. Each has the floret of its records as it was last read, and a
//           count of the changes that were noted since; a slab that was never read, or of which a
//           whole range was noted, is beyond counting.
//           Read again, a slab that has grown is parted, and one that has shrunk joins another: of
//           records that do not change each holds from half of `slab_bytes` to twice as much, but
//           for a single record that is larger, and a single slab.
// Cost      note: O(log slabs), less if keys come in order. sum: the slabs in the range, and the
//           reading of the two that it cuts. read_stale: the reading of the stale ones.
// Memory    About 1.2 KB for each slab.
// Threads   Const calls may run at the same time; every other call needs the object to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/result.h"
#include "semel/hash/keyed_digest.h"
#include "semel/index/floret.h"
#include "semel/index/nye_trie.h"
#include "semel/store/ordered_store.h"

namespace semel {

struct RangeFloret {
  Floret floret;
  std::uint64_t unknown = 0;  // changes that it does not know of, at most
};

class FloretSlabs {
 public:
  static constexpr std::uint64_t kUncounted = std::numeric_limits<std::uint64_t>::max();

  struct Slab {
    std::string first;  // its least key; it ends where the next begins
    Floret floret;
    std::uint64_t count = 0;   // of records, when it was read
    std::uint64_t volume = 0;  // of keys and values, when it was read
    std::uint64_t changes = 0;
    bool operator==(const Slab&) const = default;
  };

  // What is needed to read records.
  struct Source {
    const NyeTrie& trie;  // REQUIRES: !trie.marked()
    Cursor& cursor;       // sees what the trie has seen
    const DigestKey& key;
  };

  // Takes the records of a range, in order, into new slabs.
  class Reading {
   public:
    // `key` is one of KeyPurpose::floret and outlives this.
    Reading(std::uint64_t slab_bytes, std::string_view first, const DigestKey& key);
    void add(std::string_view key, std::string_view value, const Digest& entry);
    std::vector<Slab> finish();

   private:
    std::uint64_t slab_bytes_;
    const DigestKey& key_;
    std::vector<Slab> slabs_;
  };

  // One slab that was never read. REQUIRES: slab_bytes > 0.
  explicit FloretSlabs(std::uint64_t slab_bytes);
  // REQUIRES: the first slab begins with the empty key; the others ascend.
  FloretSlabs(std::uint64_t slab_bytes, std::vector<Slab> slabs);

  void note(std::string_view key);
  void note(const KeyRange& range);

  // Reads the stale slabs that are wholly in the range. After an error those that were not read are
  // still stale.
  Result<void> read_stale(const KeyRange& range, const Source& source);
  // Slabs within the range as they are kept, the two ends as they are.
  Result<RangeFloret> sum(const KeyRange& range, const Source& source) const;

  std::uint64_t slab_bytes() const { return slab_bytes_; }
  const std::vector<Slab>& slabs() const { return slabs_; }
  std::size_t bytes() const;  // of memory

  bool operator==(const FloretSlabs& other) const {
    return slab_bytes_ == other.slab_bytes_ && slabs_ == other.slabs_;
  }

 private:
  std::size_t index_of(std::string_view key) const;
  KeyRange range_of(std::size_t index) const;
  Result<std::uint64_t> unknown(std::size_t index, const Source& source) const;

  std::uint64_t slab_bytes_;
  std::vector<Slab> slabs_;
  std::size_t last_noted_ = 0;
};

}  // namespace semel
