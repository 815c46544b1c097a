#include "bench/module/race.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>

#include "bench/peers/redis_server.h"

namespace semel::bench {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[200];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// A contender with its server.
class Runner {
 public:
  Runner(const Contender& contender, const Setting& setting)
      : contender_(contender),
        server_(setting.module, setting.server_processor),
        load_(server_.port()) {
    if (contender_.prepare) contender_.prepare(load_);
  }

  Timing run(std::size_t round) {
    const Commands commands = contender_.commands(round);
    const auto start = std::chrono::steady_clock::now();
    const double cpu = server_.cpu_seconds();
    const Replies replies = load_.run(commands);
    const double cpu_s = server_.cpu_seconds() - cpu;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    if (replies.errors > 0 || !contender_.right(replies)) {
      std::fprintf(stderr, "%s: not answered as it should be, in round %zu: %s\n",
                   contender_.name.c_str(), round, replies.first_error.c_str());
      std::exit(1);
    }
    const auto count = static_cast<double>(commands.size());
    return {cpu_s * 1e6 / count, wall.count() * 1e6 / count};
  }

 private:
  const Contender& contender_;
  RedisServer server_;
  RedisLoad load_;
};

double median_of(const std::vector<Timing>& rounds, double Timing::*field) {
  std::vector<double> values;
  for (const Timing& timing : rounds) values.push_back(timing.*field);
  return median(std::move(values));
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double Laps::cpu_us() const { return median_of(rounds, &Timing::cpu_us); }
double Laps::wall_us() const { return median_of(rounds, &Timing::wall_us); }

std::vector<Laps> race(const std::vector<Contender>& contenders, const Setting& setting) {
  std::vector<std::unique_ptr<Runner>> runners;
  std::vector<Laps> all;
  for (const Contender& contender : contenders) {
    runners.push_back(std::make_unique<Runner>(contender, setting));
    all.push_back({contender.name, {}});
  }
  for (std::size_t round = 0; round <= setting.rounds; ++round) {
    for (std::size_t turn = 0; turn < runners.size(); ++turn) {
      const std::size_t i = (round + turn) % runners.size();
      const Timing timing = runners[i]->run(round);
      if (round > 0) all[i].rounds.push_back(timing);
    }
  }
  return all;
}

Report::Report(std::ostream& table, std::ostream* tsv) : table_(table), tsv_(tsv) {
  if (tsv_ != nullptr) *tsv_ << "id\tours\tpeer\tpeer_value\tratio\tunit\tgoal\treached\n";
}

void Report::head(const std::string& title) { table_ << '\n' << title << '\n' << std::flush; }

void Report::times(const std::vector<Laps>& all) {
  table_ << formatted("  %-20s %9s %9s %12s\n", "", "CPU us", "us", "a second");
  for (const Laps& laps : all) {
    table_ << formatted("  %-20s %9.3f %9.3f %12.0f\n", laps.name.c_str(), laps.cpu_us(),
                        laps.wall_us(), 1e6 / laps.wall_us());
  }
}

void Report::compare(const std::string& id, const Laps& ours, const Laps& peer,
                     std::optional<double> goal) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.rounds.size(); ++i) {
    ratios.push_back(peer.rounds[i].cpu_us / ours.rounds[i].cpu_us);
  }
  row(id, ours.cpu_us(), peer.name, peer.cpu_us(), median(std::move(ratios)), "cpu_us", goal);
}

void Report::compare(const std::string& id, double ours, const std::string& peer, double theirs,
                     const char* unit, std::optional<double> goal) {
  row(id, ours, peer, theirs, theirs / ours, unit, goal);
}

void Report::row(const std::string& id, double ours, const std::string& peer, double theirs,
                 double ratio, const char* unit, std::optional<double> goal) {
  const bool reached = !goal || ratio >= *goal;
  goals_ += goal ? 1 : 0;
  reached_ += goal && reached ? 1 : 0;
  const std::string wanted = goal ? formatted("%.3g", *goal) : "-";
  const char* const verdict = !goal ? "-" : reached ? "reached" : "missed";
  table_ << formatted("  %-30s %9.4g  %-14s %9.4g %-12s ratio %6.2f  goal %4s  %s\n", id.c_str(),
                      ours, peer.c_str(), theirs, unit, ratio, wanted.c_str(), verdict);
  if (tsv_ != nullptr) {
    *tsv_ << id << '/' << peer
          << formatted("\t%.5g\t%s\t%.5g\t%.3f\t%s\t%s\t%s\n", ours, peer.c_str(), theirs, ratio,
                       unit, wanted.c_str(), verdict);
  }
  table_.flush();
}

void Report::finish() {
  table_ << '\n' << reached_ << " of " << goals_ << " goals reached\n" << std::flush;
}

}  // namespace semel::bench
