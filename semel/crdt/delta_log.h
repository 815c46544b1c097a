// DeltaLog: keeps the changes that peers may still lack, so that each peer is sent exactly what it
// lacks.
//
// Contract  Changes are recorded and numbered in the order in which the state took them. A peer
//           gets the join of all changes that it has not acknowledged: the delta-interval. If the
//           log does not reach back that far, the peer gets the state instead. A peer that merges
//           what it gets, and then acknowledges it, ends up with everything, whatever messages are
//           lost, doubled or late. A delta never meets a state that lacks what came before it.
//           Changes that came from a peer are recorded too, so that they travel on where sites do
//           not all meet. They are not sent back to that peer. A state that came from a peer is not
//           a delta. If it changes anything, the log is cut after it, and other peers get the state
//           in their turn.
//           A log that begins anew numbers its changes anew. Its epoch, part of every number,
//           distinguishes them from the numbers of an earlier log. The caller provides an epoch
//           that this site never used.
// Memory    At most `most_bytes` of changes that some peer has not acknowledged. Beyond that the
//           oldest changes are dropped, and peers that lack them get the state. Changes that all
//           peers have are dropped. A peer is known from its first interval_for() until forget().
// Cost      record, acknowledge: O(log peers) and what is dropped. interval_for: O(n log k) for k
//           deltas with n elements in all.
// Threads   Every call needs the object to itself.
// Source    Almeida, Shoker & Baquero, 'Delta state replicated data types', JPDC 111, 2018,
//           algorithm 2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/result.h"

namespace semel {

// Names a peer, as the caller likes. A peer that lost its state comes back under another name.
using PeerId = std::uint64_t;

struct LogNumber {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;  // the last change; it stands for all changes up to it
  bool operator==(const LogNumber&) const = default;
};

template <class Delta>
class DeltaLog {
 public:
  // The content of the state when the log began.
  enum class Start : std::uint8_t { empty, something };

  struct Interval {
    enum class Kind : std::uint8_t { nothing, delta, state };
    Kind kind;
    std::optional<Delta> delta;  // if kind is delta
    LogNumber upto;              // the number to acknowledge once this is merged
  };

  DeltaLog(std::uint64_t epoch, std::uint64_t most_bytes, Start start = Start::empty)
      : epoch_(epoch), most_bytes_(most_bytes), last_(start == Start::empty ? 0 : 1), cut_(last_) {}

  // Records a change that the state has just taken: one made here, or one that was merged and is
  // new here. REQUIRES: it merges with all other recorded changes.
  void record(Delta delta) { append(std::move(delta), std::nullopt); }
  void record(Delta delta, PeerId from) { append(std::move(delta), from); }
  // Says that the state has changed by something that is not a delta.
  void cut() {
    changes_.clear();
    bytes_ = 0;
    cut_ = ++last_;
  }

  // Returns what to send to this peer now.
  Interval interval_for(PeerId peer);

  // Merges what the peer lacks into its state, for a peer in the same process, and acknowledges it.
  // `state` is the state of this log. Returns true if anything changed there.
  template <class State>
  Result<bool> send(PeerId peer, const State& state, State& to) {
    const Interval interval = interval_for(peer);
    bool changed = false;
    if (interval.kind == Interval::Kind::delta) changed = SEMEL_TRY(to.merge(*interval.delta));
    if (interval.kind == Interval::Kind::state) changed = SEMEL_TRY(to.merge(state));
    acknowledge(peer, interval.upto);
    return changed;
  }

  // Says that the peer has merged everything up to this number. Numbers that were not sent to it,
  // or that belong to another log, are ignored.
  void acknowledge(PeerId peer, LogNumber upto);

  // Says that the peer will not ask again, or begins anew. Nothing is kept for it any longer.
  void forget(PeerId peer) {
    peers_.erase(peer);
    drop_acknowledged();
  }

  LogNumber last() const { return {epoch_, last_}; }
  std::size_t size() const { return changes_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Change {
    Delta delta;
    std::uint64_t bytes;
    std::optional<PeerId> from;
  };
  struct Peer {
    std::uint64_t acknowledged = 0;
    std::uint64_t sent = 0;
    std::uint64_t state = 0;  // the first state sent that may still be acknowledged; 0: none
  };

  void append(Delta delta, std::optional<PeerId> from);
  void drop_oldest();
  void drop_acknowledged();
  // Returns the join of the changes first to last that did not come from this peer. It joins by
  // halves, so that no element is copied more often than the logarithm of the number of changes.
  std::optional<Delta> joined(std::uint64_t first, std::uint64_t last, PeerId peer) const;
  const Change& change(std::uint64_t number) const { return changes_[number - cut_ - 1]; }

  std::uint64_t epoch_;
  std::uint64_t most_bytes_;
  std::uint64_t last_;          // number of the last change
  std::uint64_t cut_;           // number of the last change that is not kept
  std::deque<Change> changes_;  // cut_ + 1 to last_
  std::uint64_t bytes_ = 0;     // of changes_
  std::map<PeerId, Peer> peers_;
};

template <class Delta>
auto DeltaLog<Delta>::interval_for(PeerId peer) -> Interval {
  Peer& known = peers_[peer];
  const LogNumber upto = last();
  if (known.acknowledged < cut_) {
    if (known.state < cut_) known.state = last_;
    known.sent = last_;
    return {Interval::Kind::state, std::nullopt, upto};
  }
  if (known.acknowledged == last_) return {Interval::Kind::nothing, std::nullopt, upto};
  std::optional<Delta> delta = joined(known.acknowledged + 1, last_, peer);
  if (!delta) {  // all of it came from this peer
    known.acknowledged = last_;
    drop_acknowledged();
    return {Interval::Kind::nothing, std::nullopt, upto};
  }
  known.sent = last_;
  return {Interval::Kind::delta, std::move(delta), upto};
}

template <class Delta>
void DeltaLog<Delta>::acknowledge(PeerId peer, LogNumber upto) {
  const auto known = peers_.find(peer);
  if (known == peers_.end() || upto.epoch != epoch_) return;
  if (upto.number > known->second.sent || upto.number <= known->second.acknowledged) return;
  known->second.acknowledged = upto.number;
  drop_acknowledged();
}

template <class Delta>
void DeltaLog<Delta>::append(Delta delta, std::optional<PeerId> from) {
  const std::uint64_t bytes = sizeof(Change) + delta.bytes();
  changes_.push_back({std::move(delta), bytes, from});
  ++last_;
  bytes_ += bytes;
  while (bytes_ > most_bytes_) drop_oldest();
}

template <class Delta>
void DeltaLog<Delta>::drop_oldest() {
  bytes_ -= changes_.front().bytes;
  changes_.pop_front();
  ++cut_;
}

template <class Delta>
void DeltaLog<Delta>::drop_acknowledged() {
  if (peers_.empty()) return;
  std::uint64_t by_all = last_;
  for (const auto& [id, peer] : peers_) {
    // A peer that was sent a state goes on from there.
    const std::uint64_t from = std::max(peer.acknowledged, peer.state);
    if (from >= cut_) by_all = std::min(by_all, from);
  }
  while (cut_ < by_all) drop_oldest();
}

template <class Delta>
std::optional<Delta> DeltaLog<Delta>::joined(std::uint64_t first, std::uint64_t last,
                                             PeerId peer) const {
  if (first == last) {
    const Change& only = change(first);
    return only.from == peer ? std::nullopt : std::optional<Delta>(only.delta);
  }
  const std::uint64_t middle = first + (last - first) / 2;
  std::optional<Delta> lower = joined(first, middle, peer);
  std::optional<Delta> upper = joined(middle + 1, last, peer);
  if (!lower) return upper;
  if (upper) {
    const Result<void> merged = lower->merge(*upper);
    SEMEL_ASSERT(merged);
  }
  return lower;
}

}  // namespace semel
