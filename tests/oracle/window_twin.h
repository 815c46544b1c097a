// An exact twin of every window: a map from each id to the time when it was accepted. The same
// history drives both, and the window may differ from the twin only where its promise allows.
//
//   * an id accepted at or after kept_from_ms is a duplicate, by every call and in every batch;
//   * kept_from_ms is no later than now - window, or than the last time at which ids were forgotten
//     early;
//   * an id accepted before forgotten_before_ms, or never, is none, but for false positives; and
//     forgotten_before_ms follows now as closely as the case says;
//   * `full` and `stale` are answered where they may be, change nothing, and are counted;
//   * time never runs backwards, and memory stays below its cap.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/window/internal/id_window.h"

namespace semel {

// A WindowCase gives:
//   Type                                        an IdWindow, with ==, which does not compare
//                                               counts()
//   static Type::Id id(std::uint64_t number)    different for different numbers
//   kConfigurations                             their number, and for each:
//   static Type make(int configuration, TimeMs now_ms)   of some hundred ids, to fill up and rotate
//   static std::uint64_t cap(int configuration)          of its bytes, or kNoCap
//   static OnFull on_full(int configuration)
//   static std::optional<TimeMs> upper_edge(const Type&) the age beyond which all is forgotten, if
//   any kFalsePositives                             whether a new id may be taken for a duplicate
//   kStaleById                                  whether an id without a time may be `stale`
template <class WindowCase>
class WindowTwin {
 public:
  using Type = typename WindowCase::Type;
  using Id = typename Type::Id;
  using Number = std::uint64_t;
  static_assert(window_internal::IdWindow<Type>);

  enum class Call { test, insert, test_and_insert };

  // `compares`: a copy checks that calls which must change nothing do so. That takes time.
  WindowTwin(int configuration, TimeMs now_ms, bool compares)
      : window_(WindowCase::make(configuration, now_ms)),
        cap_(WindowCase::cap(configuration)),
        refuses_(cap_ != kNoCap && WindowCase::on_full(configuration) == OnFull::refuse),
        compares_(compares),
        now_ms_(now_ms) {
    check_state();
  }

  const Type& window() const { return window_; }
  TimeMs now() const { return now_ms_; }
  // Returns the first thing that the window did wrong; empty if nothing.
  const std::string& complaint() const { return complaint_; }
  // The number of times that an id that must be recognised was asked for.
  std::uint64_t checked() const { return checked_; }
  // The last time at which each id was accepted. Ids that must have been forgotten may be removed.
  std::unordered_map<Number, TimeMs>& accepted() { return accepted_; }

  void advance(TimeMs to_ms) {
    window_.advance(to_ms);
    if (to_ms < now_ms_) ++counts_.backward_steps;
    now_ms_ = std::max(now_ms_, to_ms);
    check_state();
  }

  void call(Call kind, Number number, std::optional<TimeMs> at_ms = std::nullopt) {
    const WindowPromise promise = window_.promise();
    const std::optional<Type> before = compares_ ? std::optional<Type>(window_) : std::nullopt;
    const Verdict verdict = answer(kind, WindowCase::id(number), at_ms);
    const TimeMs taken_ms = std::min(at_ms.value_or(now_ms_), now_ms_);
    judge(kind, number, taken_ms, verdict, promise, promise.kept_from_ms);
    const bool changes_nothing = kind == Call::test || verdict == Verdict::stale ||
                                 verdict == Verdict::full ||
                                 (kind == Call::test_and_insert && verdict == Verdict::duplicate);
    if (before && changes_nothing) demand(window_ == *before, "changed what it must not", number);
    check_state();
  }

  void call(Call kind, const std::vector<Number>& numbers) {
    const WindowPromise promise = window_.promise();
    std::vector<Id> ids;
    ids.reserve(numbers.size());
    for (const Number number : numbers) ids.push_back(WindowCase::id(number));
    std::vector<Verdict> verdicts(ids.size());
    switch (kind) {
      case Call::test:
        window_.test(ids, verdicts);
        break;
      case Call::insert:
        window_.insert(ids, verdicts);
        break;
      case Call::test_and_insert:
        window_.test_and_insert(ids, verdicts);
        break;
    }
    // Ids may have been forgotten early between one id of the batch and the next.
    const TimeMs kept_from_ms = window_.promise().kept_from_ms;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      judge(kind, numbers[i], now_ms_, verdicts[i], promise, kept_from_ms);
    }
    check_state();
  }

  // Compares the false positives so far with the rates that the window gave. It requires that no id
  // which was never accepted was asked for twice.
  void check_false_positives() {
    const double most = false_positives_.expected + 5 * std::sqrt(false_positives_.variance) + 1;
    demand(false_positives_.seen <= most, "more false positives than it says",
           static_cast<std::uint64_t>(false_positives_.seen));
  }

 private:
  Verdict answer(Call kind, const Id& id, std::optional<TimeMs> at_ms) {
    switch (kind) {
      case Call::test:
        return window_.test(id);
      case Call::insert:
        return at_ms ? window_.insert(id, *at_ms) : window_.insert(id);
      case Call::test_and_insert:
        break;
    }
    return at_ms ? window_.test_and_insert(id, *at_ms) : window_.test_and_insert(id);
  }

  // `promise` holds before the call; `kept_from_ms` holds at the time of the answer.
  void judge(Call kind, Number number, TimeMs at_ms, Verdict verdict, const WindowPromise& promise,
             TimeMs kept_from_ms) {
    const auto known = accepted_.find(number);
    const bool ever = known != accepted_.end();
    const bool too_old = at_ms < promise.kept_from_ms && at_ms < now_ms_;
    if (ever && known->second >= kept_from_ms) {
      ++checked_;
      if (kind == Call::insert && verdict == Verdict::full) {
        // There is no room to renew it, so it stays as it was.
      } else {
        demand(verdict == Verdict::duplicate, "does not recognise an id of the window", number);
      }
    } else if (!ever || known->second < promise.forgotten_before_ms) {
      if (WindowCase::kFalsePositives) {
        false_positives_.add(verdict == Verdict::duplicate, rate());
      } else {
        demand(verdict != Verdict::duplicate, "recognises an id that it must not know", number);
      }
    }
    if (verdict == Verdict::stale) {
      const bool by_id = WindowCase::kStaleById && kind != Call::insert;
      demand(by_id || (too_old && kind != Call::test), "stale without cause", number);
      if (kind != Call::test) ++counts_.stale;
    }
    if (verdict == Verdict::full) {
      demand(kind != Call::test && refuses_, "full without cause", number);
      ++counts_.refused;
    }
    if (kind == Call::test) return;
    if (older_than(at_ms, promise.window_ms, now_ms_)) {
      demand(verdict == Verdict::stale || verdict == Verdict::duplicate, "takes an id too late",
             number);
      return;
    }
    if (verdict == Verdict::fresh) accepted_[number] = at_ms;
    if (verdict == Verdict::duplicate && kind == Call::insert) {
      TimeMs& time_ms = accepted_.try_emplace(number, at_ms).first->second;
      time_ms = std::max(time_ms, at_ms);
    }
  }

  void check_state() {
    rate_.reset();
    const WindowPromise promise = window_.promise();
    const WindowCounts counts = window_.counts();
    if (counts.forgotten_early > counts_.forgotten_early) last_forgetting_ms_ = now_ms_;
    demand(counts.forgotten_early >= counts_.forgotten_early, "forgets what it forgot", 0);
    demand(counts.forgotten_early == 0 || (cap_ != kNoCap && !refuses_), "forgets early", 0);
    counts_.forgotten_early = counts.forgotten_early;
    demand(counts == counts_, "counts wrongly", counts.stale);

    TimeMs edge_ms = back(promise.window_ms);
    if (last_forgetting_ms_ && *last_forgetting_ms_ >= edge_ms) {
      edge_ms = *last_forgetting_ms_ == kLastMs ? kLastMs : *last_forgetting_ms_ + 1;
    }
    demand(promise.kept_from_ms <= edge_ms, "keeps less than the window", counts.forgotten_early);
    demand(promise.forgotten_before_ms <= promise.kept_from_ms, "keeps what it forgets", 0);
    if (const std::optional<TimeMs> upper_ms = WindowCase::upper_edge(window_)) {
      demand(promise.forgotten_before_ms >= back(*upper_ms), "forgets too late", 0);
    }
    demand(window_.now() == now_ms_, "has another time", 0);
    demand(window_.bytes() <= cap_, "takes more than its cap", window_.bytes());
  }

  // Returns the time `by_ms` ago, or the first time there is.
  TimeMs back(TimeMs by_ms) const {
    TimeMs edge_ms = 0;
    return __builtin_sub_overflow(now_ms_, by_ms, &edge_ms) ? kFirstMs : edge_ms;
  }

  // The rate after a whole batch is its highest, because it grows as ids come in.
  double rate() {
    if (!rate_) rate_ = window_.false_positive_rate();
    return *rate_;
  }

  void demand(bool holds, const char* what, std::uint64_t detail) {
    if (holds || !complaint_.empty()) return;
    complaint_ =
        std::string(what) + " (" + std::to_string(detail) + ") at " + std::to_string(now_ms_);
  }

  struct FalsePositives {
    double seen = 0, expected = 0, variance = 0;
    void add(bool positive, double rate) {
      seen += positive;
      expected += rate;
      variance += rate * (1 - rate);
    }
  };

  static constexpr TimeMs kFirstMs = std::numeric_limits<TimeMs>::min();
  static constexpr TimeMs kLastMs = std::numeric_limits<TimeMs>::max();

  Type window_;
  const std::uint64_t cap_;
  const bool refuses_, compares_;
  TimeMs now_ms_;
  std::unordered_map<Number, TimeMs> accepted_;
  std::optional<TimeMs> last_forgetting_ms_;
  std::optional<double> rate_;
  WindowCounts counts_;
  FalsePositives false_positives_;
  std::uint64_t checked_ = 0;
  std::string complaint_;
};

// A history of any load: single calls and batches, over few ids so that they recur; silence, steps
// of time of all sizes in both directions, and times of any sign.
struct WindowStep {
  int kind;
  std::uint64_t number;
  int amount;
};
inline std::ostream& operator<<(std::ostream& out, const WindowStep& step) {
  return out << "{" << step.kind << ", " << step.number << ", " << step.amount << "}";
}

template <class WindowCase>
class WindowHistory : public ::testing::Test {};

TYPED_TEST_SUITE_P(WindowHistory);

TYPED_TEST_P(WindowHistory, KeepsThePromiseThroughAnyHistory) {
  using Twin = WindowTwin<TypeParam>;
  using Call = typename Twin::Call;
  using Step = WindowStep;
  const bool ok = rc::check([] {
    const int configuration = *rc::gen::inRange(0, TypeParam::kConfigurations);
    const TimeMs start_ms =
        *rc::gen::element<TimeMs>(0, -3, 1'700'000'000'000, std::numeric_limits<TimeMs>::min(),
                                  std::numeric_limits<TimeMs>::max() / 2);
    const auto history = *rc::gen::container<std::vector<Step>>(rc::gen::construct<Step>(
        rc::gen::inRange(0, 12), rc::gen::inRange<std::uint64_t>(0, 500), rc::gen::inRange(0, 24)));
    Twin twin(configuration, start_ms, true);
    const TimeMs window_ms = twin.window().promise().window_ms;
    std::uint64_t next = 1000;  // numbers of ids that are new
    for (const Step& step : history) {
      const auto call = static_cast<Call>(step.number % 3);
      const auto later_by = [&](TimeMs by_ms) {
        TimeMs to_ms = 0;
        if (!__builtin_add_overflow(twin.now(), by_ms, &to_ms)) twin.advance(to_ms);
      };
      switch (step.kind) {
        case 0:  // a small step of time
          later_by(step.amount);
          break;
        case 1:  // up to three windows
          later_by(window_ms / 8 * step.amount);
          break;
        case 2:  // a jump, or a step back
          later_by(step.amount < 4 ? window_ms * 1000 * step.amount : -step.amount * window_ms / 8);
          break;
        case 3: {  // an id with a time of its own, up to a quarter after now
          TimeMs at_ms = 0;
          const TimeMs age_ms = window_ms / 16 * (step.amount - 4);
          if (__builtin_sub_overflow(twin.now(), age_ms, &at_ms)) break;
          twin.call(call == Call::test ? Call::test_and_insert : call, step.number % 40, at_ms);
          break;
        }
        case 4: {  // a batch of few ids, so that some come twice
          std::vector<std::uint64_t> batch;
          for (int i = 0; i < 4 * step.amount; ++i) {
            batch.push_back(mix(step.number + static_cast<unsigned>(i)) % 40);
          }
          twin.call(call, batch);
          break;
        }
        case 5: {  // a burst
          std::vector<std::uint64_t> batch;
          for (int i = 0; i < 20 * step.amount; ++i) batch.push_back(next++);
          twin.call(Call::test_and_insert, batch);
          break;
        }
        default:
          twin.call(call, step.number % 40);
          break;
      }
      RC_ASSERT(twin.complaint() == "");
    }
    for (const auto& [number, time_ms] : std::unordered_map(twin.accepted())) {
      twin.call(Call::test, number);
    }
    RC_ASSERT(twin.complaint() == "");
  });
  EXPECT_TRUE(ok);
}

REGISTER_TYPED_TEST_SUITE_P(WindowHistory, KeepsThePromiseThroughAnyHistory);

// Makes the same checks at full speed, until `wanted` ids that must be recognised were asked for.
// The load changes. It has retries of ids in the window, and questions for ids that have just left
// or never came.
template <class WindowCase>
void check_promise(int configuration, std::uint64_t seed, std::uint64_t wanted) {
  using Twin = WindowTwin<WindowCase>;
  using Call = typename Twin::Call;
  SCOPED_TRACE("configuration " + std::to_string(configuration) + ", seed " + std::to_string(seed));
  constexpr std::size_t kBatch = 256;
  constexpr std::uint64_t kAbsent = std::uint64_t{1}
                                    << 40;  // numbers from here on are never accepted
  Random random(seed);
  Twin twin(configuration, 1'700'000'000'000, false);
  const TimeMs window_ms = twin.window().promise().window_ms;
  std::deque<std::uint64_t> inside;  // in the order of their numbers; some may have left
  std::uint64_t next = 0, absent = kAbsent;
  std::vector<std::uint64_t> batch;

  // The oldest ids that must have been forgotten. Each is asked for once.
  const auto ask_for_forgotten = [&] {
    batch.clear();
    const TimeMs before_ms = twin.window().promise().forgotten_before_ms;
    while (!inside.empty()) {
      const auto known = twin.accepted().find(inside.front());
      if (known != twin.accepted().end() && known->second >= before_ms) break;
      if (known != twin.accepted().end()) batch.push_back(inside.front());
      inside.pop_front();
    }
    twin.call(Call::test, batch);
    for (const std::uint64_t number : batch) twin.accepted().erase(number);
  };
  // Asks mostly for ids that must be recognised. Asks a filter for no other ids, because it takes
  // such an id for a duplicate either every time or never.
  const auto some_inside = [&](std::size_t count) {
    batch.clear();
    const TimeMs kept_from_ms = twin.window().promise().kept_from_ms;
    for (; count > 0 && !inside.empty(); --count) {
      const std::uint64_t number = inside[random.below(inside.size())];
      const auto known = twin.accepted().find(number);
      const bool kept = known != twin.accepted().end() && known->second >= kept_from_ms;
      if (kept || (!WindowCase::kFalsePositives && count % 8 == 0)) batch.push_back(number);
    }
  };
  const auto load = [&](std::size_t count) {
    batch.clear();
    for (; count > 0; --count) {
      batch.push_back(next);
      inside.push_back(next++);
    }
    twin.call(Call::test_and_insert, batch);
  };

  std::uint64_t rate = 1;  // ids in a batch of the load; it changes gradually
  while (twin.checked() < wanted && twin.complaint().empty()) {
    if (random.below(50) == 0) rate = std::uint64_t{1} << random.below(7);
    load(rate);
    if (random.below(200) == 0) load(kBatch);  // a burst
    some_inside(kBatch);
    twin.call(Call::test, batch);
    some_inside(kBatch);
    twin.call(Call::test_and_insert, batch);
    if (random.below(4) == 0) {
      some_inside(1);
      for (const std::uint64_t number : batch) twin.call(Call::insert, number);  // renewed
      const auto late_ms = static_cast<TimeMs>(random.below(static_cast<std::uint64_t>(window_ms)));
      twin.call(Call::test_and_insert, next, twin.now() - late_ms);
      inside.push_back(next++);
    }
    if (random.below(4) == 0) {
      batch.clear();
      for (std::size_t i = 0; i < kBatch / 4; ++i) batch.push_back(absent++);
      twin.call(Call::test, batch);
    }
    const std::uint64_t step = random.below(1000);
    if (step < 2) {
      twin.advance(twin.now() - 1 - static_cast<TimeMs>(random.below(1000)));
    } else if (step < 4) {  // silence
      twin.advance(twin.now() +
                   static_cast<TimeMs>(random.below(3 * static_cast<std::uint64_t>(window_ms))));
    } else if (step < 500) {
      twin.advance(twin.now() + static_cast<TimeMs>(
                                    random.below(static_cast<std::uint64_t>(window_ms / 50 + 1))));
    }
    ask_for_forgotten();
  }
  twin.check_false_positives();
  EXPECT_EQ(twin.complaint(), "");
}

}  // namespace semel
