// Consumers that crash at every point: each event at least once, or exactly once.
#include "tests/simulation/consumers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"

namespace semel::simulation {
namespace {

struct Crash {
  int consumer, point;
};
std::ostream& operator<<(std::ostream& out, const Crash& crash) {
  return out << "consumer " << crash.consumer << " crashes at point " << crash.point << ", ";
}

struct Mishap {
  int message;
  Fate fate;
};

// Hazards that happen only as planned.
class PlannedHazards final : public Hazards {
 public:
  std::vector<Crash> crashes_at;
  std::optional<Mishap> mishap;
  bool first_is_slow = false;  // the first work takes longer than its claim

  bool crashes(int consumer, int point) override {
    return std::any_of(crashes_at.begin(), crashes_at.end(), [&](const Crash& crash) {
      return crash.consumer == consumer && crash.point == point;
    });
  }
  Fate fate_of(int message) override {
    return mishap && mishap->message == message ? mishap->fate : Fate{};
  }
  TimeMs work_ms(int) override { return first_is_slow && works_++ == 0 ? 3 * kClaimMs : 10; }
  bool work_fails() override { return false; }
  bool renews() override { return false; }
  bool sifter_restarts() override { return false; }
  int next_consumer(int last, int consumers) override { return (last + 1) % consumers; }

  friend std::ostream& operator<<(std::ostream& out, const PlannedHazards& hazards) {
    for (const Crash& crash : hazards.crashes_at) out << crash;
    if (hazards.mishap) {
      out << "message " << hazards.mishap->message << ": " << hazards.mishap->fate.copies
          << " copies after " << hazards.mishap->fate.delay_ms << " ms, ";
    }
    return out << (hazards.first_is_slow ? "slow" : "quick");
  }

 private:
  int works_ = 0;
};

// Hazards that happen at rates which are drawn first.
class RandomHazards final : public Hazards {
 public:
  explicit RandomHazards(std::uint64_t seed)
      : random_(seed),
        crash_(rate(0.1)),
        loss_(rate(0.3)),
        double_(rate(0.3)),
        delay_(rate(0.2)),
        slow_(rate(0.3)),
        failure_(rate(0.2)),
        renewal_(rate(1)),
        restart_(rate(0.1)) {}

  bool crashes(int, int) override { return happens(crash_); }
  Fate fate_of(int) override {
    Fate fate;
    if (happens(loss_)) fate.copies = 0;
    if (happens(double_)) fate = {2, kLatencyMs, up_to(10 * kClaimMs)};
    if (happens(delay_)) fate.delay_ms += up_to(10 * kClaimMs);
    fate.delay_ms += up_to(5);
    return fate;
  }
  TimeMs work_ms(int) override { return up_to(happens(slow_) ? 5 * kClaimMs : kClaimMs / 2); }
  bool work_fails() override { return happens(failure_); }
  bool renews() override { return happens(renewal_); }
  bool sifter_restarts() override { return happens(restart_); }
  int next_consumer(int, int consumers) override {
    return static_cast<int>(random_.below(static_cast<std::uint64_t>(consumers)));
  }

 private:
  // Rates are often zero, so that each hazard is also seen alone.
  double rate(double most) { return random_.below(3) == 0 ? 0 : most * random_.unit(); }
  bool happens(double rate) { return random_.unit() < rate; }
  TimeMs up_to(TimeMs most_ms) {
    return static_cast<TimeMs>(random_.below(static_cast<std::uint64_t>(most_ms) + 1));
  }

  Random random_;
  double crash_, loss_, double_, delay_, slow_, failure_, renewal_, restart_;
};

struct Sum {
  int runs = 0;
  std::string violation;  // the first one
  Outcome seen;           // sums; for points and messages the maximum
  int most_crashes = 0;

  void add(const Outcome& outcome, const auto& hazards) {
    ++runs;
    seen.crashes += outcome.crashes;
    seen.pending_claims += outcome.pending_claims;
    seen.lost_commits += outcome.lost_commits;
    seen.seen_commits += outcome.seen_commits;
    seen.releases += outcome.releases;
    seen.renewals += outcome.renewals;
    seen.repeated_work += outcome.repeated_work;
    seen.points = std::max(seen.points, outcome.points);
    seen.messages = std::max(seen.messages, outcome.messages);
    most_crashes = std::max(most_crashes, outcome.crashes);
    if (!outcome.violation.empty() && violation.empty()) {
      std::ostringstream text;
      text << outcome.violation << ": " << hazards;
      violation = text.str();
    }
  }
};

// No run of one event has this many points. The test checks that.
constexpr int kPoints = 24, kMessages = 24;

// Tries all runs with at most two crashes, at any points of any consumers, and with one message
// that is lost, doubled or late. Stops at the first violation.
Sum exhaust(const Plan& plan) {
  std::vector<std::optional<Mishap>> mishaps = {std::nullopt};
  for (int message = 0; message < kMessages; ++message) {
    for (const Fate& fate :
         {Fate{0, 0, 0}, Fate{2, kLatencyMs, 3 * kClaimMs / 2}, Fate{1, 3 * kClaimMs / 2, 0}}) {
      mishaps.emplace_back(Mishap{message, fate});
    }
  }
  std::vector<std::vector<Crash>> crashes = {{}};
  for (int first = 0; first < plan.consumers * kPoints; ++first) {
    const Crash one{first % plan.consumers, first / plan.consumers};
    crashes.push_back({one});
    for (int second = 0; second < first; ++second) {
      crashes.push_back({one, {second % plan.consumers, second / plan.consumers}});
    }
  }
  Sum sum;
  for (const bool slow : {false, true}) {
    for (const auto& mishap : mishaps) {
      for (const auto& points : crashes) {
        PlannedHazards hazards;
        hazards.first_is_slow = slow;
        hazards.mishap = mishap;
        hazards.crashes_at = points;
        sum.add(run(plan, hazards), hazards);
        if (!sum.violation.empty()) return sum;
      }
    }
  }
  return sum;
}

Sum campaign(Plan plan, std::uint64_t seeds) {
  Sum sum;
  for (std::uint64_t seed = 0; seed < seeds && sum.violation.empty(); ++seed) {
    RandomHazards hazards(seed);
    plan.consumers = 1 + static_cast<int>(seed % 4);
    sum.add(run(plan, hazards), "seed " + std::to_string(seed));
  }
  return sum;
}

TEST(Consumers, ProcessAnEventOnceInACalmWorld) {
  for (const Work work : {Work::before_commit, Work::with_commit}) {
    PlannedHazards hazards;
    const Outcome outcome = run({.consumers = 2, .events = 10, .work = work}, hazards);
    EXPECT_EQ(outcome.violation, "");
    EXPECT_EQ(outcome.repeated_work, 0);
    EXPECT_EQ(outcome.seen_commits, 0);
  }
}

TEST(Consumers, ProcessEveryEventAtLeastOnceWhereverTheyCrash) {
  const Sum sum = exhaust({.consumers = 2, .events = 1, .work = Work::before_commit});
  EXPECT_EQ(sum.violation, "");
  EXPECT_EQ(sum.most_crashes, 2);
  EXPECT_LT(sum.seen.points, kPoints);
  EXPECT_LT(sum.seen.messages, kMessages);
  EXPECT_GT(sum.seen.lost_commits, 0);
  EXPECT_GT(sum.seen.repeated_work, 0);  // this way promises only 'at least once'
}

TEST(Consumers, ProcessEveryEventOnceWhereverTheyCrashIfTheyCommitWithTheirWork) {
  const Sum sum = exhaust({.consumers = 2, .events = 1, .work = Work::with_commit});
  EXPECT_EQ(sum.violation, "");
  EXPECT_EQ(sum.seen.repeated_work, 0);
  EXPECT_EQ(sum.most_crashes, 2);
  EXPECT_GT(sum.seen.lost_commits, 0);
  EXPECT_GT(sum.seen.seen_commits, 0);
  EXPECT_GT(sum.seen.pending_claims, 0);
}

TEST(Consumers, ProcessEveryEventThroughThousandsOfRandomRuns) {
  for (const Work work : {Work::before_commit, Work::with_commit}) {
    const Sum sum = campaign({.consumers = 1, .events = 12, .work = work}, 4000);
    EXPECT_EQ(sum.violation, "");
    EXPECT_EQ(sum.seen.repeated_work == 0, work == Work::with_commit);
    for (const int count : {sum.seen.crashes, sum.seen.pending_claims, sum.seen.lost_commits,
                            sum.seen.seen_commits, sum.seen.releases, sum.seen.renewals}) {
      EXPECT_GT(count, 100);
    }
  }
}

// Checks the checker: each fault breaks the promise of one way to work, and both searches find it.
TEST(Consumers, AreFoundOutWhenTheSifterIsWrong) {
  struct Case {
    Fault fault;
    Work work;
    const char* violation;
  };
  for (const Case& c :
       {Case{Fault::lost_commit_is_done, Work::with_commit, "processed twice"},
        Case{Fault::second_commit_is_done, Work::with_commit, "processed twice"},
        Case{Fault::claim_takes, Work::before_commit, "acknowledged before it is processed"},
        Case{Fault::claim_never_ends, Work::before_commit, "never acknowledged"},
        Case{Fault::claim_never_ends, Work::with_commit, "never acknowledged"}}) {
    const Sum planned = exhaust({.consumers = 2, .events = 1, .work = c.work, .fault = c.fault});
    EXPECT_NE(planned.violation.find(c.violation), std::string::npos) << planned.violation;
    const Sum random =
        campaign({.consumers = 1, .events = 12, .work = c.work, .fault = c.fault}, 200);
    EXPECT_NE(random.violation.find(c.violation), std::string::npos) << random.violation;
  }
}

}  // namespace
}  // namespace semel::simulation
