// TallyStore: a table in an ordered store, which survives its process.
//
// Contract  As in ledger.h. The additions of one call, and their ids, are one write of the store: all
//           or nothing. No counter is read before it is written, but for a call that asks for values
//           and a table beyond the bound of ledger.h. One in 128 writes of a busy counter is
//           followed by a read and a write of it, so that its readers have not more to add up.
// Durability  every_write: what was answered is on disk. Calls of many threads that wait at the same
//           time are written and synced together. periodic: on disk after a `period_ms`, if tick() is
//           called as often. none: when the system pleases. In all of them what is lost is lost from
//           the end, ids and effects together: a retry of what was lost counts, a retry of what was
//           not does not.
// Restart   Opening reads the ids of the last window, and the operations that are not folded. The ids
//           may take more memory than before, also beyond max_bytes: all of them stay known, and new
//           ones are refused until enough have left.
// Sites     entries() is the part of the store that sites share (entries.h), as a store of its own:
//           what is written to it arrives. A sync of it, with the rule join and join_entries(), makes
//           two sites equal. Operations are shared only once they are durable (publish()).
// Sums      An index (index/indexed_store.h) is opened with the first sum, and follows from then on.
//           sum: O(log counters), what is not folded in the range, and what was written since the
//           last sum.
// Error     Errc::io if the store fails to write: nothing is known of that call then, and the table
//           refuses all that follow until it is opened again.
// Threads   Any number of threads may call at once.
// Format    docs/formats/tally_entries_v2.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/clock.h"
#include "semel/core/result.h"
#include "semel/hash/keyed_digest.h"
#include "semel/tally/internal/ledger.h"

namespace semel {
class IndexedStore;
class Merger;
class OrderedStore;
}  // namespace semel

namespace semel::tally {

enum class Durability : std::uint8_t { none = 0, periodic = 1, every_write = 2 };

class TallyStore {
 public:
  struct Settings {
    std::optional<Recogniser::Goal> recogniser = {};  // nullopt: as the table has it
    SiteId site = 1;                                  // of a new table
    Durability durability = Durability::periodic;
    TimeMs period_ms = 1000;
    OperationLog::Limits log = {};
    // The time at which entries of other sites arrive: their ids are remembered from then on. Without
    // a clock the table takes none (Errc::unsupported). REQUIRES: it outlives the table.
    const Clock* clock = nullptr;
    // Of the sites that share the table, for digests in the index; nullopt: of nobody.
    std::optional<Secret> secret = {};
    bool read_only = false;  // nothing is written
  };

  // The merger that the store must have been opened with.
  static const Merger& merger();

  // The table in the store, or a new one if there is none and a recogniser is given.
  // Errc::mismatch if it exists with another recogniser; Errc::invalid if there is none, and none is
  // to be made; Errc::corrupt for a store that is not that of a table.
  // REQUIRES: the store outlives this, has no observer, and nobody else writes to it.
  static Result<std::unique_ptr<TallyStore>> open(OrderedStore& store, const Settings& settings,
                                                  TimeMs now_ms);
  // A copy of a member's store becomes the store of a new site, which the member has admitted.
  static Result<std::unique_ptr<TallyStore>> open_as(OrderedStore& store, SiteId site,
                                                     const Settings& settings, TimeMs now_ms);
  ~TallyStore();

  enum class Values : std::uint8_t { no, yes };
  Result<void> add(std::span<const Addition> additions, std::span<Answer> answers, TimeMs now_ms,
                   Values values = Values::no);
  Result<Answer> add(const Addition& addition, TimeMs now_ms, Values values = Values::yes);
  Result<Answer> reset(std::string_view counter, const OperationId& id, TimeMs now_ms);
  Result<Answer> remove(std::string_view counter, const OperationId& id, TimeMs now_ms);

  Result<std::optional<std::int64_t>> get(std::string_view counter) const;
  Result<std::vector<std::optional<std::int64_t>>> many(
      std::span<const std::string_view> counters) const;
  // In order, until `visit` says false. REQUIRES: `visit` does not call this.
  Result<void> scan(const NameRange& range, const Counters::Visit& visit) const;
  Result<RangeSum> sum(const NameRange& range);

  // To be called now and then: syncs if the period is over, and forgets ids that have left the
  // window.
  Result<void> tick(TimeMs now_ms);
  Result<void> sync();  // all that was answered is on disk when it returns
  // Syncs, and lets other sites see what this one has taken, and what it holds.
  Result<void> publish();
  // A checkpoint of the index, if one is open: the next opening is faster.
  Result<void> checkpoint();

  Result<void> admit(SiteId site);   // durable when it returns
  Result<void> retire(SiteId site);  // the same
  // Copies all that a new site starts from: the whole store, as records. What is copied is durable
  // here. Errors as those of OperationLog::in_force().
  Result<void> copy_to(OrderedStore& other) const;

  // Adds what a site took that is superseded (OperationLog), so that its clients lose nothing: the
  // operations of that site that it has not folded, and of sites that it calls forked, each with its
  // id. What this table knows already is a duplicate, if its id is still in the window.
  struct TakenOver {
    std::uint64_t applied = 0;
    std::uint64_t known = 0;    // duplicates
    std::uint64_t refused = 0;  // for whatever other reason
    std::uint64_t resets = 0;   // and removals: left out, since they would undo what came later too
  };
  Result<TakenOver> take_over(const TallyStore& superseded, TimeMs now_ms);

  OrderedStore& entries();
  Result<IndexedStore*> index();  // of entries() and of the counters

  struct Info {
    Recogniser::Goal recogniser;
    OperationLog::State log;
    std::uint64_t unfolded = 0;
    std::optional<SiteId> waiting_for = {};
    Promise promise = {};
    WindowCounts counts = {};
    double false_positive_rate = 0;
    double expected_undercount = 0;  // since the table was opened
    std::uint64_t recogniser_bytes = 0;
    std::uint64_t recalled = 0;       // ids of the window that the opening found
    std::vector<SiteId> forked = {};  // OperationLog::forked()
  };
  Info info() const;
  // OperationLog::holders(). REQUIRES: the dot was durable, or no crash has come since it was given:
  // what a crash undoes leaves its number to another operation.
  std::uint64_t holders(Dot dot) const;

 private:
  class Body;
  explicit TallyStore(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace semel::tally
