// module_bench: compares semel.so in redis-server with what Redis itself can do, and with
// RedisBloom's figures. docs/benchmarks.md explains the output.
//
//   module_bench MODULE [--quick] [--only NAME] [--rounds N] [--tsv FILE]
//
// NAME is tally, sift, filters or memory.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>

#include "bench/module/race.h"
#include "bench/module/workloads.h"
#include "bench/peers/redis_server.h"
#include "semel/core/internal/random.h"

namespace semel::bench {
namespace {

struct Bench {
  Setting setting;
  std::uint64_t commands;  // of a round
  std::uint64_t million;   // how many ids are measured for memory and error
  Report& report;
};

bool any_answer(const Replies& /*replies*/) { return true; }

// All ids are new, except for a few false positives of a filter.
auto all_ones(std::uint64_t items) {
  return [items](const Replies& replies) { return replies.ones + items / 50 >= items; };
}
bool no_ones(const Replies& replies) { return replies.ones == 0; }

Contender ping(const Bench& bench) {
  return {.name = "ping",
          .commands =
              [n = bench.commands](std::size_t) {
                return each(0, n, [](Commands& to, std::uint64_t) { to.add({"PING"}); });
              },
          .right = any_answer};
}

// The limit: commands of a module with the same number of words, which find no key and do nothing.
// They cost what the server itself costs.
Contender nothing(const Bench& bench, const char* name,
                  std::function<Commands(std::uint64_t first, std::uint64_t items)> commands) {
  return {.name = name,
          .commands = [n = bench.commands,
                       commands](std::size_t round) { return commands(round * n, n); },
          .right = no_ones};
}

Commands nothing_for_three(std::uint64_t first, std::uint64_t items) {
  return each(first, items, [](Commands& to, std::uint64_t i) {
    to.add({"BF.EXISTS", "none", Id(i)});
  });
}

Commands nothing_for_six(std::uint64_t first, std::uint64_t items) {
  return each(first, items, [](Commands& to, std::uint64_t i) {
    std::string from = "[";
    from += counter_of(i);
    to.add({"TALLY.RANGE", "none", from, "+", "LIMIT", "1"});
  });
}

Commands nothing_for_many(std::uint64_t first, std::uint64_t items) {
  return batches("BF.MEXISTS", "none", first, items);
}

// --- Counters ------------------------------------------------------------------------------------

// Remembers each id under a key of its own, and counts if it was new. Replies with the value.
constexpr const char* kExactScript =
    "if redis.call('SET', KEYS[1], 1, 'NX', 'EX', 600) then "
    "return redis.call('INCRBY', KEYS[2], ARGV[1]) end return redis.call('GET', KEYS[2])";
// Like kExactScript, with a Bloom filter for all ids, which never forgets.
constexpr const char* kBloomScript =
    "if redis.call('BF.ADD', KEYS[1], ARGV[2]) == 1 then "
    "return redis.call('INCRBY', KEYS[2], ARGV[1]) end return redis.call('GET', KEYS[2])";
// Like kBloomScript, without a module: a filter in a string, with 20 bits for an id. The client has
// computed the positions. One BITFIELD sets all of them and returns their former values.
constexpr const char* kBitsScript =
    "local set = {} for i = 2, #ARGV do set[4 * i - 7] = 'SET' set[4 * i - 6] = 'u1' "
    "set[4 * i - 5] = ARGV[i] set[4 * i - 4] = 1 end "
    "for _, old in ipairs(redis.call('BITFIELD', KEYS[1], unpack(set))) do if old == 0 then "
    "return redis.call('INCRBY', KEYS[2], ARGV[1]) end end return redis.call('GET', KEYS[2])";
constexpr std::size_t kBits = 20;                   // of an id, for an error of 1e-6
constexpr std::uint64_t kFilterBits = 29'000'000u;  // for a million ids

// A script by its digest; prepare() loads it.
class Script {
 public:
  explicit Script(const char* source) : source_(source), sha_(std::make_shared<std::string>()) {}

  void load(RedisLoad& load) const { *sha_ = load.call({"SCRIPT", "LOAD", source_}); }
  const std::string& sha() const { return *sha_; }

 private:
  const char* source_;
  std::shared_ptr<std::string> sha_;
};

// Makes the counters, so that no round has to.
void fill_counters(RedisLoad& load) {
  load.run(each(0, kCounters, [](Commands& to, std::uint64_t i) {
    to.add({"SET", "counter:" + std::to_string(i), "1"});
  }));
}

void fill_table(RedisLoad& load, std::initializer_list<std::string_view> create) {
  load.call(create);
  load.run(each(0, kCounters, [](Commands& to, std::uint64_t i) {
    to.add({"TALLY.INCRBY", "table", "counter:" + std::to_string(i), "1"});
  }));
}

Contender incr(const Bench& bench) {
  return {.name = "incr",
          .prepare = fill_counters,
          .commands =
              [n = bench.commands](std::size_t round) {
                return each(round * n, n, [](Commands& to, std::uint64_t i) {
                  to.add({"INCR", counter_of(i)});
                });
              },
          .right = any_answer};
}

Contender lua_exact(const Bench& bench) {
  const Script script(kExactScript);
  return {.name = "lua-set-nx",
          .prepare =
              [script](RedisLoad& load) {
                script.load(load);
                fill_counters(load);
              },
          .commands =
              [n = bench.commands, script](std::size_t round) {
                return each(round * n, n, [&](Commands& to, std::uint64_t i) {
                  to.add({"EVALSHA", script.sha(), "2", Id(i), counter_of(i), "1"});
                });
              },
          .right = any_answer};
}

Contender lua_bloom(const Bench& bench) {
  const Script script(kBloomScript);
  return {.name = "lua-bf-add",
          .prepare =
              [script](RedisLoad& load) {
                script.load(load);
                fill_counters(load);
                load.call({"BF.RESERVE", "filter", "0.000001", "2000000"});
              },
          .commands =
              [n = bench.commands, script](std::size_t round) {
                return each(round * n, n, [&](Commands& to, std::uint64_t i) {
                  to.add({"EVALSHA", script.sha(), "2", "filter", counter_of(i), "1", Id(i)});
                });
              },
          .right = any_answer};
}

Contender lua_bits(const Bench& bench) {
  const Script script(kBitsScript);
  return {.name = "lua-bitfield",
          .prepare =
              [script](RedisLoad& load) {
                script.load(load);
                fill_counters(load);
                load.call({"SETBIT", "filter", std::to_string(kFilterBits), "0"});
              },
          .commands =
              [n = bench.commands / 10, script](std::size_t round) {
                return each(round * n, n, [&](Commands& to, std::uint64_t i) {
                  const std::string counter = counter_of(i);
                  Random places(i);
                  std::vector<std::string> texts;
                  for (std::size_t k = 0; k < kBits; ++k) {
                    texts.push_back(std::to_string(places.below(kFilterBits)));
                  }
                  std::vector<std::string_view> words = {"EVALSHA", script.sha(), "2",
                                                         "filter",  counter,      "1"};
                  words.insert(words.end(), texts.begin(), texts.end());
                  to.add(words);
                });
              },
          .right = any_answer};
}

// Opaque ids. One in `again` is the id of an operation a thousand before; 0: none is.
Contender tally_opaque(const Bench& bench, const char* name, std::uint64_t again) {
  const auto is_again = [again](std::uint64_t i) { return again != 0 && i % again == again - 1; };
  return {
      .name = name,
      .prepare =
          [](RedisLoad& load) {
            fill_table(load,
                       {"TALLY.RESERVE", "table", "ERROR", "0.000001", "CAPACITY", "1000000"});
          },
      .commands =
          [n = bench.commands, is_again](std::size_t round) {
            return each(round * n, n, [&](Commands& to, std::uint64_t i) {
              // Repeats an id that was itself new: 999 before a repeated one is never another
              // repeated one.
              const std::uint64_t operation = is_again(i) && i >= 999 ? i - 999 : i;
              to.add({"TALLY.INCRBY", "table", counter_of(operation), "1", "ID", Id(operation)});
            });
          },
      .right =
          [n = bench.commands, again](const Replies& replies) {
            const std::uint64_t expected = again == 0 ? 0 : n / again;
            return replies.duplicates <= expected + 2 && replies.duplicates + 1000 >= expected;
          }};
}

Contender tally_numbered(const Bench& bench) {
  constexpr std::uint64_t kClients = 1000;
  return {.name = "numbered",
          .prepare =
              [](RedisLoad& load) {
                fill_table(load, {"TALLY.RESERVE", "table", "CAPACITY", "1000000"});
              },
          .commands =
              [n = bench.commands](std::size_t round) {
                return each(round * n, n, [](Commands& to, std::uint64_t i) {
                  to.add({"TALLY.INCRBY", "table", counter_of(i), "1", "OP",
                          "client:" + std::to_string(i % kClients), std::to_string(i / kClients)});
                });
              },
          .right = [](const Replies& replies) { return replies.duplicates == 0; }};
}

void tally(const Bench& bench) {
  bench.report.head("TALLY.INCRBY over 100,000 counters, error 1e-6");
  const std::vector<Laps> all =
      race({ping(bench), incr(bench), lua_exact(bench), lua_bloom(bench), lua_bits(bench),
            nothing(bench, "nothing-for-6", nothing_for_six), tally_opaque(bench, "opaque", 0),
            tally_opaque(bench, "opaque-duplicates", 10), tally_numbered(bench)},
           bench.setting);
  bench.report.times(all);
  bench.report.compare("nothing/6-words", all[5], all[1]);
  for (std::size_t ours = 6; ours < all.size(); ++ours) {
    const std::string id = "tally-incrby/" + all[ours].name;
    bench.report.compare(id, all[ours], all[1], 0.8);
    bench.report.compare(id, all[ours], all[2], 4);
    bench.report.compare(id, all[ours], all[3], 2.5);
    bench.report.compare(id, all[ours], all[4], 2.5);
  }
}

// --- Ids -----------------------------------------------------------------------------------------

// Ids that are new, or a random choice from a million that were there before.
template <class Add>
Contender ids(const Bench& bench, std::string name, bool again, Add add,
              std::function<void(RedisLoad&)> make = {}) {
  return {.name = std::move(name),
          .prepare =
              [all = bench.million, again, add, make](RedisLoad& load) {
                if (make) make(load);
                if (again) load.run(each(0, all, add));
              },
          .commands =
              [n = bench.commands, all = bench.million, again, add](std::size_t round) {
                return each(round * n, n, [&](Commands& to, std::uint64_t i) {
                  add(to, again ? Random(i).below(all) : i);
                });
              },
          .right = again ? std::function<bool(const Replies&)>(no_ones) : any_answer};
}

void set_id(Commands& to, std::uint64_t i) { to.add({"SET", Id(i), "1", "NX", "EX", "600"}); }
void sift_id(Commands& to, std::uint64_t i) { to.add({"SIFT.ADD", "sift", Id(i)}); }
void make_sift(RedisLoad& load) {
  load.call({"SIFT.RESERVE", "sift", "ERROR", "0.000001", "CAPACITY", "1000000"});
}

void sift(const Bench& bench) {
  bench.report.head("SIFT.ADD, error 1e-6");
  const std::vector<Laps> all = race(
      {ids(bench, "set-nx-new", false, set_id), ids(bench, "set-nx-again", true, set_id),
       nothing(bench, "nothing-for-3", nothing_for_three),
       ids(bench, "new", false, sift_id, make_sift), ids(bench, "again", true, sift_id, make_sift)},
      bench.setting);
  bench.report.times(all);
  bench.report.compare("nothing/3-words", all[2], all[1]);
  bench.report.compare("sift-add/new", all[3], all[0], 2);
  bench.report.compare("sift-add/again", all[4], all[1], 2);
}

// --- Filters -------------------------------------------------------------------------------------

// RedisBloom 2.6 as measured on such a machine: CPU time of the server for a command, in PINGs.
constexpr double kBloomPing = 0.34;
struct FilterCommand {
  const char* name;
  const char* command;
  const char* key;
  bool writes;
  bool many;
  double redisbloom_us;
  double goal;
};
constexpr std::array kFilterCommands = {
    FilterCommand{"bf-add", "BF.ADD", "bf", true, false, 1.11, 1},
    FilterCommand{"bf-exists", "BF.EXISTS", "bf", false, false, 0.84, 1},
    FilterCommand{"bf-madd", "BF.MADD", "bf", true, true, 36.9, 2},
    FilterCommand{"bf-mexists", "BF.MEXISTS", "bf", false, true, 16.0, 2},
    FilterCommand{"cf-add", "CF.ADD", "cf", true, false, 0.82, 1},
    FilterCommand{"cf-exists", "CF.EXISTS", "cf", false, false, 0.78, 1},
};

Contender filter_command(const Bench& bench, const FilterCommand& row, bool reserved) {
  const std::uint64_t items = bench.commands;
  const auto commands = [row, items](std::uint64_t first) {
    if (row.many) return batches(row.command, row.key, first, items);
    return each(first, items, [&](Commands& to, std::uint64_t i) {
      to.add({row.command, row.key, Id(i)});
    });
  };
  // One in a hundred absent ids may seem to be there, plus a margin for chance.
  const auto few = [items](const Replies& replies) { return replies.ones <= items / 50; };
  return {.name = row.name + std::string(reserved ? "" : "-grown"),
          .prepare =
              [row, reserved, items](RedisLoad& load) {
                const std::string_view key = row.key;
                if (reserved && key == "bf") load.call({"BF.RESERVE", "bf", "0.01", "2000000"});
                if (reserved && key == "cf") load.call({"CF.RESERVE", "cf", "2000000"});
                if (!row.writes) {  // reads ask for present and absent ids in turn
                  load.run(key == "bf" ? batches("BF.MADD", key, 0, 8 * items)
                                       : each(0, 8 * items, [&](Commands& to, std::uint64_t i) {
                                           to.add({"CF.ADD", key, Id(i)});
                                         }));
                }
              },
          .commands =
              [row, items, commands](std::size_t round) {
                if (row.writes) return commands(round * items);
                return commands(round % 2 == 0 ? round / 2 * items : (1000 + round) * items);
              },
          .right =
              [row, items, few](const Replies& replies) {
                return row.writes ? all_ones(items)(replies)
                                  : replies.ones == items || few(replies);
              }};
}

void filters(const Bench& bench, bool reserved) {
  bench.report.head(reserved ? "BF.* and CF.*, filters for 2 million ids; BF at 1 %"
                             : "BF.* and CF.*, filters that grow from their default size");
  std::vector<Contender> contenders = {ping(bench),
                                       nothing(bench, "nothing-for-3", nothing_for_three),
                                       nothing(bench, "nothing-for-102", nothing_for_many)};
  const std::size_t first = contenders.size();
  for (const FilterCommand& row : kFilterCommands) {
    contenders.push_back(filter_command(bench, row, reserved));
  }
  const std::vector<Laps> all = race(contenders, bench.setting);
  bench.report.times(all);
  const auto in_pings = [&](const Laps& laps) {
    std::vector<double> pings;
    for (std::size_t round = 0; round < bench.setting.rounds; ++round) {
      pings.push_back(laps.rounds[round].cpu_us / all[0].rounds[round].cpu_us);
    }
    return median(std::move(pings));
  };
  for (std::size_t i = 0; i < kFilterCommands.size(); ++i) {
    const FilterCommand& row = kFilterCommands[i];
    const Laps& ours = all[first + i];
    bench.report.compare(ours.name, in_pings(ours), "redisbloom", row.redisbloom_us / kBloomPing,
                         "pings", reserved ? std::optional(row.goal) : std::nullopt);
    bench.report.compare(ours.name, in_pings(ours), "nothing", in_pings(all[row.many ? 2 : 1]),
                         "pings");
  }
}

// --- Memory and error ----------------------------------------------------------------------------

double field_of(const std::string& info, const std::string& name) {
  const std::size_t at = info.find(name + ':');
  return at == std::string::npos ? NAN : std::strtod(info.c_str() + at + name.size() + 1, nullptr);
}

// A server whose memory is read before and after.
class Scale {
 public:
  explicit Scale(const Bench& bench)
      : server_(bench.setting.module, bench.setting.server_processor), load_(server_.port()) {}

  RedisLoad& load() { return load_; }
  double used() { return field_of(load_.call({"INFO", "memory"}), "used_memory"); }
  double usage(std::string_view key) {
    return std::strtod(load_.call({"MEMORY", "USAGE", key, "SAMPLES", "0"}).c_str(), nullptr);
  }
  // Returns the bytes of used_memory that `work` took.
  template <class Work>
  double growth(Work work) {
    const double before = used();
    work(load_);
    return used() - before;
  }

 private:
  RedisServer server_;
  RedisLoad load_;
};

void no_errors(const Replies& replies) {
  if (replies.errors == 0) return;
  std::fprintf(stderr, "module_bench: %s\n", replies.first_error.c_str());
  std::exit(1);
}

double set_nx_bytes(const Bench& bench) {
  Scale scale(bench);
  return scale.growth([&](RedisLoad& load) {
    no_errors(load.run(each(0, bench.million, set_id)));
  }) / static_cast<double>(bench.million);
}

void tally_memory(const Bench& bench, double set_nx) {
  const auto n = static_cast<double>(bench.million);
  const std::string capacity = std::to_string(bench.million);
  Scale with(bench), without(bench);
  const double counters = without.growth([&](RedisLoad& load) {
    fill_table(load, {"TALLY.RESERVE", "table", "ERROR", "0.000001", "CAPACITY", "1"});
  });
  const double all = with.growth([&](RedisLoad& load) {
    fill_table(load, {"TALLY.RESERVE", "table", "ERROR", "0.000001", "CAPACITY", capacity});
    no_errors(load.run(each(0, bench.million, [](Commands& to, std::uint64_t i) {
      to.add({"TALLY.INCRBY", "table", counter_of(i), "1", "ID", Id(i)});
    })));
  });
  const double by_usage = (with.usage("table") - without.usage("table")) / n;
  bench.report.compare("tally/bytes-of-an-operation", by_usage, "claimed", 6, "bytes", 1);
  bench.report.compare("tally/bytes-of-an-operation", by_usage, "set-nx", set_nx, "bytes");
  bench.report.compare("tally/used-memory", (all - counters) / n, "set-nx", set_nx, "bytes");
}

void sift_memory(const Bench& bench, const char* error, double set_nx, std::optional<double> goal) {
  Scale scale(bench);
  const double used = scale.growth([&](RedisLoad& load) {
    load.call({"SIFT.RESERVE", "sift", "ERROR", error, "CAPACITY", std::to_string(bench.million)});
    no_errors(load.run(each(0, bench.million, sift_id)));
  });
  const auto n = static_cast<double>(bench.million);
  const std::string id = std::string("sift/") + error;
  bench.report.compare(id + "/bytes", scale.usage("sift") / n, "set-nx", set_nx, "bytes", goal);
  bench.report.compare(id + "/used-memory", used / n, "set-nx", set_nx, "bytes");
}

// Returns the share of the same number of absent ids that seem to be there.
double error_of(RedisLoad& load, const Bench& bench, const char* command, const char* key) {
  const Replies replies = load.run(batches(command, key, 10 * bench.million, bench.million));
  no_errors(replies);
  return static_cast<double>(replies.ones) / static_cast<double>(bench.million);
}

// RedisBloom takes 7.3 bytes for an id at 0.1 %, and errs at 1.03 % if 1 % is requested.
void bloom_memory(const Bench& bench, const char* error, std::optional<double> least_bytes_ratio) {
  Scale scale(bench);
  scale.load().call({"BF.RESERVE", "bf", error, "100"});
  no_errors(scale.load().run(batches("BF.MADD", "bf", 0, bench.million)));
  const std::string id = std::string("bf-grown/") + error;
  const double measured = error_of(scale.load(), bench, "BF.MEXISTS", "bf");
  bench.report.compare(id + "/error", measured, "stated", std::strtod(error, nullptr), "error_rate",
                       1);
  const double bytes = scale.usage("bf") / static_cast<double>(bench.million);
  if (least_bytes_ratio) {
    bench.report.compare(id + "/bytes", bytes, "redisbloom", 7.3, "bytes", least_bytes_ratio);
  } else {
    bench.report.compare(id + "/bytes", bytes, "set-nx", set_nx_bytes(bench), "bytes");
  }
}

// RedisBloom's filter refuses after 30,611 ids, or reaches 37 %.
void cuckoo_memory(const Bench& bench) {
  Scale scale(bench);
  const Replies added = scale.load().run(each(0, bench.million, [](Commands& to, std::uint64_t i) {
    to.add({"CF.ADD", "cf", Id(i)});
  }));
  no_errors(added);
  bench.report.compare("cf-default/refused", static_cast<double>(bench.million - added.ones) + 1,
                       "none", 1, "ids + 1", 1);
  bench.report.compare("cf-default/error", error_of(scale.load(), bench, "CF.MEXISTS", "cf"),
                       "stated", 0.001, "error_rate", 1);
  bench.report.compare("cf-default/bytes", scale.usage("cf") / static_cast<double>(bench.million),
                       "set-nx", set_nx_bytes(bench), "bytes");
}

void memory(const Bench& bench) {
  bench.report.head("Memory for an id, and error, with a million ids");
  const double set_nx = set_nx_bytes(bench);
  tally_memory(bench, set_nx);
  sift_memory(bench, "0.001", set_nx, 30);
  sift_memory(bench, "0.0001", set_nx, {});
  sift_memory(bench, "0.000001", set_nx, {});
  bloom_memory(bench, "0.01", {});
  bloom_memory(bench, "0.001", 2);
  cuckoo_memory(bench);
}

int run(int argc, char** argv) {
  std::string module, only, tsv_path;
  bool quick = false;
  std::size_t rounds = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--quick") {
      quick = true;
    } else if (word == "--only" && more) {
      only = argv[++i];
    } else if (word == "--rounds" && more) {
      rounds = std::strtoul(argv[++i], nullptr, 10);
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
    std::fprintf(stderr, "module_bench MODULE [--quick] [--only NAME] [--rounds N] [--tsv FILE]\n");
    return 2;
  }
  if (rounds == 0) rounds = quick ? 3 : 11;
  run_on(1);  // the servers are on 0
  std::ofstream tsv;
  if (!tsv_path.empty()) tsv.open(tsv_path);
  Report report(std::cout, tsv_path.empty() ? nullptr : &tsv);
  const Bench bench{{module, rounds, 0},
                    quick ? std::uint64_t{10'000} : 100'000,
                    quick ? std::uint64_t{50'000} : 1'000'000,
                    report};
  const auto wanted = [&](const char* name) { return only.empty() || only == name; };
  if (wanted("tally")) tally(bench);
  if (wanted("sift")) sift(bench);
  if (wanted("filters")) {
    filters(bench, true);
    filters(bench, false);
  }
  if (wanted("memory")) memory(bench);
  report.finish();
  return 0;
}

}  // namespace
}  // namespace semel::bench

int main(int argc, char** argv) { return semel::bench::run(argc, argv); }
