// SlicedFilter: its error and its load, failures, and slices that grow and shrink on their own.
#include "semel/slices/sliced_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <memory>
#include <set>

#include "semel/core/internal/random.h"
#include "semel/slices/internal/slice_run.h"
#include "semel/slices/window_slice.h"
#include "semel/window/internal/exact_window.h"
#include "semel/window/internal/forgetful_filter.h"
#include "semel/window/internal/sliding_filter.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kWindow = 60'000;

const Placement::Shape kShapes[] = {
    {.layout = SliceLayout::horizontal, .slices = 12},
    {.layout = SliceLayout::vertical, .slices = 12, .spread = 4},
    {.layout = SliceLayout::h_v, .slices = 3, .parts = 4, .spread = 4},
    {.layout = SliceLayout::v_h, .slices = 3, .parts = 4, .spread = 4},
};

// A filter and its slices, each of them a window made by `make`.
template <class W>
struct Sliced {
  template <class Make>
  Sliced(const Placement::Shape& shape, const SliceRules& rules, Make make)
      : placement(*Placement::make(shape)) {
    for (std::size_t i = 0; i < placement.slices(); ++i) {
      slices.push_back(std::make_unique<WindowSlice<W>>(make(), kWindow));
    }
    filter = std::make_unique<SlicedFilter>(
        *SlicedFilter::make(placement, pointers(), {.rules = rules}));
  }
  std::vector<Slice*> pointers() const {
    std::vector<Slice*> all;
    for (const auto& slice : slices) all.push_back(slice.get());
    return all;
  }
  std::vector<Verdict> test_and_set(std::span<const Digest> ids, TimeMs now_ms) {
    std::vector<Verdict> verdicts(ids.size());
    filter->test_and_set(ids, {}, verdicts, now_ms);
    return verdicts;
  }
  std::vector<Verdict> test(std::span<const Digest> ids, TimeMs now_ms) {
    std::vector<Verdict> verdicts(ids.size());
    filter->test(ids, verdicts, now_ms);
    return verdicts;
  }
  double duplicates(std::span<const Digest> ids, TimeMs now_ms) {
    const std::vector<Verdict> verdicts = test(ids, now_ms);
    return static_cast<double>(std::ranges::count(verdicts, Verdict::duplicate));
  }

  Placement placement;
  std::vector<std::unique_ptr<WindowSlice<W>>> slices;
  std::unique_ptr<SlicedFilter> filter;
};

// Makes a slice for the k1-th root of the error, and for its part of the ids.
window_internal::ForgetfulFilter forgetful(const Placement::Shape& shape, double fpr, double ids) {
  const double share = ids * shape.spread / (shape.slices * shape.parts);
  return *window_internal::ForgetfulFilter::make({.window_ms = kWindow,
                                                  .fpr = std::pow(fpr, 1.0 / shape.spread),
                                                  .ids = static_cast<std::uint64_t>(share),
                                                  .hash = kTestHash},
                                                 kNow);
}

window_internal::SlidingFilter sliding(const Placement::Shape& shape, double fpr, double ids) {
  const double share = ids * shape.spread / (shape.slices * shape.parts);
  return window_internal::SlidingFilter(
      *window_internal::SlidingShape::for_goal({.window_ms = kWindow,
                                                .fpr = std::pow(fpr, 1.0 / shape.spread),
                                                .ids = static_cast<std::uint64_t>(share),
                                                .hash = kTestHash}),
      kNow);
}

TEST(SlicedFilter, RefusesAnImpossibleMake) {
  const Placement placement = *Placement::make(kShapes[1]);
  const auto exact = [] {
    return *window_internal::ExactWindow::make({.window_ms = kWindow}, kNow);
  };
  const Sliced<window_internal::ExactWindow> sound(kShapes[1], {}, exact);
  const std::vector<Slice*> slices = sound.pointers();
  const auto refused = [&](const std::vector<Slice*>& some, const SlicedFilter::Options& options) {
    const Result<SlicedFilter> filter = SlicedFilter::make(placement, some, options);
    return !filter && filter.error().code == Errc::invalid;
  };
  std::vector<Slice*> with_none = slices;
  with_none[3] = nullptr;
  EXPECT_TRUE(refused({}, {}));
  EXPECT_TRUE(refused(with_none, {}));
  EXPECT_TRUE(refused(slices, {.rules = {.needed = 5}}));
  EXPECT_TRUE(refused(slices, {.rules = {.claim_ms = -1}}));
  EXPECT_TRUE(refused(slices, {.rules = {.producers = Producers::many}}));
  EXPECT_FALSE(refused(slices, {.rules = {.needed = 4}}));
}

// Proposition 2: the error does not depend on how the functions are split between slices.
TEST(SlicedFilter, HasTheSameErrorInEveryLayout) {
  constexpr double kError = 0.01;
  constexpr std::uint64_t kIds = 20'000, kTrials = 100'000;
  for (const Placement::Shape& shape : kShapes) {
    for (const Probing probing : {Probing::parallel, Probing::pipelined}) {
      Sliced<window_internal::ForgetfulFilter> sliced(
          shape, {.probing = probing}, [&] { return forgetful(shape, kError, 1.2 * kIds); });
      (void)sliced.test_and_set(keys(0, kIds), kNow);
      EXPECT_EQ(sliced.duplicates(keys(0, kIds), kNow), kIds);
      const double rate = sliced.filter->false_positive_rate();
      EXPECT_LE(rate, kError);
      EXPECT_GT(rate, kError / 1000);
      EXPECT_LE(sliced.duplicates(keys(kIds, kIds + kTrials), kNow),
                kTrials * kError + five_deviations(kTrials, kError));
    }
  }
}

// Knows exactly the share of all keys that is its rate, and takes no more.
class ShareSlice final : public Slice {
 public:
  explicit ShareSlice(double rate) : rate_(rate) {}
  void start(SliceCall& call) override {
    call.verdicts.clear();
    for (const Digest& key : call.keys) {
      const bool known = static_cast<double>(key.lo) < rate_ * 0x1p64;
      call.verdicts.push_back(known ? Verdict::duplicate : Verdict::fresh);
    }
  }
  void finish(SliceCall&) override {}
  std::uint64_t bytes() const override { return 100; }
  double false_positive_rate() const override { return rate_; }

 private:
  double rate_;
};

// The rate that the filter reports follows the slices that failed, under every policy.
TEST(SlicedFilter, KnowsWhatFailuresDoToItsError) {
  constexpr std::uint64_t kTrials = 50'000;
  for (const Placement::Shape& shape : kShapes) {
    for (std::uint32_t needed = 0; needed <= shape.spread; ++needed) {
      std::deque<ShareSlice> owned;
      std::vector<Slice*> slices;
      for (int i = 0; i < 12; ++i) slices.push_back(&owned.emplace_back(0.2 + 0.05 * i));
      SlicedFilter filter =
          *SlicedFilter::make(*Placement::make(shape), slices, {.rules = {.needed = needed}});
      filter.set_state(1, SliceState::failed);
      filter.set_state(2, SliceState::failed);
      filter.set_state(7, SliceState::returning);
      std::vector<Verdict> verdicts(kTrials);
      filter.test(keys(0, kTrials), verdicts, kNow);
      const double rate = filter.false_positive_rate();
      EXPECT_NEAR(static_cast<double>(std::ranges::count(verdicts, Verdict::duplicate)),
                  kTrials * rate, five_deviations(kTrials, rate))
          << static_cast<int>(shape.layout) << " needed " << needed;
      EXPECT_EQ(filter.bytes(), 1200u);
    }
  }
}

class CutOffSlice final : public Slice {
 public:
  void start(SliceCall& call) override { call.failed = true; }
  void finish(SliceCall&) override {}
  std::uint64_t bytes() const override { return 0; }
  double false_positive_rate() const override { return 0; }
};

TEST(SlicedFilter, RemembersWhichSlicesFailed) {
  Sliced<window_internal::ExactWindow> sliced(kShapes[1], {}, [] {
    return *window_internal::ExactWindow::make({.window_ms = kWindow}, kNow);
  });
  std::vector<Slice*> slices = sliced.pointers();
  CutOffSlice cut_off;
  slices[3] = &cut_off;
  SlicedFilter filter = *SlicedFilter::make(sliced.placement, slices, {});
  std::vector<Verdict> verdicts(1000);
  filter.test_and_set(keys(0, 1000), {}, verdicts, kNow);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    EXPECT_EQ(filter.states()[i], i == 3 ? SliceState::failed : SliceState::live);
  }
  const std::uint64_t asked = filter.load().slices[3].messages;
  filter.test_and_set(keys(0, 1000), {}, verdicts, kNow);
  EXPECT_EQ(filter.load().slices[3].messages, asked);
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::duplicate), 1000);
}

// A crashed producer holds an id until its claim expires, and the pause moves time.
TEST(SlicedFilter, WaitsForAClaimToBeOver) {
  Sliced<window_internal::ExactWindow> sliced(kShapes[1], {}, [] {
    return *window_internal::ExactWindow::make({.window_ms = kWindow}, kNow);
  });
  SliceRules rules = {.producers = Producers::many, .claim_ms = 500};
  slices_internal::SliceRun crashed(
      sliced.placement, rules, std::vector<SliceState>(12, SliceState::live),
      {.action = SliceAction::test_and_set, .ids = {key(1)}, .now_ms = kNow, .owner = 1});
  deliver(crashed.messages(), sliced.pointers());
  int pauses = 0;
  SlicedFilter filter = *SlicedFilter::make(
      sliced.placement, sliced.pointers(),
      {.rules = rules, .first_owner = 2, .pause = [&] { return kNow + 100 * ++pauses; }});
  std::vector<Verdict> verdicts(2);
  filter.test_and_set(std::vector<Digest>{key(1), key(2)}, {}, verdicts, kNow);
  EXPECT_EQ(verdicts, (std::vector<Verdict>{Verdict::fresh, Verdict::fresh}));
  EXPECT_GE(pauses, 5);
  EXPECT_LE(pauses, 7);
}

// Grants and accepts everything, and notes who asked.
class OwnerSlice final : public Slice {
 public:
  void start(SliceCall& call) override {
    owners.insert(call.owner);
    const bool grants = call.action == SliceAction::claim;
    call.verdicts.assign(call.keys.size(), Verdict::fresh);
    call.claims.assign(call.keys.size(), grants ? ClaimAnswer::fresh : ClaimAnswer::done);
  }
  void finish(SliceCall&) override {}
  std::uint64_t bytes() const override { return 0; }
  double false_positive_rate() const override { return 0; }
  std::set<std::uint64_t> owners;
};

TEST(SlicedFilter, IsAnotherOwnerInEveryRun) {
  OwnerSlice slice;
  const Placement placement =
      *Placement::make({.layout = SliceLayout::vertical, .slices = 1, .spread = 2});
  SlicedFilter filter = *SlicedFilter::make(
      placement, {&slice},
      {.rules = {.producers = Producers::many}, .first_owner = 70, .pause = [] { return kNow; }});
  std::vector<Verdict> verdicts(1);
  for (int run = 0; run < 3; ++run) {
    filter.test_and_set(std::vector<Digest>{key(1)}, {}, verdicts, kNow);
  }
  EXPECT_EQ(slice.owners, (std::set<std::uint64_t>{70, 71, 72}));
}

TEST(SlicedFilter, PlacesLateEventsAtTheirOwnTime) {
  Sliced<window_internal::ExactWindow> sliced(kShapes[1], {}, [] {
    return *window_internal::ExactWindow::make({.window_ms = kWindow}, kNow);
  });
  const std::vector<Digest> ids = keys(0, 3);
  const std::vector<TimeMs> at_ms = {kNow, kNow - kWindow / 2, kNow - 2 * kWindow};
  std::vector<Verdict> verdicts(3);
  sliced.filter->test_and_set(ids, at_ms, verdicts, kNow);
  EXPECT_EQ(verdicts, (std::vector<Verdict>{Verdict::fresh, Verdict::fresh, Verdict::stale}));
  EXPECT_EQ(sliced.test(ids, kNow + kWindow),
            (std::vector<Verdict>{Verdict::duplicate, Verdict::fresh, Verdict::fresh}));
  sliced.filter->set(ids, {}, verdicts, kNow + kWindow);
  EXPECT_EQ(verdicts, (std::vector<Verdict>{Verdict::duplicate, Verdict::fresh, Verdict::fresh}));
}

TEST(LoadReport, MeasuresFairnessAndTheBusiestSlice) {
  LoadReport load;
  EXPECT_EQ(load.fairness(), 1);
  EXPECT_EQ(load.maximum_share(), 0);
  load.slices = {{.lookups = 10}, {.lookups = 10}, {.lookups = 10}, {.lookups = 10}};
  EXPECT_DOUBLE_EQ(load.fairness(), 1);
  EXPECT_DOUBLE_EQ(load.maximum_share(), 0.25);
  load.slices = {{.lookups = 40}, {}, {}, {}};
  EXPECT_DOUBLE_EQ(load.fairness(), 0.25);
  EXPECT_DOUBLE_EQ(load.maximum_share(), 1);
  load.slices = {{.lookups = 1}, {.lookups = 3}};
  EXPECT_DOUBLE_EQ(load.fairness(), 16.0 / 20);
}

TEST(LoadReport, CountsWhatEverySliceWasAsked) {
  Sliced<window_internal::ExactWindow> sliced(kShapes[1], {}, [] {
    return *window_internal::ExactWindow::make({.window_ms = kWindow}, kNow);
  });
  (void)sliced.test_and_set(keys(0, 100), kNow);
  EXPECT_EQ(sliced.filter->load().total(),
            (SliceLoad{.messages = 24, .lookups = 400, .sets = 400}));
  (void)sliced.test_and_set(keys(0, 100), kNow);
  EXPECT_EQ(sliced.filter->load().total(),
            (SliceLoad{.messages = 36, .lookups = 800, .sets = 400}));
  double expected = 0;
  for (std::uint64_t n = 0; n < 100; ++n) {
    for (std::uint32_t j = 0; j < 4; ++j) {
      expected += 2 * (sliced.placement.probe(key(n), j).slice == 5);
    }
  }
  EXPECT_EQ(static_cast<double>(sliced.filter->load().slices[5].lookups), expected);
}

// Windows of any kind can be slices. They grow under load, and shrink when it has gone, while every
// id of the window is recognised and the error stays below the goal.
template <class W, class Make>
void grow_and_shrink(const Placement::Shape& shape, std::uint64_t peak, Make make) {
  constexpr double kGoal = 0.01;
  constexpr std::uint64_t kPerStep = 20;
  Sliced<W> sliced(shape, {}, [&] { return make(shape, kGoal, 60 * kPerStep); });
  const std::uint64_t first_bytes = sliced.filter->bytes();
  std::deque<std::pair<TimeMs, Digest>> accepted;
  std::uint64_t next = 0, most_bytes = 0, asked = 0;
  double false_positives = 0, trials = 0;
  const auto crowded = [&](Digest id) { return sliced.placement.probe(id, 0).slice < 2; };
  TimeMs now_ms = kNow;
  std::vector<std::uint64_t> at_peak(sliced.slices.size());
  for (int step = 0; step < 360; ++step) {
    now_ms += 1000;
    // Hands in `peak` times as many ids for a window, most of them for the first two slices.
    const bool burst = step >= 90 && step < 150;
    std::vector<Digest> ids;
    while (ids.size() < (burst ? peak : 1) * kPerStep) {
      const Digest id = key(next++);
      if (!burst || next % 10 == 0 || crowded(id)) ids.push_back(id);
    }
    const std::vector<Verdict> verdicts = sliced.test_and_set(ids, now_ms);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ++trials;
      false_positives += verdicts[i] == Verdict::duplicate;
      ASSERT_TRUE(verdicts[i] == Verdict::duplicate || verdicts[i] == Verdict::fresh);
      if (verdicts[i] == Verdict::fresh) accepted.emplace_back(now_ms, ids[i]);
    }
    while (accepted.front().first < now_ms - kWindow) accepted.pop_front();
    if (step % 10 == 0) {
      std::vector<Digest> known;
      for (const auto& [at_ms, id] : accepted) known.push_back(id);
      ASSERT_EQ(sliced.duplicates(known, now_ms), static_cast<double>(known.size())) << step;
      asked += known.size();
      EXPECT_LE(sliced.filter->false_positive_rate(), kGoal);
    }
    most_bytes = std::max(most_bytes, sliced.filter->bytes());
    if (step == 149) {
      for (std::size_t i = 0; i < at_peak.size(); ++i) at_peak[i] = sliced.slices[i]->bytes();
    }
  }
  EXPECT_LE(false_positives, kGoal * trials + five_deviations(trials, kGoal));
  EXPECT_GT(most_bytes, 2 * first_bytes);
  // Filters double, so a filter that the burst needed may still be there.
  EXPECT_LT(sliced.filter->bytes(), most_bytes * 2 / 3);
  EXPECT_GT(asked, 10'000u);
  EXPECT_TRUE(shape.layout != SliceLayout::horizontal || at_peak[0] > 2 * at_peak[5]);
}

TEST(SlicedFilter, GrowsAndShrinksByItsForgetfulSlices) {
  for (const Placement::Shape& shape : kShapes) {
    grow_and_shrink<window_internal::ForgetfulFilter>(shape, 30, forgetful);
  }
}

// These slices grow by filters of one size, and do not grow thirtyfold.
TEST(SlicedFilter, GrowsAndShrinksByItsSlidingSlices) {
  for (const Placement::Shape& shape : kShapes)
    grow_and_shrink<window_internal::SlidingFilter>(shape, 5, sliding);
}

}  // namespace
}  // namespace semel
