// ClaimTable: who is at work on which id, exactly.
//
// Contract  A claim gives an id to one owner. Until its deadline nobody else gets it; from then on the
//           next one who claims it does, and the first owner's commit is refused from then on. While
//           nobody asks, a late commit still counts: work that was done is not thrown away.
//           A commit is accepted once for an id. It stays, and every later claim is told so, until
//           forget(). What nobody ends is dropped when it is older than `keep_ms`: a claim from its
//           deadline on, a commit from the time at which it was made.
// Owner     A number that is different for every run of every producer: one that crashed and came
//           back is another owner, and waits for the deadline as all others do.
// Time      is handed in, and never runs backwards (WindowTime). A deadline before now() counts as
//           now(): the next one who claims the id gets it.
// Cost      A call is one lookup in a hash table. An entry is dropped in O(log n), once; advance()
//           looks at what is due, and at nothing else.
// Memory    About 100 bytes for an entry; what a peak took is given back as its entries go. There is no
//           cap: whoever hands out claims limits them.
// Limits    Whoever chooses digests can make all of them meet in one bucket: ids from outside take the
//           keyed hash.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/claims_v1.md.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/window/window.h"

namespace semel {

enum class Claim : std::uint8_t {
  granted,    // it is yours
  pending,    // somebody else is at work on it
  committed,  // it was done
};

// What happened since the table was made.
struct ClaimCounts {
  std::uint64_t backward_steps = 0;  // advance() to a time before now()
  std::uint64_t taken_over = 0;      // claims that another owner got after the deadline
  std::uint64_t dropped = 0;         // entries that nobody ended within keep_ms
  bool operator==(const ClaimCounts&) const = default;
};

class ClaimTable {
 public:
  // REQUIRES: keep_ms >= 0.
  ClaimTable(TimeMs keep_ms, TimeMs now_ms);

  // An owner that claims again what it holds gets it again, with the later of the two deadlines: a
  // call that was delayed on its way does not shorten one that came after it.
  Claim claim(Digest id, std::uint64_t owner, TimeMs until_ms);
  // What a claim of somebody who does not hold the id would be answered, now or after advance(now_ms).
  Claim look(Digest id) const { return look(id, now()); }
  Claim look(Digest id, TimeMs now_ms) const;
  // Who claimed the id, even if the deadline is over, or who committed it; now or after advance(now_ms).
  std::optional<std::uint64_t> owner(Digest id) const { return owner(id, now()); }
  std::optional<std::uint64_t> owner(Digest id, TimeMs now_ms) const;
  // The later of the two deadlines. False, and no change, unless `owner` holds a claim on the id.
  bool renew(Digest id, std::uint64_t owner, TimeMs until_ms);
  // False, and no change, unless `owner` holds a claim on the id, or has committed it.
  bool commit(Digest id, std::uint64_t owner);
  // Gives the id back. False, and no change, unless `owner` holds a claim on it: not after a commit.
  bool release(Digest id, std::uint64_t owner);
  // Drops a commit: the id is remembered elsewhere from now on. False, and no change, unless `owner`
  // has committed the id.
  bool forget(Digest id, std::uint64_t owner);

  void advance(TimeMs now_ms);
  TimeMs now() const { return time_.now(); }
  TimeMs keep_ms() const { return keep_ms_; }

  std::uint64_t size() const { return entries_.size(); }  // claims and commits
  std::uint64_t commits() const { return commits_; }
  ClaimCounts counts() const;
  std::uint64_t bytes() const;  // all memory that the table holds, by estimate

  // Appends the encoding to `out`.
  void encode(Sink out) const;
  // Reads one table that fills `in` exactly. `in` may come from an enemy.
  static Result<ClaimTable> decode(ByteView in);

  // Whether both hold the same, and would go on in the same way. counts() may differ.
  bool operator==(const ClaimTable& other) const;

 private:
  struct Entry {
    std::uint64_t owner;
    TimeMs time_ms;  // the deadline of a claim; of a commit the time at which it was made
    bool committed;
    bool operator==(const Entry&) const = default;
  };
  // When to look at an entry. It may have gone since, or have got another time.
  struct Due {
    TimeMs time_ms;
    Digest id;
  };
  struct HashOfDigest {
    std::size_t operator()(const Digest& digest) const noexcept { return digest.lo; }
  };
  using Entries = std::unordered_map<Digest, Entry, HashOfDigest>;

  static bool later(const Due& a, const Due& b) { return a.time_ms > b.time_ms; }
  const Entry* find(Digest id, TimeMs now_ms) const;
  Entry* claimed_by(Digest id, std::uint64_t owner);
  void list_due();
  void look_again(Digest id, TimeMs time_ms);
  void trim();
  void extend(Digest id, Entry& entry, TimeMs until_ms);

  TimeMs keep_ms_;
  WindowTime time_;
  Entries entries_;
  std::vector<Due> due_;  // a heap, the earliest first; every entry is in it with its time
  std::uint64_t commits_ = 0;
  ClaimCounts counts_;
};

}  // namespace semel
