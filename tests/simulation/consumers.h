// A simulation of consumers that claim, work and commit, and crash at any point, over a network
// that loses, doubles and delays. It runs in one thread and in simulated time, so a run depends
// only on its hazards.
//
//   source      delivers each event to one consumer after another, until it is acknowledged
//   consumer    claims what it gets, works, commits, acknowledges; one event at a time. It repeats
//               requests that are not answered. After a crash it knows nothing, and is a new owner
//   sifter      answers requests in the order in which they arrive; it is durable
//
// At the end this must hold for the two ways to work:
//
//   before_commit   the effect of the work is there when the work ends. Every event has its effect
//                   at least once
//   with_commit     the work travels with the commit, and takes effect in one step with it if the
//                   commit is done. Every event has its effect exactly once
//
// The window is exact, because a filter would drop events at its rate of false positives, which is
// no fault of the protocol.
#pragma once

#include <cstdint>
#include <string>

#include "semel/core/clock.h"

namespace semel::simulation {

enum class Work { before_commit, with_commit };

// Faults that a sifter can have on purpose. The simulation must find each of them.
enum class Fault {
  none,
  lost_commit_is_done,    // an owner that lost the claim may still commit
  second_commit_is_done,  // a repeated commit is done again
  claim_takes,            // the window takes the id at the claim: add() in place of claim()
  claim_never_ends,       // no deadline
};

inline constexpr TimeMs kLatencyMs = 1, kClaimMs = 100, kRetryMs = 30, kRestartMs = 50,
                        kRedeliveryMs = 200;

struct Fate {
  int copies = 1;  // 0: the message is lost
  TimeMs delay_ms = kLatencyMs;
  TimeMs between_ms = 0;  // between one copy and the next
};

// Decides everything that is random. It is asked in the order of events.
class Hazards {
 public:
  virtual ~Hazards() = default;
  // A consumer passes a point before and after each thing that it does; points count from 0.
  virtual bool crashes(int consumer, int point) = 0;
  virtual Fate fate_of(int message) = 0;
  virtual TimeMs work_ms(int consumer) = 0;
  virtual bool work_fails() = 0;       // if so, the consumer releases the claim
  virtual bool renews() = 0;           // true if the consumer renews its claim during the work
  virtual bool sifter_restarts() = 0;  // at each request: from its bytes
  virtual int next_consumer(int last, int consumers) = 0;
};

struct Plan {
  int consumers;
  int events;
  Work work;
  Fault fault = Fault::none;
};

struct Outcome {
  std::string violation;  // empty if all held
  int messages = 0;
  int points = 0;  // the highest number that a consumer passed
  int crashes = 0;
  int pending_claims = 0, lost_commits = 0, seen_commits = 0, releases = 0, renewals = 0;
  int repeated_work = 0;  // effects beyond the first of an event
};

Outcome run(const Plan& plan, Hazards& hazards);

}  // namespace semel::simulation
