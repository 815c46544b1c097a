// ThreadSlice: order, exceptions, and producers in threads of their own that meet in shared slices.
#include "semel/slices/thread_slice.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>

#include "semel/core/internal/random.h"
#include "semel/slices/sliced_filter.h"
#include "semel/slices/window_slice.h"
#include "semel/window/internal/exact_window.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kWindow = 1'000'000;

std::unique_ptr<Slice> exact_slice() {
  return std::make_unique<WindowSlice<window_internal::ExactWindow>>(
      *window_internal::ExactWindow::make({.window_ms = kWindow}, kNow), kWindow);
}

SliceCall call_of(SliceAction action, std::vector<Digest> keys) {
  SliceCall call;
  call.action = action;
  call.now_ms = kNow;
  call.keys = std::move(keys);
  return call;
}

TEST(ThreadSlice, AnswersAsTheSliceBehindIt) {
  ThreadSlice slice(exact_slice());
  SliceCall call = call_of(SliceAction::test_and_set, keys(0, 100));
  slice.start(call);
  slice.finish(call);
  EXPECT_EQ(call.verdicts, std::vector<Verdict>(100, Verdict::fresh));
  EXPECT_FALSE(call.failed);
  const auto alone = exact_slice();
  SliceCall same = call_of(SliceAction::test_and_set, keys(0, 100));
  alone->start(same);
  EXPECT_EQ(slice.bytes(), alone->bytes());
  EXPECT_EQ(slice.false_positive_rate(), 0);
}

TEST(ThreadSlice, ServesCallsInTheOrderOfTheirStartWhateverTheOrderOfTheirFinish) {
  ThreadSlice slice(exact_slice());
  std::vector<SliceCall> calls(50, call_of(SliceAction::test_and_set, {key(1)}));
  for (SliceCall& call : calls) slice.start(call);
  for (std::size_t i = calls.size(); i-- > 0;) slice.finish(calls[i]);
  for (const SliceCall& call : calls) {
    EXPECT_EQ(call.verdicts[0], &call == &calls.front() ? Verdict::fresh : Verdict::duplicate);
  }
}

class ThrowingSlice final : public Slice {
 public:
  void start(SliceCall& call) override {
    if (call.action == SliceAction::set) throw std::runtime_error("no memory");
    call.verdicts.assign(call.keys.size(), Verdict::fresh);
    ++served;
  }
  void finish(SliceCall&) override {}
  std::uint64_t bytes() const override { return 0; }
  double false_positive_rate() const override { return 0; }
  int served = 0;
};

TEST(ThreadSlice, HandsOnWhatTheSliceThrows) {
  ThreadSlice slice(std::make_unique<ThrowingSlice>());
  SliceCall bad = call_of(SliceAction::set, {key(1)}), good = call_of(SliceAction::test, {key(1)});
  slice.start(bad);
  slice.start(good);
  EXPECT_THROW(slice.finish(bad), std::runtime_error);
  slice.finish(good);
  EXPECT_EQ(good.verdicts.size(), 1u);
}

// A started message must live until its slice is done with it.
TEST(Exchange, FinishesAllThatWasStartedBeforeItThrows) {
  ThrowingSlice in_this_thread;
  ThreadSlice in_another(std::make_unique<ThrowingSlice>());
  Slice* const slices[] = {&in_this_thread, &in_another};
  std::vector<SliceMessage> messages = {{1, call_of(SliceAction::set, {key(1)})},
                                        {1, call_of(SliceAction::test, {key(1)})},
                                        {0, call_of(SliceAction::test, {key(1)})},
                                        {0, call_of(SliceAction::set, {key(1)})},
                                        {0, call_of(SliceAction::test, {key(1)})}};
  EXPECT_THROW(deliver(messages, slices), std::runtime_error);
  EXPECT_EQ(in_this_thread.served, 1);
  EXPECT_EQ(messages[1].call.verdicts.size(), 1u);
}

TEST(ExchangeDeathTest, RefusesAMessageToNobody) {
  std::vector<SliceMessage> messages(1);
  EXPECT_DEATH(deliver(messages, {}), "slices.size");
}

// Several threads hand in every id at once; one of them hears that it is fresh.
TEST(ThreadSlice, TellsOneOfManyProducersInThreadsOfTheirOwn) {
  constexpr std::uint64_t kThreads = 4, kIds = 2000, kBatch = 25;
  for (const Placement::Shape& shape :
       {Placement::Shape{.layout = SliceLayout::horizontal, .slices = 2},
        {.layout = SliceLayout::vertical, .slices = 3, .spread = 2},
        {.layout = SliceLayout::v_h, .slices = 2, .parts = 2, .spread = 3}}) {
    const Placement placement = *Placement::make(shape);
    std::vector<std::unique_ptr<ThreadSlice>> owned;
    std::vector<Slice*> slices;
    for (std::size_t i = 0; i < placement.slices(); ++i) {
      owned.push_back(std::make_unique<ThreadSlice>(exact_slice()));
      slices.push_back(owned.back().get());
    }
    std::vector<std::atomic<int>> told(kIds);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        SlicedFilter filter = *SlicedFilter::make(
            placement, slices,
            {.rules = {.producers = Producers::many}, .first_owner = t << 32, .pause = [] {
               std::this_thread::yield();
               return kNow;
             }});
        for (std::uint64_t first = 0; first < kIds; first += kBatch) {
          const std::vector<Digest> ids = keys(first, first + kBatch);
          std::vector<Verdict> verdicts(ids.size());
          filter.test_and_set(ids, {}, verdicts, kNow);
          for (std::uint64_t i = 0; i < kBatch; ++i)
            told[first + i] += verdicts[i] == Verdict::fresh;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::atomic<int>& one : told) EXPECT_EQ(one, 1);
  }
}

}  // namespace
}  // namespace semel
