// FloretSlabs: keeps a floret for each slab of the records, so that the floret of a large range is
// a sum.
//
// Contract  The slabs partition the keys. Each slab has the floret of its records as last read, and
//           a count of the changes noted since. The count is unknown for a slab that was never read
//           or for which a whole range was noted.
//           When a slab is read again, it is split if it has grown and joined to another if it has
//           shrunk. While records do not change, each slab holds from half of `slab_bytes` to twice
//           as much. The exceptions are a single record that is larger, and a single slab.
//           Three things read slabs again. A Gathering takes the records that a refresh of the trie
//           reads anyway: a slab of which it sees every record becomes fresh without further
//           reading. read_worn() reads the slabs with so many changes that reading them costs no
//           more than the refreshes of these changes did. read_stale() reads all stale slabs.
// Cost      note: O(log slabs), less if keys come in order. sum: adds the slabs in the range and
//           reads the two that the range cuts. read_worn, read_stale: read those slabs.
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

namespace semel::index_internal {

class FloretSlabs {
 public:
  static constexpr std::uint64_t kUncounted = std::numeric_limits<std::uint64_t>::max();

  struct Slab {
    std::string first;  // the least key; the slab ends where the next begins
    Floret floret;
    std::uint64_t count = 0;   // number of records when it was read
    std::uint64_t volume = 0;  // bytes of keys and values when it was read
    std::uint64_t changes = 0;
    bool operator==(const Slab&) const = default;
  };

  // Everything needed to read records.
  struct Source {
    const NyeTrie& trie;  // REQUIRES: !trie.marked()
    Cursor& cursor;       // sees what the trie has seen
    const DigestKey& key;
  };

  // Takes the records of a range, in order, and makes new slabs of them.
  class Reading {
   public:
    // `key` is made for KeyPurpose::floret and outlives this object.
    Reading(std::uint64_t slab_bytes, std::string_view first, const DigestKey& key);
    void add(std::string_view key, std::string_view value, const Digest& entry);
    std::vector<Slab> finish();

   private:
    std::uint64_t slab_bytes_;
    const DigestKey& key_;
    std::vector<Slab> slabs_;
  };

  // Takes the records that a refresh of the trie reads, in the order of their keys. Makes new slabs
  // of the stale slabs that it sees completely.
  class Gathering {
   public:
    // REQUIRES: both arguments outlive this object, and nothing is noted until finish().
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
    std::size_t index_ = 0;   // the slab of the last key
    std::string_view end_;    // where that slab ends
    bool any_ = false;        // true if a key has come
    bool last_ = false;       // true if that slab has no end
    bool stale_ = false;      // true if that slab is stale
  };

  // Makes one slab that was never read. REQUIRES: slab_bytes > 0.
  explicit FloretSlabs(std::uint64_t slab_bytes);
  // REQUIRES: the first slab begins with the empty key, and the others ascend.
  FloretSlabs(std::uint64_t slab_bytes, std::vector<Slab> slabs);

  void note(std::string_view key);
  void note(const KeyRange& range);

  // These read slabs that lie wholly in the range. After an error the slabs not yet read are still
  // stale.
  Result<void> read_stale(const KeyRange& range, const Source& source);
  Result<void> read_worn(const KeyRange& range, const Source& source);
  // Returns the sum of the kept florets of the slabs within the range. The two ends are read anew.
  Result<RangeFloret> sum(const KeyRange& range, const Source& source) const;

  std::uint64_t slab_bytes() const { return slab_bytes_; }
  const std::vector<Slab>& slabs() const { return slabs_; }
  std::size_t bytes() const;  // memory in use

  bool operator==(const FloretSlabs& other) const {
    return slab_bytes_ == other.slab_bytes_ && slabs_ == other.slabs_;
  }

 private:
  std::size_t index_of(std::string_view key) const;
  KeyRange range_of(std::size_t index) const;
  Result<std::uint64_t> unknown(std::size_t index, const Source& source) const;
  // New slabs, ascending by the index of the slab that they replace.
  using Replacements = std::vector<std::pair<std::size_t, std::vector<Slab>>>;
  void replace(Replacements fresh);
  template <class Wanted>
  Result<void> read_again(const KeyRange& range, const Source& source, const Wanted& wanted);

  std::uint64_t slab_bytes_;
  std::vector<Slab> slabs_;
  std::size_t last_noted_ = 0;
};

}  // namespace semel::index_internal
