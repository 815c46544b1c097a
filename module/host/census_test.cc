// Census: the sums are those of the values that there are, whoever frees them and when.
#include "module/host/census.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "semel/core/internal/random.h"

namespace semel::host {
namespace {

class FakeValue final : public Value {
 public:
  void encode(Sink /*out*/) const override {}
  std::uint64_t bytes() const override { return bytes_held; }
  std::unique_ptr<Value> clone() const override { return nullptr; }
  Figures figures() const override { return all; }
  ErrorRate error_rate() const override {
    if (no_memory) throw std::bad_alloc();
    return error;
  }

  void change(Random& random) {
    bytes_held = random.below(1'000'000);
    all.items = random.below(1000);
    all.capacity = random.below(1000);
    all.claims = random.below(5);
    all.claims_expired += random.below(3);
    all.forgotten_early += random.below(3);
    error = {.now = std::exp2(-static_cast<double>(random.below(60))) * 0.7, .goal = 0.01};
  }

  std::uint64_t bytes_held = 0;
  Figures all;
  ErrorRate error;
  bool no_memory = false;
};

using Values = std::vector<std::unique_ptr<FakeValue>>;

// Expects the sums of these values.
void expect_sums(const Census& census, std::size_t type, const Values& values) {
  Sums expected;
  for (const auto& value : values) {
    ++expected.keys;
    expected.bytes += value->bytes_held;
    expected.items += value->all.items;
    expected.capacity += value->all.capacity;
    expected.claims += value->all.claims;
    expected.error_worst = std::max(expected.error_worst, value->error.now);
  }
  const Sums sums = census.sums(type);
  EXPECT_EQ(sums.keys, expected.keys);
  EXPECT_EQ(sums.bytes, expected.bytes);
  EXPECT_EQ(sums.items, expected.items);
  EXPECT_EQ(sums.capacity, expected.capacity);
  EXPECT_EQ(sums.claims, expected.claims);
  EXPECT_GE(sums.error_worst, expected.error_worst);
  EXPECT_LE(sums.error_worst, expected.error_worst * 33 / 32 + 0x1p-55);
}

// A census and the values in it.
class Counted {
 public:
  explicit Counted(std::size_t type) : type_(type) {}

  Census& census() { return *census_; }
  Values& values() { return values_; }
  void add(Random& random) {
    values_.push_back(std::make_unique<FakeValue>());
    values_.back()->change(random);
    census_->admit(*values_.back(), type_);
  }
  void change(Random& random, std::size_t which) {
    const Figures before = values_[which]->all;
    values_[which]->change(random);
    census_->written(*values_[which]);
    expired_ += values_[which]->all.claims_expired - before.claims_expired;
    forgotten_ += values_[which]->all.forgotten_early - before.forgotten_early;
  }
  void remove(std::size_t which) {
    census_->dismiss(*values_[which]);
    values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void expect() {
    census_->catch_up(std::chrono::seconds(60));
    expect_sums(*census_, type_, values_);
    EXPECT_EQ(census_->sums(type_).claims_expired, expired_);
    EXPECT_EQ(census_->sums(type_).forgotten_early, forgotten_);
  }

 private:
  const std::size_t type_;
  std::unique_ptr<Census> census_ = std::make_unique<Census>();
  Values values_;
  std::uint64_t expired_ = 0, forgotten_ = 0;
};

TEST(Census, IsTheSumOfAllValuesThroughAnyHistory) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Counted counted(seed % Census::kTypes);
    for (int step = 0; step < 2000; ++step) {
      const std::size_t size = counted.values().size();
      const std::uint64_t kind = random.below(10);
      if (size == 0 || kind < 2) {
        counted.add(random);
      } else if (kind < 9) {
        counted.change(random, random.below(size));
      } else {
        counted.remove(random.below(size));
      }
      if (random.below(50) == 0) counted.expect();
    }
    counted.expect();
    while (!counted.values().empty()) counted.remove(0);
    counted.expect();
  }
}

// The sums are exact although most values find the list full; the worst error follows.
TEST(Census, IsExactForMoreValuesThanItsListHolds) {
  Random random(1);
  Counted counted(0);
  for (std::size_t i = 0; i < 10 * Census::kWritten; ++i) counted.add(random);
  for (std::size_t i = 0; i < 10 * Census::kWritten; ++i) counted.change(random, i);
  counted.census().settle();
  Sums sums = counted.census().sums(0);
  std::uint64_t bytes = 0;
  for (const auto& value : counted.values()) bytes += value->bytes_held;
  EXPECT_EQ(sums.bytes, bytes);
  counted.expect();
  for (std::size_t i = 0; i < 5 * Census::kWritten; ++i) counted.remove(i);
  counted.expect();
}

// A value that is gone leaves what it counted.
TEST(Census, KeepsTheCountsOfValuesThatAreGone) {
  Census census;
  FakeValue value, copy;
  value.all.claims_expired = 7;
  census.admit(value, 1);
  EXPECT_EQ(census.sums(1).claims_expired, 0u);  // it had counted them elsewhere
  value.all.claims_expired = 9;
  census.written(value);
  census.dismiss(value);
  EXPECT_EQ(census.sums(1).claims_expired, 2u);
  EXPECT_EQ(census.sums(1).keys, 0u);
  census.dismiss(value);
  EXPECT_EQ(census.sums(1).keys, 0u);
}

TEST(Census, CountsRemovedKeysByType) {
  Census census;
  census.evicted(2);
  census.expired(3);
  census.expired(3);
  EXPECT_EQ(census.sums(2).evicted, 1u);
  EXPECT_EQ(census.sums(3).expired, 2u);
  EXPECT_EQ(census.sums(3).evicted, 0u);
}

// A dataset that is loaded counts when it is served, in place of the one before.
TEST(Census, KeepsTwoDatasetsApart) {
  Random random(2);
  Census census;
  Values of_one, of_two;
  const auto add = [&](Values& values, Census::Dataset dataset) {
    values.push_back(std::make_unique<FakeValue>());
    values.back()->change(random);
    census.admit(*values.back(), 1, dataset);
  };
  const auto expect = [&](const Values& served, const Values& other) {
    census.catch_up(std::chrono::seconds(10));
    expect_sums(census, 1, served);
    std::uint64_t bytes = 0;
    for (const auto& value : other) bytes += value->bytes_held;
    EXPECT_EQ(census.unserved_bytes(), bytes);
  };
  const auto empty = [&](Values& values) {
    for (const auto& value : values) census.dismiss(*value);
    values.clear();
  };
  for (int i = 0; i < 20; ++i) add(of_one, Census::Dataset::served);
  census.evicted(1);
  for (int round = 1; round < 4; ++round) {
    SCOPED_TRACE(round);
    for (int i = 0; i < 30; ++i) {
      add(of_two, Census::Dataset::loading);
      of_one[0]->change(random);
      census.written(*of_one[0]);
      expect(of_one, of_two);
    }
    empty(of_two);  // the load failed
    expect(of_one, of_two);
    for (int i = 0; i < 10; ++i) add(of_two, Census::Dataset::loading);
    const std::uint64_t lost = census.sums(1).claims_expired;
    census.serve_loaded();
    expect(of_two, of_one);
    EXPECT_EQ(census.sums(1).claims_expired, lost);
    EXPECT_EQ(census.sums(1).evicted, static_cast<std::uint64_t>(round));
    census.evicted(1);
    empty(of_one);
    std::swap(of_one, of_two);
    expect(of_one, of_two);
  }
  empty(of_one);
}

// As with UNLINK: the main thread writes and settles while another thread frees.
TEST(Census, LosesNothingToAThreadThatFrees) {
  Random random(1);
  Census census;
  std::mutex mutex;
  Values freed;
  Values kept;
  bool ended = false;
  std::jthread frees([&] {
    for (;;) {
      const std::lock_guard lock(mutex);
      for (const auto& value : freed) census.dismiss(*value);
      freed.clear();
      if (ended) return;
    }
  });
  for (int round = 0; round < 20'000; ++round) {
    kept.push_back(std::make_unique<FakeValue>());
    kept.back()->change(random);
    census.admit(*kept.back(), 0);
    const std::size_t which = random.below(kept.size());
    kept[which]->change(random);
    census.written(*kept[which]);
    if (round % 7 == 0) census.catch_up(std::chrono::microseconds(50));
    if (kept.size() > 600) {
      const std::lock_guard lock(mutex);
      std::swap(kept[random.below(kept.size())], kept.back());
      freed.push_back(std::move(kept.back()));
      kept.pop_back();
    }
  }
  {
    const std::lock_guard lock(mutex);
    ended = true;
  }
  frees.join();
  census.catch_up(std::chrono::seconds(10));
  expect_sums(census, 0, kept);
  for (const auto& value : kept) census.dismiss(*value);
}

TEST(Worst, IsAtMostAThirtySecondAboveTheLargest) {
  for (const double number : {1e-16, 1e-9, 0.001, 0.01, 0.5, 1.0, 3.7, 200.0}) {
    Worst worst;
    worst.move(0, Worst::step_of(1e-17));
    worst.move(0, Worst::step_of(number));
    EXPECT_GE(worst.bound(), number);
    EXPECT_LE(worst.bound(), number * 33 / 32 * (1 + 1e-12));
    worst.move(Worst::step_of(number), 0);
    EXPECT_LE(worst.bound(), 2e-17);
  }
  EXPECT_EQ(Worst().bound(), 0);
  EXPECT_EQ(Worst::step_of(0), 0);
  EXPECT_EQ(Worst::step_of(-1), 0);
  EXPECT_EQ(Worst::step_of(std::nan("")), 0);
  EXPECT_GT(Worst::step_of(INFINITY), 0);
}

TEST(Census, ComparesAValueLaterIfThereIsNoMemory) {
  Random random(6);
  Counted counted(1);
  for (int i = 0; i < 3; ++i) counted.add(random);
  counted.values()[1]->no_memory = true;
  counted.census().catch_up(std::chrono::seconds(60));
  counted.values()[1]->no_memory = false;
  counted.expect();
}

}  // namespace
}  // namespace semel::host
