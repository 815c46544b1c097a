// Operation: one change to a counter, and the id by which its retries are known.
//
// An id is opaque (whatever the client chose) or numbered (a client, and a number that it counts up).
// Both are digests by the time they are here: nobody keeps the text of an id. An operation without an
// id is new each time it comes.
// Format    docs/formats/tally_entries_v2.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel::tally {

struct OperationId {
  enum class Kind : std::uint8_t { none = 0, opaque = 1, numbered = 2 };

  Kind kind = Kind::none;
  Digest digest = {0, 0};      // of the id, or of the client
  std::uint64_t sequence = 0;  // numbered only

  static OperationId none() { return {}; }
  static OperationId opaque(Digest id) { return {Kind::opaque, id, 0}; }
  static OperationId numbered(Digest client, std::uint64_t sequence) {
    return {Kind::numbered, client, sequence};
  }
  bool operator==(const OperationId&) const = default;

  void encode(Sink out) const;
  static Result<OperationId> decode(Reader& in);
};

struct Operation {
  enum class Kind : std::uint8_t {
    add = 0,
    reset = 1,   // to zero, of all that its site had seen
    remove = 2,  // the same, and the counter goes
  };

  Dot dot = {};  // the site that took it, and its place in the log of that site
  Kind kind = Kind::add;
  OperationId id = {};
  std::string counter = {};
  std::int64_t delta = 0;       // add
  VersionVector observed = {};  // reset and remove: what they undo
  TimeMs taken_ms = 0;          // by the clock of its site
  VersionVector known = {};     // what its site held of other logs before it
  std::uint64_t previous = 0;   // the head of its log before it (log_heads.h)

  // Returns the head of its log after it; never 0.
  std::uint64_t head() const;

  bool operator==(const Operation&) const = default;

  // But for the dot, which is the key of the entry.
  void encode(Sink out) const;
  // Reads what fills `in` exactly; `in` may come from an enemy.
  static Result<Operation> decode(Dot dot, ByteView in);
};

// Ids of the text that a client sends. Errc::limit beyond limits::kOperationIdBytes.
Result<OperationId> opaque_id(const Hasher& hasher, std::string_view id);
Result<OperationId> numbered_id(const Hasher& hasher, std::string_view client,
                                std::uint64_t sequence);

}  // namespace semel::tally
