// tally_child DURABILITY DIRECTORY SEED FIRST...: serves the clients of tally_load.h until it is
// killed, each from the step FIRST on.
//
// Prints `.` when the table is open, and the letter of a client (a, b, ...) when one of its steps
// has been answered. Meanwhile it also sums, checkpoints and flushes: it prints `<` at the
// beginning and `>` at the end.
#include <rocksdb/db.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "semel/core/assert.h"
#include "semel/core/internal/random.h"
#include "semel/store/rocksdb_store.h"
#include "tests/crash/tally_load.h"

namespace semel::crash {
namespace {

void say(char letter) { SEMEL_ASSERT(::write(STDOUT_FILENO, &letter, 1) == 1); }

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "tally_child: %s: %s\n", what, why);
  std::_Exit(1);
}

template <class T>
void require(const Result<T>& result, const char* what) {
  if (!result) fail(what, result.error().message().c_str());
}

[[noreturn]] void be_client(tally::TallyDirectory& directory, std::uint64_t seed,
                            std::uint64_t client, std::uint64_t first) {
  for (std::uint64_t number = first;; ++number) {
    const Result<Sent> sent =
        send(step(seed, client, number), directory.table(), directory.now_ms());
    require(sent, "step");
    // Only of the first it is not known whether it was counted before.
    if (*sent == Sent::wrong || (*sent == Sent::known && number != first)) {
      fail("step", "a wrong answer");
    }
    say(static_cast<char>('a' + client));
  }
}

[[noreturn]] void keep_house(tally::TallyDirectory& directory, std::uint64_t seed) {
  rocksdb::DB& raw = directory.store().raw();
  for (Random random(seed);;) {
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(4000)));
    say('<');
    switch (random.below(8)) {
      case 0:
        SEMEL_ASSERT(raw.Flush({}).ok());
        break;
      case 1:
        SEMEL_ASSERT(raw.CompactRange({}, nullptr, nullptr).ok());
        break;
      case 2:
      case 3:
        require(directory.table().checkpoint(), "checkpoint");
        break;
      default:
        require(directory.table().sum({}), "sum");
    }
    say('>');
  }
}

[[noreturn]] void serve(tally::Durability durability, const std::string& path, std::uint64_t seed,
                        const std::vector<std::uint64_t>& first) {
  const auto directory = tally::TallyDirectory::open(path, tally_settings(durability));
  require(directory, "open");
  say('.');
  std::vector<std::thread> clients;
  for (std::uint64_t client = 0; client < first.size(); ++client) {
    clients.emplace_back([&, client] { be_client(**directory, seed, client, first[client]); });
  }
  keep_house(**directory, seed);
}

}  // namespace
}  // namespace semel::crash

int main(int argc, char** argv) {
  constexpr int kBeforeFirst = 4;
  if (argc != kBeforeFirst + static_cast<int>(semel::crash::kClients)) {
    std::fputs("tally_child: needs a durability (0, 1, 2), a directory, a seed and first steps\n",
               stderr);
    return 2;
  }
  std::vector<std::uint64_t> first;
  for (int i = kBeforeFirst; i < argc; ++i) first.push_back(std::strtoull(argv[i], nullptr, 10));
  const auto durability = static_cast<semel::tally::Durability>(std::strtoul(argv[1], nullptr, 10));
  semel::crash::serve(durability, argv[2], std::strtoull(argv[3], nullptr, 10), first);
}
