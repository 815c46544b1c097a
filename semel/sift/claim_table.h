// ClaimTable: an exact table of who is at work on which id.
//
// Contract  A claim gives an id to one owner. Until its deadline nobody else gets the id. After the
//           deadline the next owner who claims the id gets it, and a commit of the first owner is
//           then refused. If nobody else has claimed it, a late commit still counts, so finished
//           work is not lost. A commit is accepted once for an id. While it is kept, every later
//           claim is answered `seen`. An entry that nobody ends is dropped after `keep_ms`, which
//           counts from the deadline of a claim, and from the time when a commit was made.
//           An owner is a number that is different for every run of every producer. A producer that
//           restarts after a crash is another owner, and waits for the deadline as all others do.
// Time      Time is handed in, and never runs backwards. A deadline before now() counts as now().
// Cost      A call is one lookup in a hash table. An entry is dropped in O(log n), once; advance()
//           looks only at entries that are due.
// Memory    About 100 bytes for an entry. The memory of a peak is given back as its entries go.
//           There is no cap: the caller limits the number of claims.
// Limits    Digests that were chosen to collide share one bucket: use the keyed hash for untrusted
//           ids.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/claims_v1.md.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"

namespace semel {

// The answer to every call that tests, takes or claims an id, or ends a claim.
enum class ClaimAnswer : std::uint8_t {
  fresh,    // the first: the id is yours now, unless it was only a test
  pending,  // another owner is at work on it; nothing changed
  seen,     // taken before; nothing changed
  done,     // the owner's claim was committed or released, as asked
  lost,     // this owner has no such claim, or no more; nothing changed
  stale,    // too old to judge; nothing changed
  full,     // no room; nothing changed, and a claim whose commit failed stays
};

// Returns true if a call with this answer may have changed anything. A refusal (`stale`, `full`)
// may have advanced time or a count.
constexpr bool changes(ClaimAnswer answer) {
  return answer != ClaimAnswer::seen && answer != ClaimAnswer::pending &&
         answer != ClaimAnswer::lost;
}

// Counts since the table was made.
struct ClaimCounts {
  std::uint64_t backward_steps = 0;  // advance() to a time before now()
  std::uint64_t taken_over = 0;      // claims that others got after the deadline
  std::uint64_t dropped = 0;         // entries that nobody ended within keep_ms
  bool operator==(const ClaimCounts&) const = default;
};

class SEMEL_API ClaimTable {
 public:
  // REQUIRES: keep_ms >= 0.
  ClaimTable(TimeMs keep_ms, TimeMs now_ms);

  // Grants the id again to an owner that holds it already, with the later of the two deadlines. So
  // a delayed call does not shorten one that came after it.
  ClaimAnswer claim(Digest id, std::uint64_t owner, TimeMs until_ms);
  // Returns the answer that another owner's claim would get, now or as after advance(now_ms).
  ClaimAnswer look(Digest id) const { return look(id, now()); }
  ClaimAnswer look(Digest id, TimeMs now_ms) const;
  // Returns who claimed the id, even after the deadline, or who committed it; now or as after
  // advance(now_ms).
  std::optional<std::uint64_t> owner(Digest id) const { return owner(id, now()); }
  std::optional<std::uint64_t> owner(Digest id, TimeMs now_ms) const;

  // These return done or lost.

  // Extends the deadline of a claim that `owner` holds.
  ClaimAnswer renew(Digest id, std::uint64_t owner, TimeMs until_ms);
  // Ends a claim that `owner` holds: the id is taken. Returns done again if it is repeated.
  ClaimAnswer commit(Digest id, std::uint64_t owner);
  // Ends a claim that `owner` holds: the id is free again. A commit cannot be released.
  ClaimAnswer release(Digest id, std::uint64_t owner);
  // Drops a commit of `owner`, because the id is remembered elsewhere from now on.
  ClaimAnswer forget(Digest id, std::uint64_t owner);

  // Ends a claim on the id whoever holds it, because the id was taken elsewhere after the deadline.
  // Returns false, and changes nothing, if there is none.
  bool take_over(Digest id);

  void advance(TimeMs now_ms);
  TimeMs now() const { return time_.now(); }
  TimeMs keep_ms() const { return keep_ms_; }

  std::uint64_t size() const { return entries_.size(); }  // claims and commits
  std::uint64_t commits() const { return commits_; }
  ClaimCounts counts() const;
  std::uint64_t bytes() const;  // all memory that the table holds, by estimate

  // For hosts that move memory. Allocates some of the entries anew: those of one section. The state
  // stays, also if memory runs out. Returns false if there is no such section.
  bool renew(std::uint64_t section);

  void encode(Sink out) const;
  static Result<ClaimTable> decode(ByteView in);

  // Compares everything that decides what happens next, not counts().
  bool operator==(const ClaimTable& other) const;

 private:
  struct Entry {
    std::uint64_t owner;
    TimeMs time_ms;  // of a claim: the deadline; of a commit: when it was made
    bool committed;
    bool operator==(const Entry&) const = default;
  };
  // The time to look at an entry. The entry may be gone by then, or have another time.
  struct Due {
    TimeMs time_ms;
    Digest id;
  };
  using Entries = std::unordered_map<Digest, Entry>;

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
