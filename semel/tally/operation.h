// Addition: one change to a counter, with the id by which its retries are recognised.
//
// An id is opaque (a text that the client chose) or numbered (a client, and a number that it counts
// up). Here both are digests already: the text of an id is never kept. An operation without an id
// counts each time it comes.
//
//   const OperationId id = *opaque_id(hasher, "order 17");
//   const Result<Answer> answer = table.add({"sold", 5, id}, now_ms);
//
// Format    docs/formats/tally_entries_v1.md, 'An id'.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel::tally {

struct SEMEL_API OperationId {
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

// These make an id from the text that a client sends. Errc::limit beyond limits::kOperationIdBytes.
SEMEL_API Result<OperationId> opaque_id(const Hasher& hasher, std::string_view id);
SEMEL_API Result<OperationId> numbered_id(const Hasher& hasher, std::string_view client,
                                          std::uint64_t sequence);

struct Addition {
  std::string_view counter;
  std::int64_t delta = 0;
  OperationId id = {};
};

enum class Outcome : std::uint8_t {
  applied,
  duplicate,  // a retry, or taken for one; nothing changed
  stale,      // too old to judge; nothing changed
  conflict,   // exact tables: the id came before with another counter or delta; nothing changed
  overflow,   // the value would leave 64 bits; nothing changed, and the id is still free
  full,       // there is no room to remember the id; nothing changed, and the id is still free
};

// Marks the additions of a batch that have no answer, because memory ran out before their turn.
inline constexpr auto kUnanswered = static_cast<Outcome>(0xff);

// Marks additions that would have made a counter, but had no room within the memory that the caller
// allowed. Nothing changed, not even the time, and the id is still free. Callers that set no limit
// do not see it.
inline constexpr auto kTooLarge = static_cast<Outcome>(0xfe);

struct Answer {
  Outcome outcome = Outcome::applied;
  // The value of the counter after the operation. nullopt if it was not requested, if there is no
  // such counter, or if the value is beyond 64 bits.
  std::optional<std::int64_t> value = {};
  bool operator==(const Answer&) const = default;
};

}  // namespace semel::tally
