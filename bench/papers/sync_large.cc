// Sync of ten million records in RocksDB: loading, the index and its memory, a sync of 1000
// differences, the checkpoint and reopening.
//
// sync_large DIRECTORY [RECORDS]: sequential records of 100 bytes, 10,000,000 unless said
// otherwise. DIRECTORY must not exist; it takes 2.5 GB and is removed at the end. Not part of `make
// figures`.
//
// Prints TSV. First data set: for each step wall seconds, CPU seconds of the process with RocksDB's
// threads, and records or differences per wall second. Second: a row for each fact. The two syncs
// are after 1000 updates, scattered over all records, at the responder: one straight after them,
// whose florets are stale, and one with florets brought up to date. Fails if a sync does not prove
// that it found all, if the ends are not equal then, or if an index is rebuilt at the reopening
// although its checkpoint is there.
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "bench/papers/sync_runs.h"
#include "semel/store/rocksdb_store.h"

namespace semel::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDifferences = 1000;

double process_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Prints how long the call took for this many records.
template <class Call>
void timed(const char* step, std::uint64_t records, Call call) {
  using Clock = std::chrono::steady_clock;
  const double cpu = process_cpu_seconds();
  const Clock::time_point start = Clock::now();
  call();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("%s\t%.3f\t%.3f\t%.0f\n", step, seconds, process_cpu_seconds() - cpu,
              static_cast<double>(records) / seconds);
  std::fflush(stdout);
}

std::uint64_t bytes_below(const fs::path& directory) {
  std::uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

struct Replica {
  std::unique_ptr<RocksStore> store;
  std::unique_ptr<IndexedStore> index;

  explicit Replica(const fs::path& directory)
      : store(checked(RocksStore::open(directory.string(), {}), "open")),
        index(checked(IndexedStore::open(*store, bench_secret(), {}), "index")) {}
};

void load(const fs::path& directory, std::uint64_t records) {
  constexpr std::uint64_t kBatch = 10'000;
  RocksStore::Settings settings;
  settings.create = true;
  const auto store = checked(RocksStore::open(directory.string(), settings), "open");
  std::vector<std::string> keys;
  for (std::uint64_t first = 0; first < records; first += kBatch) {
    keys.clear();
    for (std::uint64_t i = first; i < std::min(records, first + kBatch); ++i) {
      keys.push_back(key_text(KeyKind::sequential, i));
    }
    write_version(*store, keys, 0);
  }
  checked(store->position(), "flush");
}

void update_some(OrderedStore& store, std::uint64_t records, std::uint64_t version) {
  Random random(version);
  std::vector<std::string> keys;
  for (const Run& run : drawn_runs(records, kDifferences, 1, random)) {
    keys.push_back(key_text(KeyKind::sequential, run.first));
  }
  write_version(store, keys, version);
}

void print_fact(const char* fact, double value) { std::printf("%s\t%.10g\n", fact, value); }

void print_sync(const char* name, const SyncReport& report) {
  const std::string prefix = name;
  const auto all = static_cast<double>(report.bytes_sent + report.bytes_received);
  print_fact((prefix + ": bytes").c_str(), all);
  print_fact((prefix + ": without records").c_str(),
             all - static_cast<double>(report.payload_bytes));
  print_fact((prefix + ": predicted without records").c_str(), report.predicted.bytes.value);
  print_fact((prefix + ": round trips").c_str(), report.round_trips);
}

bool run(const fs::path& directory, std::uint64_t records) {
  const fs::path here = directory / "initiator", there = directory / "responder";
  fs::create_directories(directory);
  std::printf("step\tseconds\tcpu_seconds\tper_second\n");
  timed("load the store", records, [&] { load(here, records); });
  timed("copy its directory", records, [&] { fs::copy(here, there); });
  const std::uint64_t store_bytes = bytes_below(here);

  bool kept = true;
  std::array<Synced, 2> synced;
  std::uint64_t index_bytes = 0;
  Aggregate total;
  {
    Replica initiator(here), responder(there);
    timed("bulk load of the index", records, [&] { total = refresh(*initiator.index); });
    kept = total == refresh(*responder.index) && total.count == records;
    index_bytes = initiator.index->bytes();

    const auto sync_and_check = [&](const char* step, Synced& result) {
      timed(step, kDifferences, [&] {
        SyncSettings settings;
        settings.seed = records;
        result = run_sync(*initiator.index, *responder.index, settings);
      });
      kept = kept && result.report.proved && result.report.changed == kDifferences &&
             checked(initiator.index->view(), "view").trie().total() ==
                 checked(responder.index->view(), "view").trie().total();
    };
    update_some(*responder.store, records, 1);
    sync_and_check("sync, stale florets", synced[0]);
    timed("refresh of the florets", records, [&] {
      refresh(*initiator.index);
      refresh(*responder.index);
    });
    update_some(*responder.store, records, 2);
    refresh(*responder.index);
    sync_and_check("sync, fresh florets", synced[1]);
    timed("checkpoint", records, [&] { check(initiator.index->checkpoint(), "checkpoint"); });
    total = checked(initiator.index->view(), "view").trie().total();
  }
  const std::uint64_t checkpoint_bytes = fs::file_size(here / "SEMEL-INDEX");
  timed("reopening", records, [&] {
    const Replica again(here);
    kept = kept && again.index->opened() == IndexedStore::Opened::followed &&
           checked(again.index->view(), "view").trie().total() == total;
  });

  std::printf("\n\nfact\tvalue\n");
  print_fact("records", static_cast<double>(total.count));
  print_fact("bytes of keys and values", static_cast<double>(total.volume));
  print_fact("bytes of the directory", static_cast<double>(store_bytes));
  print_fact("bytes of the index in memory", static_cast<double>(index_bytes));
  print_fact("the same, percent of keys and values",
             100 * static_cast<double>(index_bytes) / static_cast<double>(total.volume));
  print_fact("bytes of the checkpoint", static_cast<double>(checkpoint_bytes));
  print_sync("stale florets", synced[0].report);
  print_sync("fresh florets", synced[1].report);
  fs::remove_all(directory);
  return kept;
}

}  // namespace
}  // namespace semel::bench

int main(int argc, char** argv) {
  if (argc < 2 || std::filesystem::exists(argv[1])) {
    std::fprintf(stderr, "usage: sync_large DIRECTORY [RECORDS]; DIRECTORY must not exist\n");
    return 2;
  }
  const auto records =
      semel::bench::records_of_arguments("sync_large DIRECTORY", argc - 1, argv + 1, 10'000'000);
  if (!records) return 2;
  return semel::bench::run(argv[1], *records) ? 0 : 1;
}
