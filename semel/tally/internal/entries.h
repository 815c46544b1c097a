// Entries: the records of a table in an ordered store, which also travel between sites.
//
//   !shape            what the table is                     local
//   !state            what a restart needs                  local
//   #<time><number>   ids that were remembered, a batch     local
//   $<client>         the highest sequence forgotten        local
//   c<counter>        a CounterState                        local; copied to a new site
//   o<dot>            an operation that is not folded       shared
//   v<site>           what a site says it holds             shared
//
// Sites count as one table if they share the shared records by any means, in any order, any number
// of times. A sync with the rule join and join_entries() does it. After a site has folded a record
// it no longer has it, and ignores it when it comes again.
//
// Nothing is known of what carries shared records, so each of them ends with a checksum of its key
// and its value. The store guards the local ones.
// Format    docs/formats/tally_entries_v1.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/hash/digest.h"
#include "semel/tally/internal/logged_operation.h"
#include "semel/tally/internal/site_view.h"

namespace semel::tally::internal {

inline constexpr std::string_view kShapeKey = "!shape";
inline constexpr std::string_view kStateKey = "!state";
inline constexpr char kJournalPrefix = '#';
inline constexpr char kForgottenPrefix = '$';
inline constexpr char kCounterPrefix = 'c';
inline constexpr char kOperationPrefix = 'o';
inline constexpr char kViewPrefix = 'v';
// The shared entries lie from the first key to before the second.
inline constexpr std::string_view kSharedFirst = "o";
inline constexpr std::string_view kSharedEnd = "w";

std::string counter_key(std::string_view counter);
std::string operation_key(Dot dot);
std::string view_key(SiteId site);
std::string forgotten_key(const Digest& client);
std::string journal_key(TimeMs at_ms, std::uint64_t number);

// These return nullopt for a key of another kind.
std::optional<Dot> dot_of_key(std::string_view key);
std::optional<SiteId> site_of_key(std::string_view key);
std::optional<Digest> client_of_key(std::string_view key);
struct JournalKey {
  TimeMs at_ms;
  std::uint64_t number;
};
std::optional<JournalKey> journal_of_key(std::string_view key);

struct ViewOfSite {
  SiteId site;
  SiteView view;
  bool operator==(const ViewOfSite&) const = default;
};
using SharedEntry = std::variant<Operation, ViewOfSite>;

// These return the value of a shared entry, with its checksum.
std::string entry_of(const Operation& operation);
std::string entry_of(SiteId site, const SiteView& view);
// Errc::corrupt for a damaged value, for the value of another key, and for a key that is not
// shared.
Result<SharedEntry> decode_entry(std::string_view key, ByteView value);
// Returns the checksum of an entry with this value before it.
std::uint64_t entry_checksum(std::string_view key, ByteView value);

// Returns the join of two values of one shared entry: two views of a site become one, and two
// copies of an operation are equal. A damaged value gives way to a sound one.
std::string join_entries(std::string_view key, std::string_view a, std::string_view b);

}  // namespace semel::tally::internal
