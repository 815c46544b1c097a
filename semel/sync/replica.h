// Replica: a store that answers for some ranges of keys, and hands them to others while clients write.
//
// Contract  get(), write() and update() are for clients: a key that the replica does not answer for
//           is Errc::outside, and nothing is changed. Records may lie outside the responsibility:
//           those of a range that is being taken over, or was given up and is not yet removed.
//           copy_set(), sync_set() and the answers to frames see all records.
// Migration  While migrate() runs, and if it fails at any step:
//           - At every moment one of the two answers for each key, and from step 3 on only the
//             destination does. A client that asks the source first, then the destination, is
//             never refused by both.
//           - No write that either has acknowledged is lost. The source's last records are removed
//             only after each was proved to be at the destination, or stored there by itself.
//           - Between steps 2 and 3 both take writes. What becomes of two values of one key, the
//             resolver says: only join keeps both.
//           - Between steps 2 and 4 the destination may answer with an older value than the source
//             has acknowledged. If that must not be, clients read from both and join.
//           - A record that a client removes meanwhile may come back (resolver.h: joins know no
//             removal).
//           After an error the same call goes on where it stopped.
// Cost      A migration sends the range once, and then what differs. Containers that take writes
//           without pause, so that nothing can be proved of them, are sent a second time.
// Threads   Any number of threads may call at once. A responsibility that is given up is given up
//           when the call returns: no write to it is under way.
// Source    Trutna, sections 1.2 and 1.3 (docs/design.md).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/index/indexed_store.h"
#include "semel/store/ordered_store.h"
#include "semel/store/range_set.h"
#include "semel/store/responsible_store.h"
#include "semel/sync/responder.h"
#include "semel/sync/sync.h"

namespace semel {

// The way to the other end of a sync: in this process, behind a pipe, in a simulation. What gets
// lost, it sends again; an error means that it gives up.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual Result<Bytes> ask(ByteView frame) = 0;
};

class LocalPeer final : public Peer {
 public:
  // REQUIRES: the responder outlives this.
  explicit LocalPeer(Responder& responder) : responder_(responder) {}
  Result<Bytes> ask(ByteView frame) override { return responder_.respond(frame); }

 private:
  Responder& responder_;
};

class Replica {
 public:
  struct Settings {
    RangeSet responsibility;
    IndexedStore::Settings index;
    Resolver resolver;  // its functions for join and newest, the same at all replicas
    Link link;
    SyncLimits limits;
    std::uint64_t seed = 0;  // of all syncs; another for each replica
  };

  // REQUIRES: the store outlives the replica, and has no observer.
  // Errc::invalid if the settings describe no index.
  static Result<std::unique_ptr<Replica>> open(OrderedStore& store, const Secret& secret,
                                               Settings settings);

  Result<std::optional<std::string>> get(std::string_view key) const;
  Result<void> write(std::span<const Write> writes);
  Result<void> update(std::span<const std::string_view> keys, const OrderedStore::Become& become);

  RangeSet responsibility() const { return clients_.responsibility(); }
  void set_responsibility(RangeSet responsibility);
  void take_over(const KeyRange& range);  // adds it to the responsibility
  void give_up(const KeyRange& range);    // takes it out

  // What the destination lacks of the range, it gets; what it has, it keeps. So a copy, also one
  // that comes twice or late, overwrites nothing that clients wrote there.
  Result<SyncReport> copy_set(Peer& destination, const KeyRange& range);
  // Once. What clients write at either end meanwhile may be left for the next time; then the report
  // is not `proved`. Functions for join and newest are those of the settings.
  Result<SyncReport> sync_set(Peer& destination, const KeyRange& range, const Resolver& resolver);
  // sync_set() until nothing of this end's records is left to bring over, however fast the other end
  // is written to. Errc::invalid unless the rule is join or newest.
  // REQUIRES: this replica answers for no key of the range until it returns.
  Result<void> hand_over(Peer& destination, const KeyRange& range, const Resolver& resolver);
  // Errc::invalid, and no change, if the replica answers for a key of the range.
  Result<void> remove_set(const KeyRange& range);

  // Answers others, for all records.
  Responder& responder() { return responder_; }
  IndexedStore& index() { return *index_; }

 private:
  Replica(OrderedStore& store, std::unique_ptr<IndexedStore> index, Settings settings);

  Result<void> hand_over_part(Peer& destination, const KeyRange& range, const Resolver& resolver);
  Result<std::optional<std::string>> middle_of(const KeyRange& range);
  Result<void> send_all(Peer& destination, const KeyRange& range, Rule rule);
  std::uint64_t next_seed();

  OrderedStore& store_;  // all records
  ResponsibleStore clients_;
  std::unique_ptr<IndexedStore> index_;
  Settings settings_;
  Responder responder_;
  std::mutex
      policy_;  // held while the responsibility changes, and while what is outside is removed
  std::mutex seed_mutex_;
};

// The procedures of the paper, in its order. `to_destination` is the way from the source to the
// destination's responder. Errc::invalid, and no change, unless the rule is join or newest: under
// the others a write may be lost.

//   1. source.copy_set(destination, range)
//   2. destination.take_over(range)
//   3. source.give_up(range)
//   4. source.hand_over(destination, range)
//   5. source.remove_set(range)
Result<void> migrate(Replica& source, Replica& destination, Peer& to_destination,
                     const KeyRange& range, const Resolver& resolver);

//   1. source.copy_set(destination, range)
//   2. destination.take_over(range)
//   3. source.sync_set(destination, range): once; from then on as often as the replicas are to agree
// Both answer from step 2 on. Until the next sync that is `proved` each may lack what was written to
// the other.
Result<SyncReport> replicate(Replica& source, Replica& destination, Peer& to_destination,
                             const KeyRange& range, const Resolver& resolver);

//   1. leaving.give_up(range)
//   2. leaving.hand_over(staying, range)
// Every write that the leaving replica has acknowledged is at the staying one afterwards. Its records
// stay where they are: remove_set() removes them.
// Errc::invalid, and no change, if the staying replica does not answer for the range.
Result<void> scale_down(Replica& leaving, Replica& staying, Peer& to_staying, const KeyRange& range,
                        const Resolver& resolver);

}  // namespace semel
