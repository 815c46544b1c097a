// module_forks: what a BGSAVE costs a server that is written to, with and without huge pages.
//
//   module_forks MODULE [--gib N] [--rounds N] [--tsv FILE]
//
// Method    A server holds filters of 1 GiB, all pages of which are in use. A client sends one
//           write at a time, each with a new id, and its times are kept: at first without a BGSAVE,
//           then during one. The server and its child have one processor each. Copied bytes are the
//           server's own rdb_last_cow_size: memory that the child no longer shares.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
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

constexpr std::uint64_t kKeys = 8;
constexpr double kMebibyte = 1 << 20;

struct Structure {
  const char* name;
  const char* reserve;  // a command without its key and its capacity
  std::vector<std::string> after_key;
  const char* add;
  const char* fill;
  double bytes_of_an_id;
};

double field_of(const std::string& info, const std::string& name) {
  const std::size_t at = info.find('\n' + name + ':');
  return at == std::string::npos ? -1 : std::strtod(info.c_str() + at + name.size() + 2, nullptr);
}

std::string key_of(std::uint64_t number) { return std::string("k").append(std::to_string(number)); }

struct Times {
  std::vector<double> us;

  double quantile(double share) {
    std::sort(us.begin(), us.end());
    if (us.empty()) return 0;
    return us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))];
  }
};

class Writer {
 public:
  Writer(int port, const char* command) : load_(port, 1), command_(command) {}

  // Sends `count` writes.
  void write(std::uint64_t count, Times& times) {
    for (std::uint64_t i = 0; i < count; ++i, ++next_) {
      const std::string key = key_of(next_ % kKeys);
      const auto start = Clock::now();
      load_.call({command_, key, Id(next_)});
      times.us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
  }

 private:
  RedisLoad load_;
  const char* command_;
  std::uint64_t next_ = std::uint64_t{1} << 40;  // none that a key was filled with
};

void make(RedisLoad& load, const Structure& structure, double bytes) {
  const double ids = bytes / structure.bytes_of_an_id / static_cast<double>(kKeys);
  for (std::uint64_t k = 0; k < kKeys; ++k) {
    const std::string key = key_of(k);
    std::vector<std::string> words = {structure.reserve, key};
    words.insert(words.end(), structure.after_key.begin(), structure.after_key.end());
    words.push_back(std::to_string(static_cast<std::uint64_t>(ids)));
    Commands reserve;
    reserve.add(std::vector<std::string_view>(words.begin(), words.end()));
    Replies replies = load.run(reserve);
    // Four ids for each page.
    const auto pages = static_cast<std::uint64_t>(bytes / 4096.0 / static_cast<double>(kKeys));
    if (replies.errors == 0) replies = load.run(batches(structure.fill, key, 0, 4 * pages));
    if (replies.errors == 0) continue;
    std::fprintf(stderr, "module_forks: %s\n", replies.first_error.c_str());
    std::exit(1);
  }
}

struct Result {
  Times quiet, saving;
  double copied = 0, save_s = 0, huge = 0;
};

// Returns the bytes of huge pages that a process has.
double huge_page_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  double kilobytes = 0;
  for (std::string word; file >> word;) {
    if (word == "AnonHugePages:") file >> kilobytes;
  }
  return 1024 * kilobytes;
}

Result measure(const std::string& module, const Structure& structure, bool huge, double bytes) {
  const RedisServer server(module, 0, {"huge-pages", huge ? "yes" : "no"});
  RedisLoad load(server.port());
  make(load, structure, bytes);
  Writer writer(server.port(), structure.add);
  Result result;
  Times warm;
  writer.write(2000, warm);
  writer.write(50'000, result.quiet);
  result.huge = huge_page_bytes(server.pid());
  load.call({"BGSAVE"});
  const auto start = Clock::now();
  const auto saves = [&] {
    return field_of(load.call({"INFO", "persistence"}), "rdb_bgsave_in_progress") == 1;
  };
  while (saves()) writer.write(1000, result.saving);
  result.save_s = std::chrono::duration<double>(Clock::now() - start).count();
  result.copied = field_of(load.call({"INFO", "persistence"}), "rdb_last_cow_size");
  return result;
}

int run(int argc, char** argv) {
  std::string module, tsv_path;
  double gib = 1;
  std::size_t rounds = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--gib" && more) {
      gib = std::strtod(argv[++i], nullptr);
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
  if (module.empty() || !(gib > 0)) {
    std::fprintf(stderr, "module_forks MODULE [--gib N] [--rounds N] [--tsv FILE]\n");
    return 2;
  }
  run_on(1);  // the servers are on 0
  std::ofstream tsv;
  if (!tsv_path.empty()) {
    tsv.open(tsv_path);
    tsv << "id\thuge_mib\tcopied_mib\tp50_us\tp999_us\tworst_us\tquiet_p50_us\tquiet_p999_"
           "us\twrites\n";
  }
  const Structure structures[] = {
      {"BF.ADD", "BF.RESERVE", {"0.001"}, "BF.ADD", "BF.MADD", 1.87},
      {"SIFT.ADD", "SIFT.RESERVE", {"WINDOW", "1h", "CAPACITY"}, "SIFT.ADD", "SIFT.MADD", 6.0}};
  std::printf("%-10s %-5s %9s %9s %8s %8s %9s %10s %11s %9s %7s\n", "", "huge", "huge MiB",
              "copied", "p50 us", "p99.9", "worst", "quiet p50", "quiet p99.9", "writes", "save s");
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const Structure& structure : structures) {
      for (const bool huge : {false, true}) {
        Result r = measure(module, structure, huge, gib * 1024 * kMebibyte);
        const char* const pages = huge ? "yes" : "no";
        std::printf("%-10s %-5s %9.0f %9.0f %8.1f %8.1f %9.0f %10.1f %11.1f %9zu %7.1f\n",
                    structure.name, pages, r.huge / kMebibyte, r.copied / kMebibyte,
                    r.saving.quantile(0.5), r.saving.quantile(0.999), r.saving.quantile(1),
                    r.quiet.quantile(0.5), r.quiet.quantile(0.999), r.saving.us.size(), r.save_s);
        std::fflush(stdout);
        if (!tsv.is_open()) continue;
        tsv << structure.name << "/huge-pages-" << pages << '\t' << r.huge / kMebibyte << '\t'
            << r.copied / kMebibyte << '\t' << r.saving.quantile(0.5) << '\t'
            << r.saving.quantile(0.999) << '\t' << r.saving.quantile(1) << '\t'
            << r.quiet.quantile(0.5) << '\t' << r.quiet.quantile(0.999) << '\t'
            << r.saving.us.size() << '\n';
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace semel::bench

int main(int argc, char** argv) { return semel::bench::run(argc, argv); }
