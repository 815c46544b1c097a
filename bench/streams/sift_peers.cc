// semel sift beside sort -u, awk and a hash set, on one stream: time, memory, and wrong answers.
//
//   sift_peers SEMEL HASH_SET_LINES FOLDER [LINES [ROUNDS]]
//
// The stream has LINES lines of 80 bytes (20 million: 1.6 GB), half of them duplicates. Each
// program reads it from a file and writes to a file, ROUNDS times (3), in turns; the best time
// counts, so that a busy machine disturbs all alike. Needs 5 GB of disk and 8 GB of memory.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace {

struct Program {
  std::string name;
  std::string command;  // for the shell; $IN and $OUT are files
  double seconds = std::numeric_limits<double>::infinity();
  double cpu_seconds = 0;
  double megabytes = 0;
  std::string verdict = {};
};

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

void run(Program& program) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl("/bin/sh", "sh", "-c", ("exec " + program.command).c_str(), nullptr);
    std::_Exit(127);
  }
  int status = 0;
  rusage usage{};
  if (::wait4(pid, &status, 0, &usage) != pid || status != 0) {
    std::fprintf(stderr, "sift_peers: failed: %s\n", program.command.c_str());
    std::exit(1);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (elapsed.count() < program.seconds) {
    program.seconds = elapsed.count();
    program.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  program.megabytes = std::max(program.megabytes, static_cast<double>(usage.ru_maxrss) * 1024e-6);
}

// Returns how `out` differs from `right`, which has the first of each line in order.
std::string compare(const std::string& right, const std::string& out) {
  std::ifstream a(right), b(out);
  std::string wanted, got;
  std::uint64_t missing = 0;
  bool more = static_cast<bool>(std::getline(b, got));
  while (std::getline(a, wanted)) {
    if (more && got == wanted) {
      more = static_cast<bool>(std::getline(b, got));
    } else {
      ++missing;
    }
  }
  if (more) return "other lines";
  return missing == 0 ? "identical" : std::to_string(missing) + " dropped wrongly";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: sift_peers SEMEL HASH_SET_LINES FOLDER [LINES [ROUNDS]]\n");
    return 2;
  }
  const std::string semel = argv[1];
  const std::string folder = argv[3];
  const std::string lines = argc > 4 ? argv[4] : "20M";
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 3;
  const std::string in = folder + "/stream";
  const std::string right = folder + "/right";
  Program generate{"generate", semel + " generate -n " + lines + " -d 0.5 -b 80 -s 7 >" + in};
  run(generate);

  const auto sift = [&](const std::string& options) {
    return semel + " sift -q " + options + " <" + in + " >" + folder + "/out";
  };
  std::vector<Program> programs = {
      {"semel sift, 1 thread", sift("-t 1")},
      {"semel sift, 2 threads", sift("-t 2")},
      {"semel sift --exact, 1 thread", sift("-x -t 1")},
      {"semel sift --exact, 2 threads", sift("-x -t 2")},
      {"hash set", std::string(argv[2]) + " <" + in + " >" + folder + "/out"},
      {"awk '!seen[$0]++'", "awk '!seen[$0]++' " + in + " >" + right},
      {"sort -u", "env LC_ALL=C sort -u -o " + folder + "/out " + in},
  };
  const std::size_t awk = 5;
  run(programs[awk]);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      Program& program = programs[i];
      if (i == awk && round == 0) continue;  // it has run
      run(program);
      if (program.verdict.empty()) {
        program.verdict = i < awk ? compare(right, folder + "/out") : i == awk ? "-" : "sorted";
      }
    }
  }
  std::printf("%-30s %8s %8s %9s %9s %9s  %s\n", "program", "s", "cpu s", "MB", "x awk", "awk/MB",
              "output");
  for (const Program& program : programs) {
    std::printf("%-30s %8.2f %8.2f %9.1f %9.2f %9.1f  %s\n", program.name.c_str(), program.seconds,
                program.cpu_seconds, program.megabytes, programs[awk].seconds / program.seconds,
                programs[awk].megabytes / program.megabytes, program.verdict.c_str());
  }
  std::printf("two threads over one: %.2f, exact %.2f\n", programs[0].seconds / programs[1].seconds,
              programs[2].seconds / programs[3].seconds);
  for (const char* file : {"/stream", "/right", "/out"}) (void)std::remove((folder + file).c_str());
}
