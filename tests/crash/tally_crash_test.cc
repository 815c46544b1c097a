// kill -9 of a table under load: every answered operation counts, and none counts twice.
//
// A process that is killed loses nothing that reached the system, so all durabilities must be exact
// here. Losses of power are for tally_store_test and the simulator. SEMEL_CRASH_ROUNDS sets the
// number of kills for each durability, SEMEL_CRASH_SEED chooses the moments.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "semel/core/internal/random.h"
#include "semel/index/indexed_store.h"
#include "semel/store/rocksdb_store.h"
#include "tests/cli/process.h"
#include "tests/cli/temporary_directory.h"
#include "tests/crash/tally_load.h"
#include "tests/support/index.h"
#include "tests/support/setting.h"

namespace semel::crash {
namespace {

struct Seen {
  std::uint64_t killed_while_opening = 0;
  std::uint64_t killed_while_keeping_house = 0;  // in a sum, a checkpoint, a flush
  std::uint64_t answered = 0;
  std::uint64_t found_counted = 0;  // steps that were not answered, and counted
  std::uint64_t retried = 0;
};

class TallyCrash : public ::testing::TestWithParam<tally::Durability> {
 protected:
  // A new table, and new clients.
  void begin() {
    std::filesystem::remove_all(path_);
    seed_ = random_();
    answered_.fill(0);
    counted_.fill(0);
    values_.clear();
  }

  // Serves the clients, and is killed. Each client continues after its last answer.
  void serve_until_killed() {
    Start start;
    start.command = {SEMEL_TALLY_CHILD, std::to_string(static_cast<int>(GetParam())), path_,
                     std::to_string(seed_)};
    for (const std::uint64_t first : answered_) start.command.push_back(std::to_string(first));
    Process child(start);
    std::string said;
    const bool while_opening = random_.below(4) == 0;
    if (!while_opening) said = child.read(1 + random_.below(200));
    std::this_thread::sleep_for(
        std::chrono::microseconds(random_.below(while_opening ? 60'000 : 20'000)));
    child.signal(SIGKILL);
    const Outcome outcome = child.finish();
    ASSERT_EQ(outcome.signal, SIGKILL) << outcome.err;
    said += outcome.out;
    if (said.empty()) ++seen_.killed_while_opening;
    char house = '>';
    for (const char letter : said) {
      if (letter == '<' || letter == '>') house = letter;
      if (letter < 'a') continue;
      ++answered_.at(static_cast<std::size_t>(letter - 'a'));
      ++seen_.answered;
    }
    if (house == '<') ++seen_.killed_while_keeping_house;
  }

  Values own(const Values& values, std::uint64_t client) const {
    const std::string prefix = own_prefix(client);
    const auto first = values.lower_bound(prefix);
    return {first, std::find_if(first, values.end(), [&](const auto& counter) {
              return !counter.first.starts_with(prefix);
            })};
  }
  void count_next(std::uint64_t client) {
    carry_out(step(seed_, client, counted_[client]++), values_);
  }

  // Checks that every answered step counts, and that the unanswered step of each client counts as a
  // whole or not at all.
  void expect_exact(const tally::TallyStore& table) {
    const Values found = values_in(table);
    for (std::uint64_t client = 0; client < kClients; ++client) {
      while (counted_[client] < answered_[client]) count_next(client);
      if (counted_[client] > answered_[client] || own(found, client) == own(values_, client)) {
        continue;
      }
      count_next(client);
      ++seen_.found_counted;
    }
    EXPECT_EQ(found, values_);
  }

  void expect_sums(tally::TallyStore& table) {
    tally::RangeSum all;
    for (const auto& [name, value] : values_) {
      ++all.count;
      all.sum += value;
    }
    const Result<tally::RangeSum> sum = table.sum({});
    ASSERT_TRUE(sum) << sum.error().message();
    EXPECT_TRUE(*sum == all);
    const Result<IndexedStore*> index = table.index();
    ASSERT_TRUE(index) << index.error().message();
    expect_equals_rebuilt(**index);
  }

  // Operations without an answer are sent again, and some of the others.
  void retry(tally::TallyDirectory& directory) {
    for (std::uint64_t client = 0; client < kClients; ++client) {
      for (std::uint64_t back = 1; back <= std::min<std::uint64_t>(answered_[client], 5); ++back) {
        const std::uint64_t number =
            back < 4 ? answered_[client] - back : random_.below(answered_[client]);
        EXPECT_EQ(sent_again(directory, client, number), Sent::known) << client << ' ' << number;
      }
      const bool counted = counted_[client] > answered_[client];
      const Sent sent = sent_again(directory, client, answered_[client]);
      EXPECT_NE(sent, Sent::wrong);
      // A counter that is absent, or zero, does not show whether it was removed or reset.
      if (step(seed_, client, answered_[client]).kind == Step::Kind::add) {
        EXPECT_EQ(sent == Sent::known, counted);
      }
      ++answered_[client];
      if (!counted) count_next(client);
    }
  }
  Sent sent_again(tally::TallyDirectory& directory, std::uint64_t client, std::uint64_t number) {
    ++seen_.retried;
    const Result<Sent> sent =
        send(step(seed_, client, number), directory.table(), directory.now_ms());
    EXPECT_TRUE(sent) << sent.error().message();
    return sent ? *sent : Sent::wrong;
  }

  const TemporaryDirectory scratch_;
  const std::string path_ = scratch_.path() / "table";
  const std::uint64_t root_seed_ = setting("SEMEL_CRASH_SEED", 1);
  Random random_{root_seed_ + static_cast<std::uint64_t>(GetParam())};
  std::uint64_t seed_ = 0;
  std::array<std::uint64_t, kClients> answered_ = {};  // steps of each client
  std::array<std::uint64_t, kClients> counted_ = {};   // the same, one more at most
  Values values_;                                      // after the steps that were counted
  Seen seen_;
};

TEST_P(TallyCrash, LosesNothingAnsweredAndCountsNothingTwice) {
  const std::uint64_t rounds = setting("SEMEL_CRASH_ROUNDS", 10);
  std::printf("SEMEL_CRASH_SEED=%llu\n", static_cast<unsigned long long>(root_seed_));
  begin();
  for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    if (random_.below(12) == 0) begin();
    serve_until_killed();
    if (HasFatalFailure()) return;
    // Sometimes the next process is the first to see what the last one left.
    if (random_.below(4) == 0) continue;
    const auto directory = tally::TallyDirectory::open(path_, tally_settings(GetParam()));
    ASSERT_TRUE(directory) << directory.error().message();
    expect_exact((*directory)->table());
    if (random_.below(2) == 0) expect_sums((*directory)->table());
    if (random_.below(2) == 0) retry(**directory);
    EXPECT_EQ(values_in((*directory)->table()), values_);
    if (random_.below(2) == 0) expect_sums((*directory)->table());
  }
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "%llu rounds, %llu of them killed while opening, %llu while keeping house\n"
      "%llu steps answered, %llu counted without an answer, %llu sent again\n",
      number(rounds), number(seen_.killed_while_opening), number(seen_.killed_while_keeping_house),
      number(seen_.answered), number(seen_.found_counted), number(seen_.retried));
  EXPECT_GT(seen_.answered, 0U);
}

std::string name_of(const ::testing::TestParamInfo<tally::Durability>& instance) {
  constexpr std::array kNames = {"None", "Periodic", "EveryWrite"};
  return kNames.at(static_cast<std::size_t>(instance.param));
}
INSTANTIATE_TEST_SUITE_P(Durability, TallyCrash,
                         ::testing::Values(tally::Durability::every_write,
                                           tally::Durability::periodic, tally::Durability::none),
                         name_of);

}  // namespace
}  // namespace semel::crash
