// A window without a cap never answers `full`, and forgets nothing that is inside the window:
// through any history of merges, encodings, steps of time and late events, and after a cap that was
// lifted. An exact twin stands beside every window.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "semel/window/window.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

using Structure = Window::Structure;
using Number = std::uint64_t;

constexpr TimeMs kNow = 1'000'000;

// A window, and the latest time at which each id was accepted by it or by one that it merged with.
class Site {
 public:
  explicit Site(const Window::Goal& goal) : window_(*Window::make(goal, kNow)) {}

  const Window& window() const { return window_; }
  const std::string& complaint() const { return complaint_; }

  void advance(TimeMs now_ms) {
    window_.advance(now_ms);
    check();
  }

  void insert(Number number, TimeMs at_ms, bool renews) {
    const Digest id = key(number);
    const Verdict verdict = renews ? window_.insert(id, at_ms) : window_.test_and_insert(id, at_ms);
    at_ms = std::min(at_ms, window_.now());
    const bool outside = older_than(at_ms, window_.goal().window_ms, window_.now());
    demand(capped_ || verdict != Verdict::full, "is full without a cap");
    demand(verdict != Verdict::stale || outside, "calls an id of the window stale");
    if (verdict == Verdict::fresh || (verdict == Verdict::duplicate && renews && !outside)) {
      TimeMs& latest = accepted_.try_emplace(number, at_ms).first->second;
      latest = std::max(latest, at_ms);
    } else if (must_know(number)) {
      demand(verdict == Verdict::duplicate || (capped_ && renews), "does not know an id");
    }
    if (!capped_) demand(window_.test(id) == Verdict::duplicate || outside, "took nothing");
  }

  // Returns true if the windows merged.
  bool merge(const Site& other) {
    const Window before = window_;
    if (!window_.merge(other.window_)) {
      demand(window_ == before && window_.now() == before.now(), "is changed by a refused merge");
      return false;
    }
    for (const auto& [number, at_ms] : other.accepted_) {
      TimeMs& latest = accepted_.try_emplace(number, at_ms).first->second;
      latest = std::max(latest, at_ms);
    }
    check();
    return true;
  }

  void read_its_bytes() {
    Result<Window> read = Window::decode(encoded(window_));
    demand(read.has_value(), read ? "" : read.error().message());
    if (!read) return;
    demand(*read == window_, "is another one after decode()");
    const TimeMs now_ms = window_.now();
    window_ = std::move(*read);
    window_.advance(now_ms);  // a window without an end does not keep its time
    refused_ = 0;
  }

  void set_cap(std::uint64_t max_bytes) {
    if (window_.goal().window_ms == kForever || window_.goal().on_full == OnFull::forget) return;
    capped_ = max_bytes != kNoCap;
    window_.set_max_bytes(max_bytes);
    if (!capped_) refused_ = window_.counts().refused;
  }

  // Demands that every id of the window is recognised.
  void check() {
    std::erase_if(accepted_, [&](const auto& known) { return !must_know(known.first); });
    for (const auto& [number, at_ms] : accepted_) {
      demand(window_.test(key(number)) == Verdict::duplicate, "forgets an id of the window");
    }
    const WindowPromise promise = window_.promise();
    if (window_.goal().window_ms != kForever) {
      demand(promise.kept_from_ms <= window_.now() - window_.goal().window_ms, "promises less");
    }
    const WindowCounts counts = window_.counts();
    demand(counts.forgotten_early == 0, "forgets early");
    demand(capped_ || counts.refused == refused_, "counts refusals without a cap");
  }

 private:
  bool must_know(Number number) const {
    const auto known = accepted_.find(number);
    return known != accepted_.end() &&
           !older_than(known->second, window_.goal().window_ms, window_.now());
  }

  void demand(bool holds, const std::string& what) {
    if (!holds && complaint_.empty()) complaint_ = what;
  }

  Window window_;
  std::unordered_map<Number, TimeMs> accepted_;
  bool capped_ = false;
  std::uint64_t refused_ = 0;  // while it had a cap
  std::string complaint_;
};

struct Step {
  int kind;
  std::size_t site;
  int amount;
};
std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << "{" << step.kind << ", " << step.site << ", " << step.amount << "}";
}

constexpr std::size_t kSites = 3;

class History {
 public:
  explicit History(const Window::Goal& goal) : goal_(goal), sites_(kSites, Site(goal)) {}

  void take(const Step& step) {
    Site& site = sites_[step.site];
    const TimeMs span_ms = goal_.window_ms == kForever ? 1000 : goal_.window_ms;
    const auto burst = [&](Site& into, int ids) {
      for (int i = 0; i < ids; ++i) into.insert(next_++, into.window().now(), i % 3 == 0);
    };
    switch (step.kind) {
      case 0:  // a burst
        burst(site, 8 * step.amount);
        break;
      case 1:  // the same burst at each site, so that all have the same tables and merge
      case 2:
        for (Site& each : sites_) burst(each, 8 * step.amount);
        break;
      case 3: {  // late ids, and ids that come again
        for (int i = 0; i < step.amount; ++i) {
          const Number number = i % 2 == 0 ? next_++ : next_ - std::min<Number>(next_, 3 * i);
          site.insert(number, site.window().now() - span_ms / 16 * ((i + step.amount) % 20),
                      i % 4 == 1);
        }
        break;
      }
      case 4:  // a small step of time
        site.advance(site.window().now() + step.amount);
        break;
      case 5:  // all sites are of one time, up to three windows later
        for (Site& each : sites_) each.advance(latest() + span_ms / 8 * step.amount);
        break;
      case 6:  // two quiet windows, after which their lanes agree
        for (int i = 0; i < 32; ++i) {
          const TimeMs now_ms = latest() + span_ms / 16 + 1;
          for (Site& each : sites_) each.advance(now_ms);
        }
        break;
      case 7:
        site.read_its_bytes();
        break;
      case 8:
        site.set_cap(site.window().bytes() * static_cast<std::uint64_t>(step.amount) / 12);
        break;
      case 9:
        site.set_cap(kNoCap);
        break;
      default:  // a merge, and one back
        merged_ += site.merge(sites_[(step.site + 1) % kSites]);
        if (step.amount % 2 == 0) merged_ += sites_[(step.site + 1) % kSites].merge(site);
    }
  }

  std::string complaint() {
    for (Site& site : sites_) {
      site.check();
      if (!site.complaint().empty()) return site.complaint();
    }
    return "";
  }
  int merged() const { return merged_; }

 private:
  TimeMs latest() const {
    TimeMs latest_ms = kNow;
    for (const Site& site : sites_) latest_ms = std::max(latest_ms, site.window().now());
    return latest_ms;
  }

  Window::Goal goal_;
  std::vector<Site> sites_;
  Number next_ = 0;
  int merged_ = 0;
};

class UncappedWindow : public ::testing::TestWithParam<Window::Goal> {};

TEST_P(UncappedWindow, IsNeverFullAndForgetsNothingEarly) {
  int merged = 0;
  const bool ok = rc::check([&] {
    Window::Goal goal = GetParam();
    if (goal.fpr != 0) goal.fpr = *rc::gen::element(0.4, 0.01, 1e-6, 1e-9, 1e-12);
    goal.ids = *rc::gen::element<std::uint64_t>(1, 20, 300);
    if (goal.window_ms != kForever) {
      goal.window_ms = *rc::gen::element<TimeMs>(3, 100, 5000);
      goal.on_full = *rc::gen::element(OnFull::refuse, OnFull::forget);
    }
    const auto steps = *rc::gen::container<std::vector<Step>>(
        rc::gen::construct<Step>(rc::gen::inRange(0, 14), rc::gen::inRange<std::size_t>(0, kSites),
                                 rc::gen::inRange(0, 24)));
    History history(goal);
    for (const Step& step : steps) {
      history.take(step);
      RC_ASSERT(history.complaint() == "");
    }
    merged += history.merged();
  });
  EXPECT_TRUE(ok);
  const bool merges =
      GetParam().structure != Structure::forgetful || GetParam().window_ms != kForever;
  EXPECT_EQ(merged > 10, merges) << merged;
}

INSTANTIATE_TEST_SUITE_P(
    Windows, UncappedWindow,
    ::testing::Values(
        Window::Goal{
            .structure = Structure::forgetful, .window_ms = 100, .fpr = 0.1, .hash = kTestHash},
        Window::Goal{
            .structure = Structure::timers, .window_ms = 100, .fpr = 0.1, .hash = kTestHash},
        Window::Goal{.structure = Structure::exact, .window_ms = 100, .hash = kTestHash},
        Window::Goal{
            .structure = Structure::exact, .window_ms = 100, .hash = kTestHash, .punctual = true},
        Window::Goal{.structure = Structure::forgetful, .fpr = 0.1, .hash = kTestHash},
        Window::Goal{.structure = Structure::exact, .hash = kTestHash}));

}  // namespace
}  // namespace semel
