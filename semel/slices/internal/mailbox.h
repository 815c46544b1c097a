// Mailbox: the calls of one round, packed into one message for each slice and action.
//
// Contract  Keys keep the order in which they were put. Each has a route, which names the receiver
//           of its answer.
// Cost      One lookup in a hash table for each key. Nothing depends on the number of slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "semel/core/assert.h"
#include "semel/slices/slice.h"

namespace semel::slices_internal {

template <class Route>
class Mailbox {
 public:
  // The fields that all calls of a round share.
  struct Round {
    TimeMs now_ms;
    std::uint64_t owner;
    TimeMs claim_until_ms;
  };

  void clear() {
    messages_.clear();
    routes_.clear();
    open_.clear();
  }

  // Returns true if the key begins a message. `at_ms` is kept for actions that set.
  bool put(std::size_t slice, SliceAction action, const Round& round, Digest key,
           std::optional<TimeMs> at_ms, const Route& route) {
    const auto [open, begins] =
        open_.try_emplace(slice * kActions + static_cast<std::size_t>(action), messages_.size());
    if (begins) {
      messages_.push_back({slice, {}});
      routes_.emplace_back();
      SliceCall& call = messages_.back().call;
      call.action = action;
      call.now_ms = round.now_ms;
      call.owner = round.owner;
      call.claim_until_ms = round.claim_until_ms;
    }
    SliceCall& call = messages_[open->second].call;
    call.keys.push_back(key);
    routes_[open->second].push_back(route);
    const bool sets = action == SliceAction::set || action == SliceAction::test_and_set;
    if (sets && at_ms) call.at_ms.push_back(*at_ms);
    return begins;
  }

  std::span<SliceMessage> messages() { return messages_; }

  // Calls failed(slice) for each message that failed. For each key of the others it calls
  // answered(slice, action, route, verdict), or claimed(route, answer) if the action is a claim.
  // REQUIRES: all messages are answered.
  template <class Failed, class Answered, class Claimed>
  void read(Failed failed, Answered answered, Claimed claimed) const {
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      const auto& [slice, call] = messages_[m];
      if (call.failed) {
        failed(slice);
        continue;
      }
      const bool claims = is_claim(call.action);
      SEMEL_ASSERT((claims ? call.claims.size() : call.verdicts.size()) == call.keys.size());
      for (std::size_t i = 0; i < call.keys.size(); ++i) {
        if (claims) {
          claimed(routes_[m][i], call.claims[i]);
        } else {
          answered(slice, call.action, routes_[m][i], call.verdicts[i]);
        }
      }
    }
  }

 private:
  static constexpr std::size_t kActions = 7;

  std::vector<SliceMessage> messages_;
  std::vector<std::vector<Route>> routes_;             // of each key of each message
  std::unordered_map<std::size_t, std::size_t> open_;  // the message for a slice and an action
};

}  // namespace semel::slices_internal
