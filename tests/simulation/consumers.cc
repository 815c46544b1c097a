#include "tests/simulation/consumers.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "semel/sift/sifter.h"
#include "semel/window/exact_window.h"
#include "tests/simulation/agenda.h"

namespace semel::simulation {
namespace {

constexpr TimeMs kWindowMs = 3'600'000, kKeepMs = 1000;
constexpr TimeMs kPatienceMs = 600'000;  // by then every event must have been acknowledged

enum class Stage { idle, claiming, working, committing };
enum class Kind { claim, renew, commit, release };

class Simulation {
 public:
  Simulation(const Plan& plan, Hazards& hazards)
      : plan_(plan),
        hazards_(hazards),
        sifter_(*ExactWindow::make({.window_ms = kWindowMs}, 0), kKeepMs),
        consumers_(static_cast<std::size_t>(plan.consumers)),
        acknowledged_(static_cast<std::size_t>(plan.events)),
        effects_(static_cast<std::size_t>(plan.events)) {
    for (Consumer& consumer : consumers_) consumer.owner = next_owner_++;
  }

  Outcome run() {
    for (int event = 0; event < plan_.events; ++event) deliver(event, event - 1);
    while (!agenda_.empty() && outcome_.violation.empty()) {
      if (agenda_.next_ms() > kPatienceMs) violate("is never acknowledged", 0);
      agenda_.step();
    }
    for (int event = 0; event < plan_.events; ++event) {
      const int effects = effects_[index(event)];
      outcome_.repeated_work += std::max(0, effects - 1);
      if (effects == 0) violate("is never processed", event);
      if (effects > 1 && plan_.work == Work::with_commit) violate("is processed twice", event);
    }
    for (const Consumer& consumer : consumers_) {
      outcome_.points = std::max(outcome_.points, consumer.points);
    }
    return outcome_;
  }

 private:
  struct Consumer {
    std::uint64_t owner = 0;
    bool up = true;
    int points = 0;
    Stage stage = Stage::idle;
    int event = 0;
    std::uint64_t task = 0;  // the number of the task at hand
  };
  struct Request {
    Kind kind;
    int consumer;
    std::uint64_t owner;
    int event;
    TimeMs until_ms;
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  static Digest id(int event) { return {mix(static_cast<unsigned>(event)), 1}; }

  void violate(const char* what, int event) {
    if (outcome_.violation.empty()) {
      outcome_.violation = "event " + std::to_string(event) + " " + what;
    }
  }

  void send(const std::function<void()>& arrive) {
    const Fate fate = hazards_.fate_of(outcome_.messages++);
    for (int copy = 0; copy < fate.copies; ++copy) {
      agenda_.after(fate.delay_ms + copy * fate.between_ms, arrive);
    }
  }

  // The source.

  void deliver(int event, int last_consumer) {
    if (acknowledged_[index(event)]) return;
    const int consumer = hazards_.next_consumer(last_consumer, plan_.consumers);
    send([=, this] { receive(consumer, event); });
    agenda_.after(kRedeliveryMs, [=, this] { deliver(event, consumer); });
  }

  void acknowledge(int event) {
    acknowledged_[index(event)] = true;
    if (effects_[index(event)] == 0) violate("is acknowledged before it is processed", event);
  }

  // The consumers. Each of these functions stops where pass() says that its consumer has crashed.

  bool pass(int consumer) {
    Consumer& self = consumers_[index(consumer)];
    if (!hazards_.crashes(consumer, self.points++)) return true;
    ++outcome_.crashes;
    self.up = false;
    self.stage = Stage::idle;
    self.owner = next_owner_++;
    agenda_.after(kRestartMs, [=, this] { consumers_[index(consumer)].up = true; });
    return false;
  }

  void receive(int consumer, int event) {
    Consumer& self = consumers_[index(consumer)];
    if (!self.up || self.stage != Stage::idle || !pass(consumer)) return;
    self.event = event;
    self.task = ++tasks_;
    self.stage = Stage::claiming;
    ask(consumer, Kind::claim);
  }

  // Sends a request for the event at hand, again and again while the consumer waits for its answer.
  void ask(int consumer, Kind kind) {
    const Consumer& self = consumers_[index(consumer)];
    const Request request{kind, consumer, self.owner, self.event, agenda_.now_ms() + kClaimMs};
    send([=, this] { serve(request); });
    const bool answered = kind == Kind::claim || kind == Kind::commit;
    if (!pass(consumer) || !answered) return;
    const auto waits = [=, this, stage = self.stage, task = self.task, owner = self.owner] {
      const Consumer& it = consumers_[index(consumer)];
      return it.owner == owner && it.task == task && it.stage == stage;
    };
    agenda_.after(kRetryMs, [=, this] {
      if (waits() && pass(consumer)) ask(consumer, kind);
    });
  }

  // An answer may be to an earlier request for the same event: then it is believed, as a consumer
  // would that does not number its requests.
  bool awaits(const Request& request, Stage stage) const {
    const Consumer& self = consumers_[index(request.consumer)];
    return self.owner == request.owner && self.event == request.event && self.stage == stage;
  }

  void hear_claim(const Request& request, Sighting sighting) {
    const int consumer = request.consumer;
    if (!awaits(request, Stage::claiming) || !pass(consumer)) return;
    Consumer& self = consumers_[index(consumer)];
    if (sighting == Sighting::pending) {
      self.stage = Stage::idle;
    } else if (sighting == Sighting::seen) {
      finish(consumer);
    } else {
      self.stage = Stage::working;
      const TimeMs work_ms = hazards_.work_ms(consumer);
      if (hazards_.renews()) {
        agenda_.after(work_ms / 2, [=, this] { renew(request); });
      }
      agenda_.after(work_ms, [=, this] { end_work(request); });
    }
  }

  void renew(const Request& request) {
    if (!awaits(request, Stage::working) || !pass(request.consumer)) return;
    ++outcome_.renewals;
    ask(request.consumer, Kind::renew);
  }

  void end_work(const Request& request) {
    const int consumer = request.consumer;
    if (!awaits(request, Stage::working) || !pass(consumer)) return;
    Consumer& self = consumers_[index(consumer)];
    if (hazards_.work_fails()) {
      ++outcome_.releases;
      self.stage = Stage::idle;
      ask(consumer, Kind::release);
      return;
    }
    if (plan_.work == Work::before_commit) ++effects_[index(request.event)];
    if (!pass(consumer)) return;
    self.stage = Stage::committing;
    ask(consumer, Kind::commit);
  }

  void hear_commit(const Request& request, Commit commit) {
    if (!awaits(request, Stage::committing) || !pass(request.consumer)) return;
    if (commit == Commit::lost) {
      consumers_[index(request.consumer)].stage = Stage::idle;
    } else {
      finish(request.consumer);
    }
  }

  void finish(int consumer) {
    Consumer& self = consumers_[index(consumer)];
    self.stage = Stage::idle;
    send([this, event = self.event] { acknowledge(event); });
    (void)pass(consumer);
  }

  // The sifter.

  void serve(const Request& request) {
    if (hazards_.sifter_restarts()) {
      Bytes bytes;
      sifter_.encode(bytes);
      sifter_ = *Sifter<ExactWindow>::decode(bytes);
    }
    sifter_.advance(agenda_.now_ms());
    switch (request.kind) {
      case Kind::claim: {
        const Sighting sighting = claim(request);
        outcome_.pending_claims += sighting == Sighting::pending;
        send([=, this] { hear_claim(request, sighting); });
        break;
      }
      case Kind::renew:
        (void)sifter_.renew(id(request.event), request.owner, request.until_ms);
        break;
      case Kind::commit: {
        const Commit answer = commit(request);
        outcome_.lost_commits += answer == Commit::lost;
        outcome_.seen_commits += answer == Commit::seen;
        if (plan_.work == Work::with_commit && answer == Commit::done) {
          ++effects_[index(request.event)];
        }
        send([=, this] { hear_commit(request, answer); });
        break;
      }
      case Kind::release:
        (void)sifter_.release(id(request.event), request.owner);
        break;
    }
  }

  Sighting claim(const Request& request) {
    if (plan_.fault == Fault::claim_takes) return sifter_.add(id(request.event));
    const bool endless = plan_.fault == Fault::claim_never_ends;
    return sifter_.claim(id(request.event), request.owner,
                         endless ? std::numeric_limits<TimeMs>::max() : request.until_ms);
  }

  Commit commit(const Request& request) {
    if (plan_.fault == Fault::claim_takes) return Commit::done;
    const Commit answer = sifter_.commit(id(request.event), request.owner);
    const bool forged = (answer == Commit::lost && plan_.fault == Fault::lost_commit_is_done) ||
                        (answer == Commit::seen && plan_.fault == Fault::second_commit_is_done);
    return forged ? Commit::done : answer;
  }

  const Plan plan_;
  Hazards& hazards_;
  Sifter<ExactWindow> sifter_;
  std::vector<Consumer> consumers_;
  std::vector<bool> acknowledged_;
  std::vector<int> effects_;
  Agenda agenda_;
  std::uint64_t tasks_ = 0, next_owner_ = 1;
  Outcome outcome_;
};

}  // namespace

Outcome run(const Plan& plan, Hazards& hazards) { return Simulation(plan, hazards).run(); }

}  // namespace semel::simulation
