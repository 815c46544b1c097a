// semel_bench: runs the benchmarks of bench/micro. docs/benchmarks.md explains the output.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "bench/harness.h"

namespace semel::bench {
namespace {

constexpr char kUsage[] = "semel_bench [--quick] [--only SUBSTRING] [--tsv FILE] [--list]";

struct Options {
  bool quick = false;
  bool list = false;
  std::string only;
  std::string tsv;
};

int refuse(const std::string& why) {
  std::cerr << "semel_bench: " << why << "; allowed: " << kUsage << '\n';
  return 2;
}

// Returns nothing, after a message on standard error, if the arguments do not fit.
std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    std::string* value = argument == "--only"  ? &options.only
                         : argument == "--tsv" ? &options.tsv
                                               : nullptr;
    if (value != nullptr) {
      if (++i == argc || *argv[i] == '\0') return refuse(argument + " needs a value"), std::nullopt;
      *value = argv[i];
    } else if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--list") {
      options.list = true;
    } else {
      return refuse("unknown argument '" + argument + "'"), std::nullopt;
    }
  }
  return options;
}

int run(const Options& options) {
  std::vector<Benchmark> chosen;
  for (const Benchmark& benchmark : benchmarks()) {
    if (benchmark.name.find(options.only) != std::string::npos) chosen.push_back(benchmark);
  }
  if (chosen.empty()) return refuse("no benchmark has '" + options.only + "' in its name");
  if (options.list) {
    for (const Benchmark& benchmark : chosen) {
      std::printf("%-20s %s\n", benchmark.name.c_str(), benchmark.summary.c_str());
    }
    return 0;
  }

  std::ofstream tsv;
  if (!options.tsv.empty()) {
    tsv.open(options.tsv);
    if (!tsv) return refuse("cannot write '" + options.tsv + "'");
  }
  Session session(options.quick, std::cout, options.tsv.empty() ? nullptr : &tsv);
  for (const Benchmark& benchmark : chosen) {
    std::cout << "\n== " << benchmark.name << ": " << benchmark.summary << std::endl;
    benchmark.run(session);
  }
  if (!options.tsv.empty() && !tsv.flush()) {
    std::cerr << "semel_bench: writing '" << options.tsv << "' failed\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace semel::bench

int main(int argc, char** argv) {
  const auto options = semel::bench::parse(argc, argv);
  return options ? semel::bench::run(*options) : 2;
}
