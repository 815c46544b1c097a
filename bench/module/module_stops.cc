// module_stops: how long one command keeps other clients waiting.
//
//   module_stops MODULE [--only NAME] [--rounds N] [--tsv FILE]
//
// Method    Each case has a server of its own. While one command runs, another client sends a PING
//           whenever the last one was answered. A round counts by the worst PING of its command,
//           and the best round counts. The command itself may take longer than it keeps others
//           waiting.
// Time      A PING has two times: the one that passed until the answer, and the CPU time that the
//           server used meanwhile. The second does not run while another program has the
//           processor. On a quiet machine both are the same.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/module/workloads.h"
#include "bench/peers/redis_load.h"
#include "bench/peers/redis_server.h"

namespace semel::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kMostIds = 131'000;  // semel.max-arguments is 131,072 by default

// Sends PINGs from a thread of its own, until it is asked for the worst one.
class Pinger {
 public:
  explicit Pinger(const RedisServer& server)
      : server_(server), load_(server.port(), 1), thread_([this] { run(); }) {}
  Pinger(const Pinger&) = delete;
  Pinger& operator=(const Pinger&) = delete;
  ~Pinger() { end(); }

  struct Worst {
    double ms = 0;
    double cpu_ms = 0;
  };
  // Ends the thread.
  Worst worst() {
    end();
    return worst_;
  }

 private:
  void run() {
    run_on(1);
    while (!ended_) {
      const auto start = Clock::now();
      const double cpu_s = server_.cpu_seconds();
      load_.call({"PING"});
      worst_.cpu_ms = std::max(worst_.cpu_ms, 1000 * (server_.cpu_seconds() - cpu_s));
      worst_.ms = std::max(worst_.ms, Milliseconds(Clock::now() - start).count());
    }
  }
  void end() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }

  const RedisServer& server_;
  RedisLoad load_;
  std::atomic<bool> ended_ = false;
  Worst worst_;
  std::thread thread_;
};

struct Case {
  const char* name;
  const char* what;
  std::function<void(RedisLoad&)> prepare;  // once
  std::function<Commands(std::size_t round)> command;
  std::function<void(RedisLoad&)> before = {};  // before each round
};

std::string numbered(const char* name, std::uint64_t number) {
  return std::string(name).append(std::to_string(number));
}

Commands one(std::vector<std::string_view> words) {
  Commands commands;
  commands.add(words);
  return commands;
}

// Returns one command with many words behind its first ones; add(words, i) appends those of i.
template <class Add>
Commands with_many(const std::vector<std::string>& first, std::uint64_t from, std::uint64_t count,
                   Add add) {
  std::vector<std::string> words = first;
  for (std::uint64_t i = from; i < from + count; ++i) add(words, i);
  std::vector<std::string_view> views(words.begin(), words.end());
  Commands commands;
  commands.add(views);
  return commands;
}

Commands with_ids(const std::vector<std::string>& first, std::uint64_t from, std::uint64_t count) {
  return with_many(first, from, count, [](auto& words, std::uint64_t i) {
    words.emplace_back(std::string_view(Id(i)));
  });
}

void fill(RedisLoad& load, const std::vector<std::string>& first, std::uint64_t from,
          std::uint64_t count) {
  constexpr std::uint64_t kAtOnce = 1000;
  Commands commands(4);
  std::vector<std::string_view> words(first.begin(), first.end());
  std::vector<Id> ids;
  for (std::uint64_t at = from; at < from + count; at += kAtOnce) {
    ids.clear();
    for (std::uint64_t i = at; i < std::min(at + kAtOnce, from + count); ++i) ids.emplace_back(i);
    words.resize(first.size());
    words.insert(words.end(), ids.begin(), ids.end());
    commands.add(words);
  }
  const Replies replies = load.run(commands);
  if (replies.errors == 0) return;
  std::fprintf(stderr, "module_stops: %s\n", replies.first_error.c_str());
  std::exit(1);
}

void fill_counters(RedisLoad& load, std::uint64_t count) {
  constexpr std::uint64_t kAtOnce = 1000;
  Commands commands(4);
  for (std::uint64_t at = 0; at < count; at += kAtOnce) {
    std::vector<std::string> words = {"TALLY.MINCRBY", "t", "NOID"};
    for (std::uint64_t i = at; i < at + kAtOnce; ++i) {
      words.push_back(numbered("counter:", i));
      words.emplace_back("1");
    }
    commands.add(std::vector<std::string_view>(words.begin(), words.end()));
  }
  load.run(commands);
}

constexpr const char* kFilter120 = "70000000";  // items of a Bloom filter of 120 MB at 0.001

// Fills half of the bits, as they are in a filter that is full.
void bloom_of_120_mb(RedisLoad& load) {
  load.call({"BF.RESERVE", "b", "0.001", kFilter120});
  fill(load, {"BF.MADD", "b"}, 0, 5 * kMillion);
}

void twenty_filters(RedisLoad& load) {
  load.call({"BF.RESERVE", "b", "0.001", "10000000"});
  fill(load, {"BF.MADD", "b"}, 0, kMillion);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::string key = numbered("b", i);
    load.call({"BF.LIKE", key, "b"});
    fill(load, {"BF.MADD", key}, i * kMillion, kMillion);
  }
}

Commands twenty_merges(std::size_t round) {
  const std::string to = numbered("to", round);
  Commands commands(100);
  commands.add({"MULTI"});
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::string from = numbered("b", i);
    commands.add({"BF.MERGE", to, from});
  }
  commands.add({"EXEC"});
  return commands;
}

void cuckoo(RedisLoad& load, const char* capacity, std::uint64_t items) {
  load.call({"CF.RESERVE", "c", capacity});
  fill(load, {"CF.INSERT", "c", "ITEMS"}, 0, items);
}

std::vector<Case> cases() {
  using Words = std::vector<std::string>;
  const auto reserve = [](Words words) {
    return [words](RedisLoad& load) {
      Commands commands;
      commands.add(std::vector<std::string_view>(words.begin(), words.end()));
      load.run(commands);
    };
  };
  // Ids of its own for every round.
  const auto adds = [](Words words, std::uint64_t count) {
    return [=](std::size_t round) { return with_ids(words, round * count, count); };
  };
  const auto copies = [](std::size_t round) {
    return one({"COPY", "t", round % 2 == 0 ? "t0" : "t1", "REPLACE"});
  };
  const auto payload = std::make_shared<std::string>();
  const auto restores = [payload](std::size_t) { return one({"RESTORE", "copy", "0", *payload}); };
  // Commands that add one id each.
  const auto grows = [](Words words) {
    return [=](std::size_t round) {
      Commands commands;
      for (std::uint64_t i = 0; i < kMillion; ++i) {
        std::vector<std::string_view> views(words.begin(), words.end());
        const Id id(round * kMillion + i);
        views.push_back(id);
        commands.add(views);
      }
      return commands;
    };
  };
  return {
      {"nothing", "a million PINGs", [](RedisLoad&) {},
       [](std::size_t) {
         return each(0, kMillion, [](Commands& to, std::uint64_t) { to.add({"PING"}); });
       }},
      {"copy-tally", "COPY of a million counters",
       [](RedisLoad& load) { fill_counters(load, kMillion); }, copies},
      {"copy-bloom", "COPY of a filter of 120 MB", bloom_of_120_mb,
       [](std::size_t) {
         return one({"COPY", "b", "b2", "REPLACE"});
       }},
      {"copy-cuckoo", "COPY of a cuckoo filter, 4 million items",
       [](RedisLoad& load) { cuckoo(load, "4000000", 4 * kMillion); },
       [](std::size_t) {
         return one({"COPY", "c", "c2", "REPLACE"});
       }},
      {"copy-sift", "COPY of a sift, 10 million ids",
       [](RedisLoad& load) {
         load.call({"SIFT.RESERVE", "s", "CAPACITY", "10000000", "WINDOW", "1h"});
         fill(load, {"SIFT.MADD", "s"}, 0, kMillion);
       },
       [](std::size_t) {
         return one({"COPY", "s", "s2", "REPLACE"});
       }},
      {"dump-bloom", "DUMP of a filter of 120 MB", bloom_of_120_mb,
       [](std::size_t) {
         return one({"DUMP", "b"});
       }},
      {"dump-tally", "DUMP of a million counters",
       [](RedisLoad& load) { fill_counters(load, kMillion); },
       [](std::size_t) {
         return one({"DUMP", "t"});
       }},
      {"dump-cuckoo", "DUMP of a cuckoo filter, 4 million items",
       [](RedisLoad& load) { cuckoo(load, "4000000", 4 * kMillion); },
       [](std::size_t) {
         return one({"DUMP", "c"});
       }},
      {"restore-bloom", "RESTORE of a filter of 120 MB",
       [payload](RedisLoad& load) {
         bloom_of_120_mb(load);
         *payload = load.call({"DUMP", "b"});
       },
       restores,
       [](RedisLoad& load) {
         load.call({"DEL", "copy"});
       }},
      {"restore-tally", "RESTORE of a million counters",
       [payload](RedisLoad& load) {
         fill_counters(load, kMillion);
         *payload = load.call({"DUMP", "t"});
       },
       restores,
       [](RedisLoad& load) {
         load.call({"DEL", "copy"});
       }},
      {"merge-bloom", "BF.MERGE of a filter of 120 MB", bloom_of_120_mb,
       [](std::size_t round) {
         const std::string to = numbered("to", round);
         return one({"BF.MERGE", to, "b"});
       }},
      {"merge-multi", "MULTI, 20 BF.MERGE of filters of 18 MB, EXEC", twenty_filters,
       twenty_merges},
      {"merge-cuckoo", "CF.MERGE of a cuckoo filter, 4 million items",
       [](RedisLoad& load) { cuckoo(load, "4000000", 4 * kMillion); },
       [](std::size_t round) {
         const std::string to = numbered("to", round);
         return one({"CF.MERGE", to, "c"});
       }},
      {"scandump-cuckoo", "CF.SCANDUMP of a cuckoo filter, 4 million items",
       [](RedisLoad& load) { cuckoo(load, "4000000", 4 * kMillion); },
       [](std::size_t) {
         return one({"CF.SCANDUMP", "c", "1"});
       }},
      {"scandump-bloom", "BF.SCANDUMP of a filter of 120 MB", bloom_of_120_mb,
       [](std::size_t) {
         return one({"BF.SCANDUMP", "b", "1"});
       }},
      {"insert-one-item", "CF.INSERT of one item 100,000 times",
       reserve({"CF.RESERVE", "c", "1024"}),
       [](std::size_t round) {
         const std::string key = numbered("c", round);
         return with_many({"CF.INSERT", key, "ITEMS"}, 0, 100'000,
                          [](auto& words, std::uint64_t) { words.emplace_back("same"); });
       }},
      {"madd-exact", "SIFT.MADD of 131,000 ids, EXACT",
       reserve({"SIFT.RESERVE", "s", "EXACT", "WINDOW", "1h"}), adds({"SIFT.MADD", "s"}, kMostIds)},
      {"madd-timers", "SIFT.MADD of 131,000 ids, TIMERS",
       reserve({"SIFT.RESERVE", "s", "TIMERS", "WINDOW", "1h", "CAPACITY", "1000000"}),
       adds({"SIFT.MADD", "s"}, kMostIds)},
      {"madd-sift", "SIFT.MADD of 131,000 ids",
       reserve({"SIFT.RESERVE", "s", "WINDOW", "1h", "CAPACITY", "1000000"}),
       adds({"SIFT.MADD", "s"}, kMostIds)},
      {"madd-bloom", "BF.MADD of 131,000 items", reserve({"BF.RESERVE", "b", "0.001", "5000000"}),
       adds({"BF.MADD", "b"}, kMostIds)},
      {"madd-cuckoo", "CF.INSERT of 131,000 items", reserve({"CF.RESERVE", "c", "5000000"}),
       adds({"CF.INSERT", "c", "ITEMS"}, kMostIds)},
      {"mincrby", "TALLY.MINCRBY of 43,000 operations",
       reserve({"TALLY.RESERVE", "t", "CAPACITY", "1000000"}),
       [](std::size_t round) {
         return with_many({"TALLY.MINCRBY", "t", "IDS"}, round * 43'000, 43'000,
                          [](auto& words, std::uint64_t i) {
                            words.push_back(numbered("counter:", i));
                            words.emplace_back("1");
                            words.emplace_back(std::string_view(Id(i)));
                          });
       }},
      {"range", "TALLY.RANGE of a million counters",
       [](RedisLoad& load) { fill_counters(load, kMillion); },
       [](std::size_t) {
         return one({"TALLY.RANGE", "t", "-", "+"});
       }},
      {"digest-bloom", "DEBUG DIGEST-VALUE of a filter of 120 MB", bloom_of_120_mb,
       [](std::size_t) {
         return one({"DEBUG", "DIGEST-VALUE", "b"});
       }},
      {"digest-tally", "DEBUG DIGEST-VALUE of a million counters",
       [](RedisLoad& load) { fill_counters(load, kMillion); },
       [](std::size_t) {
         return one({"DEBUG", "DIGEST-VALUE", "t"});
       }},
      {"del-bloom", "DEL of a filter of 120 MB", bloom_of_120_mb,
       [](std::size_t) {
         return one({"DEL", "copy"});
       },
       [](RedisLoad& load) {
         load.call({"COPY", "b", "copy"});
       }},
      {"unlink-bloom", "UNLINK of a filter of 120 MB", bloom_of_120_mb,
       [](std::size_t) {
         return one({"UNLINK", "copy"});
       },
       [](RedisLoad& load) {
         load.call({"COPY", "b", "copy"});
       }},
      {"del-tally", "DEL of a million counters",
       [](RedisLoad& load) { fill_counters(load, kMillion); },
       [](std::size_t) {
         return one({"DEL", "copy"});
       },
       [](RedisLoad& load) {
         load.call({"COPY", "t", "copy"});
       }},
      {"grow-bloom", "BF.ADD, growth to a million items",
       reserve({"BF.RESERVE", "b", "0.001", "100"}), grows({"BF.ADD", "b"})},
      {"grow-cuckoo", "CF.ADD, growth to a million items", reserve({"CF.RESERVE", "c", "1024"}),
       grows({"CF.ADD", "c"})},
      {"grow-exact", "SIFT.ADD, growth to a million ids, EXACT",
       reserve({"SIFT.RESERVE", "s", "EXACT", "WINDOW", "1h", "CAPACITY", "1"}),
       grows({"SIFT.ADD", "s"})},
      {"grow-timers", "SIFT.ADD, growth to a million ids, TIMERS",
       reserve({"SIFT.RESERVE", "s", "TIMERS", "WINDOW", "1h", "CAPACITY", "1"}),
       grows({"SIFT.ADD", "s"})},
      {"grow-sift", "SIFT.ADD, growth to a million ids",
       reserve({"SIFT.RESERVE", "s", "WINDOW", "1h", "CAPACITY", "1"}), grows({"SIFT.ADD", "s"})},
      {"grow-tally", "TALLY.INCRBY, growth to a million counters", reserve({"TALLY.RESERVE", "t"}),
       [](std::size_t round) {
         return each(round * kMillion, kMillion, [](Commands& to, std::uint64_t i) {
           to.add({"TALLY.INCRBY", "t", numbered("counter:", i), "1", "ID", Id(i)});
         });
       }},
      {"short-window", "SIFT.ADD, 2 million ids, a window of 1 s, EXACT",
       reserve({"SIFT.RESERVE", "s", "EXACT", "WINDOW", "1s", "CAPACITY", "1"}),
       grows({"SIFT.ADD", "s"})},
      {"short-timers", "SIFT.ADD, a million ids, a window of 1 s, TIMERS",
       reserve({"SIFT.RESERVE", "s", "TIMERS", "WINDOW", "1s", "CAPACITY", "1000000"}),
       grows({"SIFT.ADD", "s"})},
  };
}

int run(int argc, char** argv) {
  std::string module, only, tsv_path;
  std::size_t rounds = 3;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--only" && more) {
      only = argv[++i];
    } else if (word == "--rounds" && more) {
      rounds = std::max(1ul, std::strtoul(argv[++i], nullptr, 10));
    } else if (word == "--tsv" && more) {
      tsv_path = argv[++i];
    } else if (module.empty() && !word.starts_with("--")) {
      module = word;
    } else {
      module.clear();
      break;
    }
  }
  if (module.empty()) {
    std::fprintf(stderr, "module_stops MODULE [--only NAME] [--rounds N] [--tsv FILE]\n");
    return 2;
  }
  run_on(1);  // the servers are on 0
  std::ofstream tsv;
  if (!tsv_path.empty()) {
    tsv.open(tsv_path);
    tsv << "id\tworst_ping_ms\tworst_ping_cpu_ms\tcommand_ms\tcommand_cpu_ms\n";
  }
  std::printf("%-50s %21s %21s\n%-50s %10s %10s %10s %10s\n", "", "worst PING, ms", "command, ms",
              "", "passed", "CPU", "passed", "CPU");
  for (const Case& one : cases()) {
    if (!only.empty() && std::string_view(one.name).find(only) == std::string_view::npos) continue;
    Pinger::Worst worst{1e9, 1e9};
    double whole = 1e9, whole_cpu = 1e9;
    std::string error;
    const RedisServer server(module, 0);
    RedisLoad load(server.port());
    one.prepare(load);
    for (std::size_t round = 0; round < rounds; ++round) {
      if (one.before) one.before(load);
      const Commands commands = one.command(round);
      Pinger pinger(server);
      const auto start = Clock::now();
      const double cpu_s = server.cpu_seconds();
      const Replies replies = load.run(commands);
      whole_cpu = std::min(whole_cpu, 1000 * (server.cpu_seconds() - cpu_s));
      whole = std::min(whole, Milliseconds(Clock::now() - start).count());
      const Pinger::Worst now = pinger.worst();
      worst = {std::min(worst.ms, now.ms), std::min(worst.cpu_ms, now.cpu_ms)};
      if (replies.errors > 0) error = replies.first_error;
    }
    std::printf("%-50s %10.1f %10.1f %10.1f %10.1f %s\n", one.what, worst.ms, worst.cpu_ms, whole,
                whole_cpu, error.c_str());
    std::fflush(stdout);
    if (!tsv.is_open()) continue;
    tsv << one.name << '\t' << worst.ms << '\t' << worst.cpu_ms << '\t' << whole << '\t'
        << whole_cpu << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace semel::bench

int main(int argc, char** argv) { return semel::bench::run(argc, argv); }
