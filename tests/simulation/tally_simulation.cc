// tally_simulation: runs many seeds of tally_world.h, and prints the results.
//
//   --seeds N      how many seeds (1000)
//   --first N      the first of them (1)
//   --sites LIST   numbers of sites, taken in turn (2,3,5)
//   --threads N    seeds at the same time (1)
//   --fault NAME   one of kFaultNames (tally_faults.h): ends at the first seed that shows it
//   --worlds LIST  features (tally_weather.h) that a seed may choose from, or none (all)
//   --always LIST  those that every seed has (none)
//   --trace        prints all that happens, in one thread
//
// The exit status is 0 if all seeds held, or if the fault was found.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/simulation/tally_world.h"

namespace semel::simulation {
namespace {

struct Options {
  std::uint64_t seeds = 1000;
  std::uint64_t first = 1;
  std::vector<int> sites = {2, 3, 5};
  std::uint64_t threads = 1;
  TallyFault fault = TallyFault::none;
  Features features = Features::all();
  Features always = Features::none();
  bool trace = false;
};

struct Tally {
  std::uint64_t seeds = 0;
  std::uint64_t lost = 0, doubled = 0, other = 0;  // numbers of seeds
  TallyCounts counts;
};

[[noreturn]] void refuse(std::string_view what) {
  std::cerr << "tally_simulation: " << what << "\n";
  std::exit(2);
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) {
    refuse("not a number: " + std::string(text));
  }
  return value;
}

std::vector<int> numbers(std::string_view text) {
  std::vector<int> all;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    all.push_back(static_cast<int>(std::min<std::uint64_t>(number(text.substr(0, comma)), 64)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (all.empty()) refuse("no number of sites");
  return all;
}

Features features_of(std::string_view text) {
  Features features = Features::none();
  while (!text.empty() && text != "none") {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto at = std::find(kFeatureNames.begin(), kFeatureNames.end(), text.substr(0, comma));
    if (at == kFeatureNames.end()) refuse("no such world: " + std::string(text.substr(0, comma)));
    features.set(static_cast<Feature>(at - kFeatureNames.begin()));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return features;
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--trace") {
      options.trace = true;
      continue;
    }
    if (i + 1 == argc) refuse("unknown, or without a value: " + std::string(name));
    const std::string_view value = argv[++i];
    if (name == "--seeds") {
      options.seeds = number(value);
    } else if (name == "--first") {
      options.first = number(value);
    } else if (name == "--sites") {
      options.sites = numbers(value);
    } else if (name == "--threads") {
      options.threads = number(value);
    } else if (name == "--fault") {
      const auto at = std::find(kFaultNames.begin(), kFaultNames.end(), value);
      if (at == kFaultNames.end()) refuse("no such fault");
      options.fault = static_cast<TallyFault>(at - kFaultNames.begin());
    } else if (name == "--worlds") {
      options.features = features_of(value);
    } else if (name == "--always") {
      options.always = features_of(value);
    } else {
      refuse("no such option: " + std::string(name));
    }
  }
  return options;
}

thread_local TallyPlan running;

std::string names_of(const Features& features) {
  std::string names;
  for (std::size_t i = 0; i < kFeatureNames.size(); ++i) {
    if (!features.has(static_cast<Feature>(i))) continue;
    names.append(names.empty() ? "" : ",").append(kFeatureNames[i]);
  }
  return names.empty() ? "none" : names;
}

std::string command_of(const TallyPlan& plan) {
  std::string command = "tally_simulation --first " + std::to_string(plan.seed) +
                        " --seeds 1 --sites " + std::to_string(plan.sites);
  if (plan.fault != TallyFault::none) {
    command.append(" --fault ").append(kFaultNames[static_cast<std::size_t>(plan.fault)]);
  }
  if (plan.features != Features::all()) command += " --worlds " + names_of(plan.features);
  if (plan.always != Features::none()) command += " --always " + names_of(plan.always);
  return command + " --trace";
}

// A failed assertion of the table ends the program. This prints the seed.
extern "C" void tell_seed(int) {
  std::fprintf(stderr, "in the run of: %s\n", command_of(running).c_str());
}

class Runs {
 public:
  explicit Runs(const Options& options) : options_(options), next_(options.first) {}

  void work() {
    const std::uint64_t end = options_.first + options_.seeds;
    for (std::uint64_t seed = next_++; seed < end && !found_; seed = next_++) {
      running = {seed, options_.sites[seed % options_.sites.size()], options_.fault,
                 options_.features, options_.always};
      note(running, simulate(running, options_.trace ? &std::cout : nullptr));
    }
  }

  bool failed() const { return failures_ > 0; }

  void print() const {
    print_outcomes();
    print_worlds();
  }

 private:
  static constexpr int kMostShown = 10;

  void print_outcomes() const {
    std::printf("%5s %8s %10s %8s %9s %8s %8s %9s %8s %10s %6s %7s %6s %14s\n", "sites", "seeds",
                "operations", "retries", "messages", "syncs", "crashes", "admitted", "retired",
                "cross-site", "lost", "double", "other", "plain shards");
    for (const auto& [sites, tally] : tallies_) {
      const TallyCounts& counts = tally.counts;
      const double over =
          counts.plain_distinct == 0
              ? 0
              : 100.0 * static_cast<double>(counts.plain_taken - counts.plain_distinct) /
                    static_cast<double>(counts.plain_distinct);
      std::printf("%5d %8ju %10ju %8ju %9ju %8ju %8ju %9ju %8ju %10ju %6ju %7ju %6ju %+12.2f %%\n",
                  sites, std::uintmax_t{tally.seeds}, std::uintmax_t{counts.operations},
                  std::uintmax_t{counts.retries}, std::uintmax_t{counts.messages},
                  std::uintmax_t{counts.syncs}, std::uintmax_t{counts.crashes},
                  std::uintmax_t{counts.admitted}, std::uintmax_t{counts.retired},
                  std::uintmax_t{counts.repeated}, std::uintmax_t{tally.lost},
                  std::uintmax_t{tally.doubled}, std::uintmax_t{tally.other}, over);
    }
  }

  // Prints the counts of the worlds that a seed chooses.
  void print_worlds() const {
    std::printf("%5s %8s %9s %9s %9s %9s %9s %9s %14s %8s %6s %9s %9s\n", "sites", "batches",
                "takeovers", "too late", "full", "stale", "overflows", "io errors",
                "retired copies", "restored", "twins", "strangers", "found out");
    for (const auto& [sites, tally] : tallies_) {
      const TallyCounts& counts = tally.counts;
      std::printf("%5d %8ju %9ju %9ju %9ju %9ju %9ju %9ju %14ju %8ju %6ju %9ju %9ju\n", sites,
                  std::uintmax_t{counts.batches}, std::uintmax_t{counts.standbys},
                  std::uintmax_t{counts.late}, std::uintmax_t{counts.full},
                  std::uintmax_t{counts.stale}, std::uintmax_t{counts.overflows},
                  std::uintmax_t{counts.io_errors}, std::uintmax_t{counts.retired_copies},
                  std::uintmax_t{counts.restored}, std::uintmax_t{counts.twins},
                  std::uintmax_t{counts.strangers}, std::uintmax_t{counts.found_out});
    }
  }

  void note(const TallyPlan& plan, const TallyOutcome& outcome) {
    const std::lock_guard lock(mutex_);
    Tally& tally = tallies_[plan.sites];
    ++tally.seeds;
    tally.counts.add(outcome.counts);
    if (!outcome.violation) return;
    const Violation& violation = *outcome.violation;
    tally.lost += violation.kind == Violation::Kind::lost ? 1 : 0;
    tally.doubled += violation.kind == Violation::Kind::doubled ? 1 : 0;
    tally.other += violation.kind == Violation::Kind::other ? 1 : 0;
    found_ = options_.fault != TallyFault::none;
    if (++failures_ > kMostShown) return;
    std::printf("seed %ju: %s\n  %s\n", std::uintmax_t{plan.seed}, violation.text.c_str(),
                command_of(plan).c_str());
    std::fflush(stdout);
  }

  Options options_;
  std::atomic<std::uint64_t> next_;
  std::atomic<bool> found_ = false;
  std::mutex mutex_;  // guards everything below
  std::map<int, Tally> tallies_;
  int failures_ = 0;
};

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  std::signal(SIGABRT, tell_seed);
  Runs runs(options);
  std::vector<std::thread> threads;
  const std::uint64_t count = options.trace ? 1 : options.threads;
  for (std::uint64_t i = 1; i < count; ++i) threads.emplace_back([&] { runs.work(); });
  runs.work();
  for (std::thread& thread : threads) thread.join();
  runs.print();
  const bool fails = options.fault == TallyFault::none;
  return runs.failed() == fails ? 1 : 0;
}

}  // namespace
}  // namespace semel::simulation

int main(int argc, char** argv) { return semel::simulation::main(argc, argv); }
