// FloretSlabs: a floret for each slab of the records, so that one of a large range is a sum.
//
// Contract  The slabs part the keys. Each has the floret of its records as it was last read, and a
//           count of the changes that were noted since; a slab that was never read, or of which a
//           whole range was noted, is beyond counting.
//           Read again, a slab that has grown is parted, and one that has shrunk joins another: of
//           records that do not change each holds from half of `slab_bytes` to twice as much, but
//           for a single record that is larger, and a single slab.
// Fresh     Three things read slabs again. A Gathering takes the records that a refresh of the trie
//           reads anyway: a slab of which it sees every record is fresh afterwards, at no further
//           reading. read_worn() reads the slabs in which so much has changed that reading them
//           costs no more than the refreshes of these changes did. read_stale() reads all of them.
// Cost      note: O(log slabs), less if keys come in order. sum: the slabs in the range, and the
//           reading of the two that it cuts. read_worn, read_stale: the reading of those slabs.
// Memory    About 1.2 KB for each slab.
// Threads   Const calls may run at the same time; every other call needs the object to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
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

  // Takes records that are read while the trie is refreshed, in the order of their keys, and makes
  // new slabs of the stale ones that it sees whole.
  class Gathering {
   public:
    // REQUIRES: both outlive this; nothing is noted until finish().
    Gathering(FloretSlabs& slabs, const DigestKey& key) : slabs_(slabs), key_(key) {}
    void add(std::string_view key, std::string_view value, const Digest& entry);
    // `source` has the refreshed trie. After an error no slab has changed.
    Result<void> finish(const Source& source);

   private:
    struct Seen {
      std::size_t index;
      std::uint64_t count;
      Reading reading;
    };
    FloretSlabs& slabs_;
    const DigestKey& key_;
    std::vector<Seen> seen_;  // ascending
    std::size_t index_ = 0;   // of the slab of the last key
    std::string_view end_;    // of that slab
    bool any_ = false;        // a key has come
    bool last_ = false;       // that slab has no end
    bool stale_ = false;      // that slab is stale
  };

  // One slab that was never read. REQUIRES: slab_bytes > 0.
  explicit FloretSlabs(std::uint64_t slab_bytes);
  // REQUIRES: the first slab begins with the empty key; the others ascend.
  FloretSlabs(std::uint64_t slab_bytes, std::vector<Slab> slabs);

  void note(std::string_view key);
  void note(const KeyRange& range);

  // Each reads slabs that are wholly in the range. After an error those that were not read are still
  // stale.
  Result<void> read_stale(const KeyRange& range, const Source& source);
  Result<void> read_worn(const KeyRange& range, const Source& source);
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
  // New slabs, by the index of the one that they replace, ascending.
  using Replacements = std::vector<std::pair<std::size_t, std::vector<Slab>>>;
  void replace(Replacements fresh);
  template <class Wanted>
  Result<void> read_again(const KeyRange& range, const Source& source, const Wanted& wanted);

  std::uint64_t slab_bytes_;
  std::vector<Slab> slabs_;
  std::size_t last_noted_ = 0;
};

}  // namespace semel
