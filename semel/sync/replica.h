// Replica: a store that answers for some ranges of keys, and hands ranges to other replicas while
// clients write.
//
// Contract  get(), write() and update() are for clients. A key that the replica does not answer for
//           is Errc::outside, and nothing changes. Records may lie outside the responsibility, if
//           their range is being taken over, or was given up and is not yet removed. copy_set(),
//           sync_set() and the answers to frames see all records. While migrate() runs, and if it
//           fails at any step:
//           - At every moment one of the two answers for each key. From step 3 on only the
//             destination does. A client that asks the source first, then the destination, is never
//             refused by both.
//           - No acknowledged write is lost. The source removes its last records only after each
//             was proved to be at the destination, or was stored there by itself.
//           - Between steps 2 and 3 both take writes. The resolver decides between two values of
//             one key; only join keeps both.
//           - Between steps 2 and 4 the destination may answer with an older value than the source
//             has acknowledged. Clients that cannot accept this read from both and join.
//           - A record that a client removes meanwhile may come back, because joins know no removal
//             (resolver.h).
//           After an error the same call goes on where it stopped.
// Cost      A migration sends the range once, and then the differences. Containers that are written
//           without pause cannot be proved equal, and are sent a second time.
// Threads   Any number of threads may call at once. When give_up() returns, no write to the range
//           is running.
// Source    Trutna, sections 1.2 and 1.3 (docs/design.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/index/indexed_store.h"
#include "semel/store/ordered_store.h"
#include "semel/store/range_set.h"
#include "semel/sync/responder.h"
#include "semel/sync/sync.h"

namespace semel {

class SEMEL_API Replica {
 public:
  struct Settings {
    RangeSet responsibility;
    IndexedStore::Settings index;
    Resolver resolver;  // its functions for join and newest, the same at all replicas
    SyncLink link;
    SyncLimits limits;
    std::uint64_t seed = 0;  // of all syncs; choose another one for each replica
  };

  // Errors: Errc::invalid if the settings describe no index. REQUIRES: the store outlives the
  // replica, and has no observer.
  static Result<std::unique_ptr<Replica>> open(OrderedStore& store, const Secret& secret,
                                               Settings settings);

  ~Replica();

  Result<std::optional<std::string>> get(std::string_view key) const;
  Result<void> write(std::span<const RecordWrite> writes);
  Result<void> update(std::span<const std::string_view> keys, const OrderedStore::Become& become);

  RangeSet responsibility() const;
  void set_responsibility(RangeSet responsibility);
  void take_over(const KeyRange& range);  // adds it to the responsibility
  void give_up(const KeyRange& range);    // removes it from the responsibility

  // Copies the records of the range that the destination lacks. It overwrites nothing that clients
  // wrote there, even if it runs twice or late.
  Result<SyncReport> copy_set(SyncPeer& destination, const KeyRange& range);
  // Syncs once. Records that clients write at either end meanwhile may be left for the next sync;
  // then the report is not `proved`. The functions for join and newest are those of the settings.
  Result<SyncReport> sync_set(SyncPeer& destination, const KeyRange& range,
                              const Resolver& resolver);
  // Syncs until all records of this end are at the destination, however fast clients write there.
  // Errc::invalid unless the rule is join or newest. REQUIRES: this replica answers for no key of
  // the range until it returns.
  Result<void> hand_over(SyncPeer& destination, const KeyRange& range, const Resolver& resolver);
  // Removes the records of the range. Errc::invalid, and no change, if the replica answers for a
  // key of the range.
  Result<void> remove_set(const KeyRange& range);

  // Returns the responder for other replicas. It sees all records.
  Responder& responder();
  IndexedStore& index();

 private:
  struct SEMEL_LOCAL Body;
  explicit Replica(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

// These are the procedures of the paper. `to_destination` leads from the source to the responder of
// the destination. Errc::invalid, and no change, unless the rule is join or newest, because other
// rules can lose a write.

// Moves a range:
//   1. source.copy_set(destination, range)
//   2. destination.take_over(range)
//   3. source.give_up(range)
//   4. source.hand_over(destination, range)
//   5. source.remove_set(range)
SEMEL_API Result<void> migrate(Replica& source, Replica& destination, SyncPeer& to_destination,
                               const KeyRange& range, const Resolver& resolver);

// Makes a second replica of a range:
//   1. source.copy_set(destination, range)
//   2. destination.take_over(range)
//   3. source.sync_set(destination, range): once here, later as often as the replicas shall agree
// Both answer from step 2 on. Until the next sync that is `proved`, each may lack writes of the
// other.
SEMEL_API Result<SyncReport> replicate(Replica& source, Replica& destination,
                                       SyncPeer& to_destination, const KeyRange& range,
                                       const Resolver& resolver);

// Ends one of two replicas of a range:
//   1. leaving.give_up(range)
//   2. leaving.hand_over(staying, range)
// Afterwards the staying replica has every write that the leaving one has acknowledged. The records
// of the leaving replica stay until remove_set(). Errc::invalid, and no change, if the staying
// replica does not answer for the range.
SEMEL_API Result<void> scale_down(Replica& leaving, Replica& staying, SyncPeer& to_staying,
                                  const KeyRange& range, const Resolver& resolver);

}  // namespace semel
