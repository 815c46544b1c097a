// Race: workloads of one run, each on a redis-server of its own, measured in turns.
//
// Method    All servers run on one processor, the load on the other, and one server works at a
//           time. In each round every contender gets the same number of commands, and a different
//           one begins. The first round does not count. The ratio of a pair is taken in each round,
//           and the median of these ratios counts: noise in a round slows both down.
// Time      There are two times for a command: the CPU time of the server, which does not run while
//           another process has the processor, and the time that passed. On a quiet machine a busy
//           server needs as much of one as of the other. Ratios are of CPU time.
// TSV       The columns of semel_bench, and two more: goal (the least ratio) and reached.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "bench/peers/redis_load.h"

namespace semel::bench {

struct Contender {
  std::string name;
  std::function<void(RedisLoad&)> prepare = {};  // once, before the rounds
  std::function<Commands(std::size_t round)> commands;
  std::function<bool(const Replies&)> right;  // true if a round was answered correctly
};

struct Timing {
  double cpu_us;  // of the server, for a command
  double wall_us;
};

// The results of one contender: a timing for each round.
struct Laps {
  std::string name;
  std::vector<Timing> rounds;

  double cpu_us() const;  // the median
  double wall_us() const;
};

struct Setting {
  std::string module;
  std::size_t rounds;
  int server_processor;
};

// Returns the timings in the order of the contenders.
std::vector<Laps> race(const std::vector<Contender>& contenders, const Setting& setting);

class Report {
 public:
  Report(std::ostream& table, std::ostream* tsv);

  void head(const std::string& title);
  // Prints the time of each contender.
  void times(const std::vector<Laps>& all);
  // Compares the CPU times of a peer with ours, round by round: peer over ours.
  void compare(const std::string& id, const Laps& ours, const Laps& peer,
               std::optional<double> goal = {});
  // Compares two numbers, of which less is better.
  void compare(const std::string& id, double ours, const std::string& peer, double theirs,
               const char* unit, std::optional<double> goal = {});

  void finish();  // prints how many goals were reached

 private:
  void row(const std::string& id, double ours, const std::string& peer, double theirs, double ratio,
           const char* unit, std::optional<double> goal);

  std::ostream& table_;
  std::ostream* tsv_;  // may be null
  std::size_t goals_ = 0;
  std::size_t reached_ = 0;
};

double median(std::vector<double> values);

}  // namespace semel::bench
