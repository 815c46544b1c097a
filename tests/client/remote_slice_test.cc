// Slices that are keys of a server with the module.
#include "client/remote_slice.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "semel/core/internal/random.h"
#include "semel/slices/placement.h"
#include "semel/slices/sliced_filter.h"
#include "semel/slices/window_slice.h"
#include "semel/window/internal/exact_window.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_server.h"

namespace semel::client {
namespace {

constexpr TimeMs kWindowMs = 3'600'000;

std::vector<std::string> with_module() { return {"--loadmodule", SEMEL_MODULE}; }

Digest key(std::uint64_t number) { return {mix(number), mix(number + 1)}; }

SliceCall call_of(SliceAction action, std::vector<Digest> keys) {
  SliceCall call;
  call.action = action;
  call.keys = std::move(keys);
  call.now_ms = SystemClock().now_ms();
  call.claim_until_ms = call.now_ms + 60'000;
  return call;
}

std::vector<Verdict> answer(Slice& slice, SliceCall call) {
  slice.start(call);
  slice.finish(call);
  EXPECT_FALSE(call.failed);
  return call.verdicts;
}

class RemoteSliceTest : public ::testing::TestWithParam<Taking> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(eventually([&] { return cluster_.connect().has_value(); }));
    reserve_exact("s");
  }

  void reserve_exact(const std::string& name) {
    const SiftKey made(name);
    const auto done =
        reserve(cluster_, {&made, 1}, {.window_ms = kWindowMs, .exact = true, .capacity = 1000});
    ASSERT_TRUE(done) << done.error().message();
  }

  RemoteSlice slice(Cluster& cluster, const std::string& owner, const std::string& name = "s") {
    return RemoteSlice(cluster, SiftKey(name), {GetParam(), owner, 60'000});
  }

  static ClusterOptions impatient() {
    return {.connection = {.timeout_ms = 200}, .deadline_ms = 600'000};
  }

  RedisServer server_{with_module()};
  Cluster cluster_{*parse_url(server_.url()), impatient()};
};

INSTANTIATE_TEST_SUITE_P(Takings, RemoteSliceTest,
                         ::testing::Values(Taking::claimed, Taking::added), [](const auto& tested) {
                           return tested.param == Taking::claimed ? "Claimed" : "Added";
                         });

TEST_P(RemoteSliceTest, AnswersAsAWindowHereDoes) {
  RemoteSlice there = slice(cluster_, "me");
  WindowSlice<window_internal::ExactWindow> here(
      *window_internal::ExactWindow::make({.window_ms = kWindowMs, .ids = 1000},
                                          SystemClock().now_ms()),
      0);
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const auto action = static_cast<SliceAction>(random.below(3));
    std::vector<Digest> keys;
    const std::uint64_t size = random.below(round % 20 == 0 ? 2000 : 20);
    for (std::uint64_t i = 0; i < size; ++i) keys.push_back(key(random.below(5000)));
    ASSERT_EQ(answer(there, call_of(action, keys)), answer(here, call_of(action, keys)))
        << "round " << round << ", action " << static_cast<int>(action);
  }
}

TEST_P(RemoteSliceTest, ServesClaims) {
  RemoteSlice there = slice(cluster_, "me");
  const auto ask = [&](SliceAction action, std::uint64_t owner) {
    SliceCall call = call_of(action, {key(1)});
    call.owner = owner;
    there.start(call);
    there.finish(call);
    EXPECT_FALSE(call.failed);
    return call.claims.front();
  };
  EXPECT_EQ(ask(SliceAction::claim, 1), ClaimAnswer::fresh);
  EXPECT_EQ(ask(SliceAction::claim, 1), ClaimAnswer::fresh);  // again
  EXPECT_EQ(ask(SliceAction::claim, 2), ClaimAnswer::pending);
  EXPECT_EQ(ask(SliceAction::commit, 2), ClaimAnswer::lost);
  EXPECT_EQ(ask(SliceAction::release, 1), ClaimAnswer::done);
  EXPECT_EQ(ask(SliceAction::release, 1), ClaimAnswer::lost);
  EXPECT_EQ(ask(SliceAction::claim, 2), ClaimAnswer::fresh);
  EXPECT_EQ(ask(SliceAction::commit, 2), ClaimAnswer::done);
  EXPECT_EQ(ask(SliceAction::commit, 2), ClaimAnswer::done);  // repeated
  EXPECT_EQ(ask(SliceAction::forget, 2), ClaimAnswer::done);
  EXPECT_EQ(ask(SliceAction::claim, 1), ClaimAnswer::seen);
}

TEST_P(RemoteSliceTest, AreSlicesOfAFilter) {
  std::vector<std::unique_ptr<RemoteSlice>> slices;
  std::vector<Slice*> pointers;
  for (const std::string& name : spread_keys("many", 8)) {
    reserve_exact(name);
    slices.push_back(std::make_unique<RemoteSlice>(cluster_, SiftKey(name),
                                                   RemoteSlice::Options{GetParam(), "me", 60'000}));
    pointers.push_back(slices.back().get());
  }
  auto filter =
      SlicedFilter::make(*Placement::make({SliceLayout::horizontal, 8}), std::move(pointers), {});
  ASSERT_TRUE(filter);
  std::vector<Digest> keys;
  for (std::uint64_t i = 0; i < 3000; ++i) keys.push_back(key(i % 2000));
  std::vector<Verdict> verdicts(keys.size());
  filter->test_and_set(keys, {}, verdicts, SystemClock().now_ms());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(verdicts[i], i < 2000 ? Verdict::fresh : Verdict::duplicate) << i;
  }
  EXPECT_GT(filter->bytes(), 0u);
}

// The call is executed and its answer is lost. Only then do the two ways of taking an id differ.
TEST_P(RemoteSliceTest, TellsTheTruthAfterALostAnswerIfItClaims) {
  RemoteSlice there = slice(cluster_, "me");
  (void)answer(there, call_of(SliceAction::test_and_set, {key(1)}));
  SliceCall call = call_of(SliceAction::test_and_set, {key(1), key(2)});
  server_.pause();
  there.start(call);
  cluster_.send();
  std::jthread later([&] {
    server_.wait_until_left();
    server_.resume();
  });
  there.finish(call);
  ASSERT_FALSE(call.failed) << there.error()->message();
  EXPECT_GT(cluster_.counts().lost, 0u);
  EXPECT_EQ(call.verdicts[0], Verdict::duplicate);
  EXPECT_EQ(call.verdicts[1], GetParam() == Taking::claimed ? Verdict::fresh : Verdict::duplicate);
  EXPECT_EQ(answer(there, call_of(SliceAction::test, {key(2)})).front(), Verdict::duplicate);
}

TEST_P(RemoteSliceTest, TellsOneOfManyProducersThatItIsFirst) {
  constexpr int kProducers = 4;
  constexpr std::uint64_t kKeys = 2000;
  std::vector<std::vector<Digest>> taken(kProducers);
  {
    std::vector<std::jthread> producers;
    for (int p = 0; p < kProducers; ++p) {
      producers.emplace_back([&, p] {
        Cluster cluster(*parse_url(server_.url()));
        ASSERT_TRUE(cluster.connect());
        RemoteSlice there = slice(cluster, "producer" + std::to_string(p));
        // Each in an order of its own: they wait for each other's keys.
        Random random(static_cast<std::uint64_t>(p));
        std::vector<Digest> keys;
        for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(key(i));
        for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.below(i)]);
        for (std::size_t i = 0; i < keys.size(); i += 50) {
          SliceCall call = call_of(SliceAction::test_and_set,
                                   {keys.begin() + static_cast<std::ptrdiff_t>(i),
                                    keys.begin() + static_cast<std::ptrdiff_t>(i + 50)});
          there.start(call);
          there.finish(call);
          ASSERT_FALSE(call.failed) << there.error()->message();
          for (std::size_t k = 0; k < 50; ++k) {
            if (call.verdicts[k] == Verdict::fresh) {
              taken[static_cast<std::size_t>(p)].push_back(call.keys[k]);
            }
          }
        }
      });
    }
  }
  std::map<std::uint64_t, int> times;
  for (const auto& keys : taken) {
    for (const Digest& one : keys) ++times[one.lo];
  }
  EXPECT_EQ(times.size(), kKeys);
  for (const auto& [digest, count] : times) ASSERT_EQ(count, 1) << digest;
}

TEST_P(RemoteSliceTest, FailsWithAReason) {
  Cluster cluster(*parse_url(server_.url()), {.deadline_ms = 600'000});
  ASSERT_TRUE(cluster.connect());
  RemoteSlice there = slice(cluster, "me");
  server_.call({"SET", "text", "x"});
  RemoteSlice text = slice(cluster, "me", "text");
  for (const auto action : {SliceAction::test, SliceAction::set, SliceAction::test_and_set,
                            SliceAction::claim, SliceAction::commit}) {
    SliceCall call = call_of(action, {key(1)});
    text.start(call);
    text.finish(call);
    EXPECT_TRUE(call.failed) << static_cast<int>(action);
    EXPECT_NE(text.error()->message().find("key text holds something else"), std::string::npos);
  }
  server_.kill();
  cluster.end_by(std::chrono::steady_clock::now() + std::chrono::milliseconds(300));
  SliceCall call = call_of(SliceAction::test_and_set, {key(1)});
  there.start(call);
  there.finish(call);
  EXPECT_TRUE(call.failed);
  const std::string words = there.error()->message();
  EXPECT_NE(words.find("Connection refused"), std::string::npos) << words;
  EXPECT_EQ(there.bytes(), 0u);
}

TEST(Reserve, MakesWhatIsMissingAndRefusesWhatIsOther) {
  const RedisServer server(with_module());
  Cluster cluster(*parse_url(server.url()));
  ASSERT_TRUE(cluster.connect());
  std::vector<SiftKey> keys;
  for (const std::string& name : spread_keys("r", 4)) keys.emplace_back(name);
  const SiftShape shape{.window_ms = 60'000, .error = 1e-4, .capacity = 100};
  ASSERT_TRUE(reserve(cluster, keys, shape));
  ASSERT_TRUE(reserve(cluster, keys, shape));  // again
  EXPECT_EQ(server.call({"DBSIZE"}).integer(), 4);
  const auto infos = read_info(cluster, keys);
  ASSERT_TRUE(infos);
  EXPECT_EQ(infos->front().window_ms, 60'000);
  EXPECT_EQ(infos->front().structure, "forgetful");
  EXPECT_DOUBLE_EQ(infos->front().error, 1e-4);
  EXPECT_GT(infos->front().bytes, 0u);

  const auto refused = [&](const SiftShape& other, const std::string& part) {
    const auto done = reserve(cluster, keys, other);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Errc::mismatch);
    EXPECT_NE(done.error().message().find(part), std::string::npos) << done.error().message();
  };
  refused({.window_ms = 60'001, .error = 1e-4, .capacity = 100}, "window of 60000ms, not 60001ms");
  refused({.window_ms = 60'000, .error = 1e-5, .capacity = 100}, "error of");
  refused({.window_ms = 60'000, .exact = true, .capacity = 100}, "forgetful, not exact");
}

TEST(Reserve, SaysThatThereIsNoModule) {
  const RedisServer server;
  Cluster cluster(*parse_url(server.url()));
  ASSERT_TRUE(cluster.connect());
  const SiftKey key("k");
  const auto done = reserve(cluster, {&key, 1}, {.window_ms = 1, .error = 0.1, .capacity = 1});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::unsupported);
  const std::string words = done.error().message();
  EXPECT_NE(words.find("--loadmodule semel.so"), std::string::npos) << words;
}

}  // namespace
}  // namespace semel::client
