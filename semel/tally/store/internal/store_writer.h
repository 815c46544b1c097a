// StoreWriter: writes the changes of a ledger into its store, in order and as a whole.
//
// Contract  The ledger is ahead of the store until commit(). If a write or a sync fails, the table
//           is broken: the ledger can no longer be trusted, and all later calls are refused. The
//           caller says so too, with give_up(), if an exception interrupts a change of the ledger.
//           publish() lets the other sites see the operations of this one, once they are durable.
// Journal   Ids, and operations that other sites cannot see yet, are written as records of a
//           journal. A record is dropped once all of its ids have left the window and its
//           operations are shared. For each client that numbers its ids, the highest dropped
//           sequence is kept: lower ones can no longer be judged.
// Threads   The caller holds the lock of the table.
#pragma once

#include <cstdint>
#include <optional>

#include "semel/core/result.h"
#include "semel/store/ordered_store.h"
#include "semel/tally/internal/ledger.h"
#include "semel/tally/store/internal/store_batch.h"

namespace semel::tally::internal {

class StoreWriter {
 public:
  // The state that an earlier process left in the store.
  struct Start {
    std::uint64_t next_number = 0;                 // of a record of the journal
    std::uint64_t shared = 0;                      // operations of this site that others can see
    std::optional<TimeMs> unshared_since_ms = {};  // the time of the first record that has others
    bool unsynced = false;                         // the writer may have been killed before a sync
  };

  // REQUIRES: both outlive this.
  StoreWriter(OrderedStore& store, Ledger& ledger, const Start& start);

  // Returns the base of the ledger: all changes to it are part of the next write.
  StoreBatch& batch() { return batch_; }
  const StoreBatch& batch() const { return batch_; }

  // Errc::io after a failure.
  Result<void> usable() const;
  void give_up() { broken_ = true; }
  // Writes all changes of the ledger, together with its state.
  Result<void> commit();
  // Writes the state of the ledger even if nothing else has changed.
  void put_state();
  bool unsynced() const { return synced_ != written_; }
  Result<void> sync();
  // These two sync in two steps, for a caller that gives its lock back while the disk works.
  std::uint64_t begin_sync(TimeMs now_ms);
  Result<void> end_sync(std::uint64_t begun, const Result<void>& synced);
  TimeMs synced_ms() const { return synced_ms_; }
  // Drops the records of the journal that are no longer needed, if it is time.
  Result<void> forget_old_ids();

  // Commits and syncs, then lets other sites see the operations of this one, and its view.
  Result<void> publish();
  // Turns a copy of a member's store into that of another site.
  Result<void> become(SiteId site, TimeMs now_ms);

  // Returns how often counters were written.
  std::uint64_t folds() const { return folds_; }

 private:
  Result<void> shorten_merges();
  void share_operations(SiteId site);

  OrderedStore& store_;
  Ledger& ledger_;
  StoreBatch batch_;
  Start start_;
  bool broken_ = false;
  std::uint64_t folds_ = 0;
  std::uint64_t written_ = 0;  // writes
  std::uint64_t synced_ = 0;   // of these
  TimeMs synced_ms_ = 0;
  TimeMs forgot_ms_ = 0;
};

}  // namespace semel::tally::internal
