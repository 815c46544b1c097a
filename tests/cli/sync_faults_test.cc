// A real `semel sync` and a real `semel serve-sync`, with one random fault on the way between them.
//
// The law: both ends end, whatever happens to the bytes. Status 0 means that both directories are
// right. Whatever the status, both can be opened, hold nothing that neither had, and are equal
// after another sync. SEMEL_PIPE_FAULTS sets the number of faults, SEMEL_SEED the first of them.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "semel/core/internal/random.h"
#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

using Records = std::map<std::string, std::string>;
namespace fs = std::filesystem;

constexpr int kThreads = 8;  // they wait more than they work
// Far longer than the timeouts below: a process that is there after it hangs.
constexpr std::chrono::seconds kDeadline{120};
constexpr const char* kShort = "2s";   // where silence is the fault
constexpr const char* kLong = "100s";  // where the machine must not be too slow

std::string lines_of(const Records& records) {
  std::string out;
  for (const auto& [key, value] : records) out.append(key).append("\t").append(value).append("\n");
  return out;
}

// Some keys are only here, some only there, some have two values.
Records side(int from, int to, int changed, Random random) {
  Records records;
  for (int i = from; i < to; ++i) {
    const std::uint64_t word = i % changed == 0 ? random() : static_cast<std::uint64_t>(i) * 77;
    records["key-" + std::to_string(100'000 + i)] =
        std::to_string(word) + std::string(static_cast<std::size_t>(i % 40), 'v');
  }
  return records;
}

Records joined(const Records& a, const Records& b) {
  Records all = a;
  for (const auto& [key, value] : b) {
    std::string& there = all[key];
    there = std::max(there, value);
  }
  return all;
}

struct Fault {
  std::string kind;
  std::uint64_t direction = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  bool must_succeed() const { return kind == "trickle" || kind == "none"; }
  std::string words() const {
    return kind + ' ' + std::to_string(direction) + ' ' + std::to_string(offset) + ' ' +
           std::to_string(length);
  }
};

// Every offset up to 128 KiB may come, and small ones, where the hello is, as often as large ones.
Fault random_fault(std::uint64_t number, std::uint64_t seed) {
  static const std::vector<std::string> kKinds = {
      "drop",       "flip",         "repeat",  "swap",    "stall",      "stall_both",   "close",
      "close_both", "stop_reading", "trickle", "garbage", "kill_asker", "kill_answerer"};
  Random random(seed + number);
  Fault fault;
  fault.kind = kKinds[number % kKinds.size()];
  fault.direction = random.below(2);
  fault.offset = random.below(std::uint64_t{1} << (3 + random.below(15)));
  fault.length = 1 + random.below(std::uint64_t{1} << (1 + random.below(12)));
  if (fault.kind == "trickle") fault.length += 64;
  return fault;
}

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0; }

class SyncFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    a_ = side(0, 1500, 9, Random(1));
    b_ = side(1000, 2500, 9, Random(2));
    all_ = joined(a_, b_);
    ASSERT_EQ(run_semel({"load", at("a")}, lines_of(a_)).status, 0);
    ASSERT_EQ(run_semel({"load", at("b")}, lines_of(b_)).status, 0);
  }

  std::string at(const std::string& name) const { return directory_.path() / name; }

  // Copies both directories. Call it before other threads start processes: these would hold the
  // copied files open for writing as long as they live.
  void prepare(const std::string& place) const {
    fs::create_directory(place);
    for (const char* name : {"a", "b"}) {
      fs::copy(at(name), place + '/' + name, fs::copy_options::recursive);
    }
  }

  // Returns what is wrong, or nothing.
  std::string try_fault(const Fault& fault, const std::string& place, bool& bitten) const {
    const std::string a = place + "/a";
    const std::string b = place + "/b";
    const std::string pids = place + "/pids";
    const char* const timeout = fault.must_succeed() ? kLong : kShort;
    const std::string way = std::string(SEMEL_PIPE_PROXY " ") + fault.words() + ' ' + pids + ' ' +
                            SEMEL_COMMAND + " serve-sync --timeout " + timeout + ' ' + b;
    const Outcome outcome = run({.command = {SEMEL_COMMAND, "sync", "-q", "--stretch", "400",
                                             "--timeout", timeout, a, "--via", way},
                                 .timeout = kDeadline});
    std::string wrong = end_of_all(pids);
    if (outcome.timed_out) wrong += "sync did not end. ";
    const bool success = outcome.status == 0;
    bitten = !success;
    if (!success && outcome.err.empty() && outcome.signal == 0) wrong += "no message. ";
    if (!success && fault.must_succeed()) wrong += "it failed. ";
    wrong += look_at(a, a_, success) + look_at(b, b_, success);
    const Outcome again =
        run_semel({"sync", "-q", a, "--via", std::string(SEMEL_COMMAND " serve-sync ") + b});
    if (again.status != 0) wrong += "another sync failed: " + again.err;
    wrong += look_at(a, a_, true) + look_at(b, b_, true);
    fs::remove_all(place);
    return wrong.empty() ? "" : fault.words() + ": " + wrong + outcome.err;
  }

 private:
  // Waits until the network and the end that answers are gone.
  static std::string end_of_all(const std::string& pids) {
    pid_t network = 0;
    pid_t answerer = 0;
    if (!(std::ifstream(pids) >> network >> answerer)) return "";
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (!is_gone(network) || !is_gone(answerer)) {
      if (std::chrono::steady_clock::now() > deadline) {
        (void)::kill(answerer, SIGKILL);
        (void)::kill(network, SIGKILL);
        return "serve-sync did not end. ";
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "";
  }

  // Each record is what it was or what it is to be; all are, if `done`.
  std::string look_at(const std::string& path, const Records& before, bool done) const {
    const Outcome outcome = run_semel({"dump", path});
    if (outcome.status != 0) return "cannot dump: " + outcome.err;
    if (done) return outcome.out == lines_of(all_) ? "" : path + " is wrong. ";
    Records records;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t tab = line.find('\t');
      records[line.substr(0, tab)] = line.substr(tab + 1);
    }
    for (const auto& [key, value] : before) {
      if (!records.contains(key)) return path + " lacks " + key + ". ";
    }
    for (const auto& [key, value] : records) {
      const auto old = before.find(key);
      const auto target = all_.find(key);
      const bool known = (old != before.end() && old->second == value) ||
                         (target != all_.end() && target->second == value);
      if (!known) return path + " has a wrong value of " + key + ". ";
    }
    return "";
  }

  TemporaryDirectory directory_;
  Records a_;
  Records b_;
  Records all_;
};

TEST_F(SyncFaults, EndBothEndsAndNeverLie) {
  const std::uint64_t count = setting("SEMEL_PIPE_FAULTS", 39);
  const std::uint64_t seed = setting("SEMEL_SEED", 1);
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> bites{0};
  std::mutex mutex;
  std::vector<std::string> wrongs;
  const auto place = [&](std::uint64_t i) { return at("case-" + std::to_string(i)); };
  for (std::uint64_t i = 0; i < count; ++i) prepare(place(i));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = next++; i < count; i = next++) {
        bool bitten = false;
        const std::string wrong = try_fault(random_fault(i, seed * 1'000'000), place(i), bitten);
        bites += bitten ? 1 : 0;
        const std::lock_guard lock(mutex);
        if (!wrong.empty()) wrongs.push_back(wrong);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& wrong : wrongs) ADD_FAILURE() << wrong;
  std::printf("%llu of %llu faults made a sync fail, %zu broke the law\n",
              static_cast<unsigned long long>(bites), static_cast<unsigned long long>(count),
              wrongs.size());
  EXPECT_GT(bites, count / 2);  // otherwise the faults come too late to matter
}

}  // namespace
}  // namespace semel
