#include "tests/simulation/consumers.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/sift/sifter.h"
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
        sifter_(*Sifter::make(
            {{.structure = Window::Structure::exact, .window_ms = kWindowMs}, kKeepMs}, 0)),
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

  // The consumers. Each of these functions stops as soon as pass() says that its consumer has
  // crashed.

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

  // Sends a request for the present event again and again, until the answer comes.
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

  // An answer may belong to an earlier request for the same event. It is believed, because
  // consumers need not number their requests.
  bool awaits(const Request& request, Stage stage) const {
    const Consumer& self = consumers_[index(request.consumer)];
    return self.owner == request.owner && self.event == request.event && self.stage == stage;
  }

  void hear_claim(const Request& request, ClaimAnswer answer) {
    const int consumer = request.consumer;
    if (!awaits(request, Stage::claiming) || !pass(consumer)) return;
    Consumer& self = consumers_[index(consumer)];
    if (answer == ClaimAnswer::pending) {
      self.stage = Stage::idle;
    } else if (answer == ClaimAnswer::seen) {
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

  void hear_commit(const Request& request, ClaimAnswer commit) {
    if (!awaits(request, Stage::committing) || !pass(request.consumer)) return;
    if (commit == ClaimAnswer::lost) {
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
      sifter_ = *Sifter::decode(bytes);
    }
    switch (request.kind) {
      case Kind::claim: {
        const ClaimAnswer answer = claim(request);
        outcome_.pending_claims += answer == ClaimAnswer::pending;
        send([=, this] { hear_claim(request, answer); });
        break;
      }
      case Kind::renew:
        (void)sifter_.claim(id(request.event), request.owner, request.until_ms, agenda_.now_ms());
        break;
      case Kind::commit: {
        const ClaimAnswer answer = commit(request);
        outcome_.lost_commits += answer == ClaimAnswer::lost;
        outcome_.seen_commits += answer == ClaimAnswer::seen;
        if (plan_.work == Work::with_commit && answer == ClaimAnswer::done) {
          ++effects_[index(request.event)];
        }
        send([=, this] { hear_commit(request, answer); });
        break;
      }
      case Kind::release:
        (void)sifter_.release(id(request.event), request.owner, agenda_.now_ms());
        break;
    }
  }

  ClaimAnswer claim(const Request& request) {
    if (plan_.fault == Fault::claim_takes) {
      return sifter_.test_and_insert(id(request.event), agenda_.now_ms());
    }
    const bool endless = plan_.fault == Fault::claim_never_ends;
    return sifter_.claim(id(request.event), request.owner,
                         endless ? std::numeric_limits<TimeMs>::max() : request.until_ms,
                         agenda_.now_ms());
  }

  ClaimAnswer commit(const Request& request) {
    if (plan_.fault == Fault::claim_takes) return ClaimAnswer::done;
    const ClaimAnswer answer = sifter_.commit(id(request.event), request.owner, agenda_.now_ms());
    const bool forged =
        (answer == ClaimAnswer::lost && plan_.fault == Fault::lost_commit_is_done) ||
        (answer == ClaimAnswer::seen && plan_.fault == Fault::second_commit_is_done);
    return forged ? ClaimAnswer::done : answer;
  }

  const Plan plan_;
  Hazards& hazards_;
  Sifter sifter_;
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
