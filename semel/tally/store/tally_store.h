// TallyStore: a table in an ordered store, which survives its process.
//
// Contract  As in tally/table.h. The additions of one call, and their ids, are one write of the
//           store: all or nothing. A counter is not read before it is written, unless the call asks
//           for values or the sum of all |delta| so far is 2^63 or more. One in 128 writes of a
//           busy counter is followed by a read and a write of it, so that a reader has at most that
//           many merges to add up.
// Durability  every_write: an answered call is on disk. Calls of many threads that wait at the same
//           time are written and synced together. periodic: a call is on disk after `period_ms`, if
//           tick() is called as often. none: the system decides. A crash loses only the last
//           operations, ids and effects together: a retry of a lost operation counts, a retry of
//           any other does not.
// Restart   Opening reads the ids of the last window, and the operations that are not folded. The
//           ids may take more memory than before, even beyond max_bytes. All of them stay known,
//           and new ones are refused until enough have left.
// Sites     A sync of two tables (semel/sync/sync.h) makes two sites equal:
//
//             SyncSettings settings;
//             settings.range = TallyStore::sync_rule().range;
//             settings.resolver.join = TallyStore::sync_rule().join;
//             ... sync(*SEMEL_TRY(table.ready_to_sync()), peer, settings);
//
//           Other means work too, if all records of the range travel, in any order and any number
//           of times. Operations are shared only once they are durable (publish()).
// Sums      The first sum opens an index (index/indexed_store.h), which is kept up to date from
//           then on. sum: O(log counters), plus the unfolded operations of the range, plus the
//           writes since the last sum.
// Error     Errc::io if the store fails to write. Then the outcome of that call is unknown, and the
//           table refuses all later calls until it is opened again. The same holds if memory runs
//           out during a call.
// Threads   Any number of threads may call at once.
// Format    docs/formats/tally_entries_v1.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/clock.h"
#include "semel/core/result.h"
#include "semel/hash/keyed_digest.h"
#include "semel/store/ordered_store.h"
#include "semel/tally/counters/name_range.h"
#include "semel/tally/operation.h"
#include "semel/tally/table_info.h"

namespace semel {
class IndexedStore;
}  // namespace semel

namespace semel::tally {

enum class Durability : std::uint8_t { none = 0, periodic = 1, every_write = 2 };

class SEMEL_API TallyStore {
 public:
  struct Settings {
    std::optional<Recognition> recognition = {};  // nullopt: as the table has it
    SiteId site = 1;                              // of a new table
    Durability durability = Durability::periodic;
    TimeMs period_ms = 1000;
    std::uint64_t max_unfolded = 1 << 20;  // as in Table::Settings
    // The clock for the arrival of other sites' entries: their ids are remembered from then on. A
    // table without a clock accepts no entries (Errc::unsupported). REQUIRES: it outlives the
    // table.
    const Clock* clock = nullptr;
    // The secret that keys the digests of the index. All sites that share the table need the same.
    // nullopt: all zeros.
    std::optional<Secret> secret = {};
    bool read_only = false;
  };

  // Opens the table in the store, or makes one if there is none and `recognition` is given.
  // Errc::mismatch if it exists with another recognition; Errc::invalid if there is none, and none
  // should be made; Errc::corrupt if the store holds something else. REQUIRES: the store was
  // opened with counter_merger() (tally/store/counter_merger.h), outlives this, has no observer,
  // and nobody else writes to it.
  static Result<std::unique_ptr<TallyStore>> open(OrderedStore& store, const Settings& settings,
                                                  TimeMs now_ms);
  // Turns a copy of a member's store into the store of a new site, which the member has admitted.
  static Result<std::unique_ptr<TallyStore>> open_as(OrderedStore& store, SiteId site,
                                                     const Settings& settings, TimeMs now_ms);
  ~TallyStore();

  enum class Values : std::uint8_t { no, yes };
  // These do what Table does, except that the time always advances.
  Result<void> add(std::span<const Addition> additions, std::span<Answer> answers, TimeMs now_ms,
                   Values values = Values::no);
  Result<Answer> add(const Addition& addition, TimeMs now_ms, Values values = Values::yes);
  Result<Answer> reset(std::string_view counter, const OperationId& id, TimeMs now_ms);
  Result<Answer> remove(std::string_view counter, const OperationId& id, TimeMs now_ms);

  Result<std::optional<std::int64_t>> get(std::string_view counter) const;
  Result<std::vector<std::optional<std::int64_t>>> get(
      std::span<const std::string_view> counters) const;
  // REQUIRES: `visit` does not call this.
  Result<void> scan(const NameRange& range, const VisitCounter& visit) const;
  Result<RangeSum> sum(const NameRange& range);

  // Syncs if the period is over, and forgets ids that have left the window. Call it now and then.
  Result<void> tick(TimeMs now_ms);
  // Returns once everything that was answered is on disk.
  Result<void> sync();
  // Syncs, and lets other sites see the operations of this one, and its view.
  Result<void> publish();
  // Saves a checkpoint of the index, if it is open, so that the next opening is faster.
  Result<void> checkpoint();

  // These are durable when they return. Errors as in Table.
  Result<void> admit(SiteId site);
  Result<void> retire(SiteId site);
  // Copies the whole store, as records, for a new site to start from. The copied records are
  // durable here. Errc::outside, Errc::forked and Errc::gap if this site may not count.
  Result<void> copy_to(OrderedStore& other) const;

  // Adds the operations of a superseded site, so that its clients lose nothing: those that the site
  // has not folded, and those of sites that it calls forked, each with its id. An operation that
  // this table already knows is a duplicate, if its id is still in the window.
  struct TakenOver {
    std::uint64_t applied = 0;
    std::uint64_t known = 0;    // duplicates
    std::uint64_t refused = 0;  // for any other reason
    std::uint64_t resets = 0;   // and removals: left out, since they would undo later operations
  };
  Result<TakenOver> take_over(const TallyStore& superseded, TimeMs now_ms);

  // Returns the rule for a sync of two tables: the records that sites share, and the join of two
  // values of a record.
  struct SyncRule {
    KeyRange range;
    std::string (*join)(std::string_view key, std::string_view a, std::string_view b);
  };
  static const SyncRule& sync_rule();
  // Publishes, and returns the index for a sync. Opens it the first time.
  Result<IndexedStore*> ready_to_sync();
  // Returns the records that sites share as a store of their own. Entries written to it arrive at
  // the table.
  OrderedStore& entries();
  Result<IndexedStore*> index();  // of entries() and of the counters

  struct Info : TableInfo {
    std::uint64_t recalled = 0;  // ids of the window that the opening found
  };
  Info info() const;
  // Returns how many members hold an operation. REQUIRES: the dot was durable, or no crash has
  // happened since it was given. After a crash, a lost number is given to another operation.
  std::uint64_t holders(Dot dot) const;

 private:
  class SEMEL_LOCAL Body;
  explicit TallyStore(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace semel::tally
