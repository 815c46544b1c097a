// Entries: how a table lies in an ordered store, and travels between sites.
//
//   !shape            what the table is                     local
//   !state            what a restart needs                  local
//   #<time><number>   ids that were remembered, a batch     local
//   $<client>         the highest sequence forgotten        local
//   c<counter>        a CounterState                        local; copied to a new site
//   o<dot>            an operation that is not folded       shared
//   v<site>           what a site says it holds             shared
//
// Sites that share the records of kSharedEntries by any means, in any order, any number of times,
// count as one table: a sync with the rule join and join_entries() does it. A record that a site has
// folded is gone there, and taken no notice of when it comes again.
// Format    docs/formats/tally_entries_v2.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "semel/core/clock.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/hash/digest.h"
#include "semel/tally/internal/members.h"

namespace semel::tally {

inline constexpr std::string_view kShapeKey = "!shape";
inline constexpr std::string_view kStateKey = "!state";
inline constexpr char kJournalPrefix = '#';
inline constexpr char kForgottenPrefix = '$';
inline constexpr char kCounterPrefix = 'c';
inline constexpr char kOperationPrefix = 'o';
inline constexpr char kViewPrefix = 'v';
inline constexpr std::string_view kSharedFirst = "o";  // the shared entries: from here
inline constexpr std::string_view kSharedEnd = "w";    // to before here

std::string counter_key(std::string_view counter);
std::string operation_key(Dot dot);
std::string view_key(SiteId site);
std::string forgotten_key(const Digest& client);
std::string journal_key(TimeMs at_ms, std::uint64_t number);

// nullopt if it is none.
std::optional<Dot> dot_of_key(std::string_view key);
std::optional<SiteId> site_of_key(std::string_view key);
std::optional<Digest> client_of_key(std::string_view key);
struct JournalKey {
  TimeMs at_ms;
  std::uint64_t number;
};
std::optional<JournalKey> journal_of_key(std::string_view key);

// The join of two values of one shared entry: two views of a site become one, two copies of an
// operation are equal. What is damaged gives way to what is not.
std::string join_entries(std::string_view key, std::string_view a, std::string_view b);

}  // namespace semel::tally
