// 'Nye's trie and floret', figure 12: the cost of an index for the writers.
//
// Prints TSV, a data set for each workload: microseconds for a write of RocksDB itself, of
// RocksStore alone, and with an IndexedStore that follows; and the seconds that the next view takes
// to read what was written. Records of 256 bytes with keys of 13 are overwritten in stores that
// hold them all, one a write, without waiting for the disk. Times are CPU times of the writing
// thread, which marks in the index; they take turns of 100,000 writes, and the median of the ratios
// counts. Needs about 4 GB in the temporary directory.
// Ends with status 1 if a write or a view fails.
#include <rocksdb/db.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "semel/core/assert.h"
#include "semel/core/internal/random.h"
#include "semel/index/indexed_store.h"
#include "semel/store/rocksdb_store.h"

namespace semel::bench {
namespace {

constexpr std::size_t kKeySize = 13;
constexpr std::size_t kRecordSize = 256;

struct Workload {
  const char* name;
  std::uint64_t records;
  bool in_order;
  int rounds;
};
constexpr std::array kWorkloads = {
    Workload{"sequential keys", 100'000, true, 25}, Workload{"random keys", 100'000, false, 25},
    Workload{"sequential keys", 1'000'000, true, 3}, Workload{"random keys", 1'000'000, false, 3}};
// Contenders take turns after this many writes, so that other load of the machine meets them all.
constexpr std::uint64_t kTurn = 100'000;

double thread_seconds() {
  timespec now{};
  SEMEL_ASSERT(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string key_of(std::uint64_t number) {
  std::string key = std::to_string(1'000'000'000'000 + number);
  SEMEL_ASSERT(key.size() == kKeySize);
  return key;
}

struct Contender {
  const char* name;
  std::unique_ptr<RocksStore> store = {};
  std::unique_ptr<IndexedStore> index = {};
  bool raw = false;
  std::vector<double> write_us = {};
  std::vector<double> view_s = {};

  void open(const std::string& directory, bool indexed) {
    auto opened = RocksStore::open(directory, {.create = true});
    SEMEL_ASSERT(opened);
    store = *std::move(opened);
    if (!indexed) return;
    auto made = IndexedStore::open(*store, Secret::random(), {});
    SEMEL_ASSERT(made);
    index = *std::move(made);
  }

  bool write(const std::string& key, const std::string& value) const {
    if (raw) return store->raw().Put({}, key, value).ok();
    const RecordWrite one{key, value};
    return store->write({&one, 1}).has_value();
  }

  // Overwrites as many records as a turn has.
  bool turn(const Workload& workload, std::uint64_t first, std::uint64_t seed) {
    Random random(seed);
    std::string value(kRecordSize - kKeySize, '\0');
    for (char& byte : value) byte = static_cast<char>(random());
    bool good = true;
    const double start = thread_seconds();
    for (std::uint64_t n = first; n < first + kTurn; ++n) {
      const std::uint64_t number = workload.in_order ? n : random.below(workload.records);
      value[n % value.size()] = static_cast<char>(number);
      good = write(key_of(number), value) && good;
    }
    write_us.push_back(1e6 * (thread_seconds() - start) / static_cast<double>(kTurn));
    return good;
  }
  bool view() {
    if (index == nullptr) return true;
    const double before = thread_seconds();
    const bool good = index->view().has_value();
    view_s.push_back(thread_seconds() - before);
    return good;
  }
};

// Returns how much longer these took than `alone`: the median over the turns.
double overhead(const std::vector<double>& these, const std::vector<double>& alone) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < these.size(); ++i) ratios.push_back(these[i] / alone[i]);
  return 100 * (median(std::move(ratios)) - 1);
}

bool print(const Workload& workload, const std::filesystem::path& scratch) {
  std::array<Contender, 3> contenders = {Contender{"RocksDB"}, Contender{"RocksStore"},
                                         Contender{"with its index"}};
  contenders[0].raw = true;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].open(scratch / std::to_string(i), i == 2);
  }
  bool good = true;
  std::uint64_t seed = 0;
  for (int round = 0; round <= workload.rounds; ++round) {
    Workload now = workload;
    now.in_order = workload.in_order || round == 0;  // the first round makes the records
    for (std::uint64_t first = 0; first < workload.records; first += kTurn) {
      ++seed;
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        good = contenders[(i + seed) % contenders.size()].turn(now, first, seed) && good;
      }
    }
    for (Contender& contender : contenders) {
      good = contender.view() && good;
      if (round == 0) contender.write_us.clear();
    }
  }
  std::printf("# %s, %llu records\nstore\twrite_us\toverhead\tview_s\n", workload.name,
              static_cast<unsigned long long>(workload.records));
  for (const Contender& contender : contenders) {
    std::printf("%s\t%.3f\t%.1f %%\t%.3f\n", contender.name, median(contender.write_us),
                overhead(contender.write_us, contenders[0].write_us),
                contender.view_s.empty() ? 0 : median(contender.view_s));
  }
  std::printf("\n\n");
  std::fflush(stdout);
  return good;
}

int print_all() {
  std::printf(
      "# paper: 21 %% slower with Nye's trie, 64 %% with a hash trie (Berkeley DB, 100,000 "
      "records,\n"
      "#   sequential keys, non-durable writes).\n"
      "# ours: see docs/papers.md.\n");
  std::string scratch = std::filesystem::temp_directory_path() / "semel-bench-XXXXXX";
  SEMEL_ASSERT(::mkdtemp(scratch.data()) != nullptr);
  bool good = true;
  for (const Workload& workload : kWorkloads) {
    good = print(workload, scratch) && good;
    for (const auto& entry : std::filesystem::directory_iterator(scratch)) {
      std::filesystem::remove_all(entry);
    }
  }
  std::filesystem::remove_all(scratch);
  if (!good) std::fputs("nye_write_overhead: a write or a view failed\n", stderr);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all(); }
