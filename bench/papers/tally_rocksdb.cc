// A durable table beside a read-modify-write with a stored id for each operation, both in RocksDB.
//
// Prints TSV, a data set for each size of a batch: operations a second as the caller sees them, and
// by the CPU time of the process with the threads of RocksDB; bytes that were written for an
// operation; and how much slower the peer is. A million counters with names of 16 bytes; opaque ids
// of 16 bytes, of which 2 % come again; both forget ids after 10 s and sync each second. The peer
// is bench/peers/stored_id.h. They take turns, and each turn ends when RocksDB has flushed and
// compacted what it has to; that counts in CPU time and bytes. The medians of the turns are
// printed. Needs about 1 GB in the temporary directory.
// Ends with status 1 if one of them counted wrong.
#include <rocksdb/db.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/keys.h"
#include "bench/peers/stored_id.h"
#include "semel/core/assert.h"
#include "semel/core/internal/random.h"
#include "semel/store/rocksdb_store.h"
#include "semel/tally/store/tally_directory.h"

namespace semel::bench {
namespace {

using tally::Addition;
using tally::Answer;
using tally::OperationId;
using tally::Outcome;
using tally::TallyDirectory;
using tally::TallyStore;

constexpr std::uint64_t kCounters = 1'000'000;
constexpr std::uint64_t kTurn = 250'000;  // operations; in the first turn kCounters
constexpr int kTurns = 5;
constexpr TimeMs kWindowMs = 10'000;
constexpr double kRepeated = 0.02;
constexpr std::uint64_t kRecent = 10'000;  // ids, one of which comes again

double seconds(clockid_t clock) {
  timespec now{};
  SEMEL_ASSERT(::clock_gettime(clock, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Returns the bytes that the process has handed to the system to be written.
double bytes_written() {
  std::ifstream io("/proc/self/io");
  for (std::string name, value; io >> name >> value;) {
    if (name == "wchar:") return std::stod(value);
  }
  return 0;
}

void settle(rocksdb::DB& db, const std::vector<rocksdb::ColumnFamilyHandle*>& families) {
  SEMEL_ASSERT(db.Flush({}, families).ok());
  const auto busy = [&] {
    return std::any_of(families.begin(), families.end(), [&](auto* family) {
      std::uint64_t running = 0, pending = 0;
      SEMEL_ASSERT(db.GetIntProperty(family, "rocksdb.num-running-compactions", &running));
      SEMEL_ASSERT(db.GetIntProperty(family, "rocksdb.compaction-pending", &pending));
      return running + pending > 0;
    });
  };
  while (busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

using Operation = StoredIds::Addition;

class Contender {
 public:
  explicit Contender(const char* called) : name(called) {}
  virtual ~Contender() = default;
  virtual std::uint64_t add(std::span<const Operation> batch) = 0;  // how many counted
  virtual void settle() = 0;
  virtual std::int64_t sum() = 0;

  const char* name;
  std::uint64_t applied = 0;
  std::vector<double> per_second, per_cpu_second, bytes;

  void turn(std::span<const Operation> operations, std::size_t batch) {
    const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), written = bytes_written();
    const double start = seconds(CLOCK_MONOTONIC);
    const auto count = static_cast<double>(operations.size());
    for (; !operations.empty();
         operations = operations.subspan(std::min(batch, operations.size()))) {
      applied += add(operations.first(std::min(batch, operations.size())));
    }
    per_second.push_back(count / (seconds(CLOCK_MONOTONIC) - start));
    settle();
    per_cpu_second.push_back(count / (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu));
    bytes.push_back((bytes_written() - written) / count);
  }
};

class Ours final : public Contender {
 public:
  explicit Ours(const std::string& directory) : Contender("TallyDirectory") {
    TallyStore::Settings settings;
    settings.recognition = {.window_ms = kWindowMs, .fpr = 1e-6, .ids = 1 << 23};
    auto opened = TallyDirectory::open(directory, settings);
    SEMEL_ASSERT(opened);
    directory_ = *std::move(opened);
  }
  std::uint64_t add(std::span<const Operation> batch) override {
    additions_.clear();
    for (const Operation& operation : batch) {
      additions_.push_back({operation.counter.view(), operation.delta,
                            OperationId::opaque(digest_of(operation.id))});
    }
    answers_.resize(batch.size());
    SEMEL_ASSERT(directory_->table().add(additions_, answers_, directory_->now_ms()));
    return static_cast<std::uint64_t>(
        std::count_if(answers_.begin(), answers_.end(),
                      [](const Answer& answer) { return answer.outcome == Outcome::applied; }));
  }
  void settle() override {
    rocksdb::DB& db = directory_->store().raw();
    bench::settle(db, {db.DefaultColumnFamily()});
  }
  std::int64_t sum() override {
    int128 sum = 0;
    SEMEL_ASSERT(directory_->table().scan({}, [&](std::string_view, int128 value) {
      sum += value;
      return true;
    }));
    return static_cast<std::int64_t>(sum);
  }

 private:
  std::unique_ptr<TallyDirectory> directory_;
  std::vector<Addition> additions_;
  std::vector<Answer> answers_;
};

class Peer final : public Contender {
 public:
  explicit Peer(const std::string& directory)
      : Contender("stored ids"), stored_(directory, kWindowMs) {}
  std::uint64_t add(std::span<const Operation> batch) override { return stored_.add(batch); }
  void settle() override { bench::settle(stored_.raw(), stored_.families()); }
  std::int64_t sum() override { return stored_.sum(); }

 private:
  StoredIds stored_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<Operation> operations_of(int turn) {
  Random random(static_cast<std::uint64_t>(turn) + 1);
  std::vector<Operation> operations(turn == 0 ? kCounters : kTurn);
  const std::uint64_t first = static_cast<std::uint64_t>(turn) << 32;
  for (std::uint64_t i = 0; i < operations.size(); ++i) {
    const bool repeated = i > 0 && random.unit() < kRepeated;
    operations[i] = repeated ? operations[i - 1 - random.below(std::min(i, kRecent))]
                             : Operation{key_of(random.below(kCounters)), 1, key_of(first + i)};
  }
  return operations;
}

bool print(std::size_t batch, const std::filesystem::path& scratch) {
  std::array<std::unique_ptr<Contender>, 2> contenders = {std::make_unique<Ours>(scratch / "ours"),
                                                          std::make_unique<Peer>(scratch / "peer")};
  for (int turn = 0; turn <= kTurns; ++turn) {
    const std::vector<Operation> operations = operations_of(turn);
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      contenders[(static_cast<std::size_t>(turn) + i) % 2]->turn(operations, batch);
    }
    if (turn > 0) continue;  // makes the counters
    for (auto& contender : contenders) {
      contender->per_second.clear();
      contender->per_cpu_second.clear();
      contender->bytes.clear();
    }
  }
  std::printf("# batches of %zu\nstore\tper_second\tper_cpu_second\tbytes\tratio\tcpu_ratio\n",
              batch);
  bool good = true;
  const Contender& ours = *contenders.front();
  for (const auto& contender : contenders) {
    std::printf("%s\t%.0f\t%.0f\t%.1f\t%.2f\t%.2f\n", contender->name,
                median(contender->per_second), median(contender->per_cpu_second),
                median(contender->bytes), median(ours.per_second) / median(contender->per_second),
                median(ours.per_cpu_second) / median(contender->per_cpu_second));
    good = good && contender->sum() == static_cast<std::int64_t>(contender->applied);
  }
  // New ids that ours took for retries: one in a million.
  const std::uint64_t exact = contenders[1]->applied;
  good = good && ours.applied <= exact && exact - ours.applied < 20 + exact / 100'000;
  std::printf("\n\n");
  std::fflush(stdout);
  return good;
}

int print_all() {
  std::string scratch = std::filesystem::temp_directory_path() / "semel-bench-XXXXXX";
  SEMEL_ASSERT(::mkdtemp(scratch.data()) != nullptr);
  bool good = true;
  for (const std::size_t batch : {50, 1000}) {
    good = print(batch, scratch) && good;
    for (const auto& entry : std::filesystem::directory_iterator(scratch)) {
      std::filesystem::remove_all(entry);
    }
  }
  std::filesystem::remove_all(scratch);
  if (!good) std::fputs("tally_rocksdb: operations were not counted once\n", stderr);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all(); }
