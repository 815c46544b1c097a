// The hundredth sync costs as much as the first: by the built command, a copy follows an owner that
// updates, compacts, ingests, restarts and is killed.
//
// There are some dozen runs here. `make sync-hundred` does RUNS (100) with RECORDS (1,000,000), and
// prints the cost of each. SEMEL_SYNC_RUNS, SEMEL_SYNC_RECORDS and SEMEL_SYNC_UPDATES choose other
// numbers.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

struct Cost {
  std::uint64_t bytes = 0;
  std::uint64_t round_trips = 0;
};

// The owner's process, which may be there or not.
class Owner {
 public:
  explicit Owner(std::string directory) : directory_(std::move(directory)) {}

  void start() {
    if (!process_)
      process_ = std::make_unique<Process>(Start{.command = {SEMEL_OWNER, directory_}});
  }
  void tell(const std::string& command) {
    process_->write(command + '\n');
    ASSERT_EQ(process_->read(3), "ok\n") << command;
  }
  void stop() {
    if (!process_) return;
    const Outcome outcome = std::exchange(process_, nullptr)->finish();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  void kill() {
    process_->signal(SIGKILL);
    EXPECT_EQ(std::exchange(process_, nullptr)->finish().signal, SIGKILL);
  }

 private:
  std::string directory_;
  std::unique_ptr<Process> process_;
};

std::uint64_t number_in(const std::string& json, const std::string& field) {
  const std::string name = '"' + field + "\":";
  const std::size_t at = json.find(name);
  EXPECT_NE(at, std::string::npos) << field << " is not in " << json;
  return at == std::string::npos ? 0 : std::strtoull(json.c_str() + at + name.size(), nullptr, 10);
}

class SyncHundred : public ::testing::Test {
 protected:
  std::string owned() const { return directory_.path() / "owned"; }
  std::string copy() const { return directory_.path() / "copy"; }

  Cost sync(const std::vector<std::string>& ends, const char* what) {
    std::vector<std::string> words = {"sync", "--json", "--rule", "source"};
    words.insert(words.end(), ends.begin(), ends.end());
    const Outcome outcome = run_semel(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const std::string& json = outcome.out;
    const Cost cost{number_in(json, "bytes_sent") + number_in(json, "bytes_received"),
                    number_in(json, "round_trips")};
    const std::size_t seconds = json.find("\"seconds\":");
    const std::size_t way = json.find("\"way\":");
    std::printf("%-34s %9llu bytes, %2llu round trips, %s, %s, changed %llu\n", what,
                static_cast<unsigned long long>(cost.bytes),
                static_cast<unsigned long long>(cost.round_trips),
                json.substr(way, json.find(',', way) - way).c_str(),
                json.substr(seconds, json.find(',', seconds) - seconds).c_str(),
                static_cast<unsigned long long>(number_in(json, "changed")));
    changed_ = number_in(json, "changed") + number_in(json, "only_a") + number_in(json, "only_b");
    return cost;
  }
  // Syncs while the owner has its directory open.
  Cost sync_live(const char* what) {
    return sync({"--reverse", copy(), "--via", SEMEL_COMMAND " serve-sync --secondary " + owned()},
                what);
  }
  // Syncs while the directory is closed. The options describe a link between two sites, so that the
  // plan weighs bytes as it would there.
  Cost sync_resting(const char* what) {
    return sync({"--latency", "20ms", "--bandwidth", "250000", owned(), copy()}, what);
  }

  TemporaryDirectory directory_;
  std::uint64_t changed_ = 0;  // records that the last sync found to differ
};

TEST_F(SyncHundred, CostsTheHundredthTimeWhatItCostTheFirst) {
  const std::uint64_t runs = setting("SEMEL_SYNC_RUNS", 12);
  const std::uint64_t records = setting("SEMEL_SYNC_RECORDS", 60'000);
  const std::uint64_t updates = setting("SEMEL_SYNC_UPDATES", 100);
  const std::string all = std::to_string(records);
  Owner owner(owned());
  owner.start();
  owner.tell("fill " + all);
  ASSERT_EQ(run_semel({"load", copy()}).status, 0);
  sync_live("the first copy");

  std::optional<Cost> first;
  std::uint64_t most = 0;
  for (std::uint64_t run = 1; run <= runs; ++run) {
    const std::string some = all + ' ' + std::to_string(updates) + ' ' + std::to_string(run);
    std::string what = "run " + std::to_string(run) + ": ";
    owner.start();
    Cost cost;
    switch (run % 7) {
      case 1:
        owner.tell("update " + some);
        cost = sync_live((what + "live").c_str());
        break;
      case 2:
        owner.tell("update " + some);
        owner.tell("compact");
        cost = sync_live((what + "live, compacted").c_str());
        break;
      case 3:
        owner.tell("ingest " + some);
        cost = sync_live((what + "live, ingested").c_str());
        break;
      case 4:
        owner.tell("update " + some);
        owner.stop();
        cost = sync_resting((what + "stopped").c_str());
        break;
      case 5:
        owner.tell("update " + some);
        owner.tell("compact");
        owner.stop();
        cost = sync_resting((what + "compacted, stopped").c_str());
        break;
      case 6:
        owner.tell("ingest " + some);
        owner.stop();
        cost = sync_resting((what + "ingested, stopped").c_str());
        break;
      default:
        owner.tell("update " + some);
        owner.kill();
        cost = sync_resting((what + "killed").c_str());
        break;
    }
    EXPECT_EQ(changed_, updates) << what;
    if (!first) first = cost;
    most = std::max(most, cost.bytes);
    // A difference takes some 45 bytes, and its record 20 bytes. The first exchange takes 1,500.
    EXPECT_LE(cost.bytes, 4000 + 220 * updates) << what;
    EXPECT_LE(cost.bytes, 3 * first->bytes) << what;
    EXPECT_LE(cost.round_trips, 3 * first->round_trips) << what;
  }
  std::printf("%llu runs with %llu updates of %llu records: run 1 took %llu bytes, the most %llu\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(updates),
              static_cast<unsigned long long>(records),
              static_cast<unsigned long long>(first->bytes), static_cast<unsigned long long>(most));
  owner.stop();
  EXPECT_EQ(run_semel({"diff", "-q", owned(), copy()}).status, 0);
}

}  // namespace
}  // namespace semel
