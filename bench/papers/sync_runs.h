// Shared by the programs about sync: records of 100 bytes, two replicas of them, ways to make the
// replicas differ, and a sync without a network.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/keys.h"
#include "semel/core/assert.h"
#include "semel/core/internal/random.h"
#include "semel/index/indexed_store.h"
#include "semel/store/memory_store.h"
#include "semel/sync/responder.h"

namespace semel::bench {

inline constexpr std::size_t kRecordBytes = 100;  // key and value, as in the paper

enum class KeyKind : std::uint8_t { random, sequential };
inline constexpr std::array<const char*, 2> kKeyKindNames = {"random", "sequential"};

// 16 bytes each. The random ones are in no order.
inline std::string key_text(KeyKind kind, std::uint64_t number) {
  if (kind == KeyKind::random) return std::string(key_of(number).view());
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "key%013llu", static_cast<unsigned long long>(number));
  return text.data();
}

// Returns the value that makes a record of 100 bytes: random bytes, different for each version.
inline std::string value_for(std::string_view key, std::uint64_t version) {
  std::string value(kRecordBytes - key.size(), '\0');
  Random random(digest(key, version).lo);
  for (std::size_t at = 0; at < value.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t bytes = random();
    std::memcpy(&value[at], &bytes, std::min(sizeof bytes, value.size() - at));
  }
  return value;
}

// Reads the number of records from the argument of a program; `usual` if there is none. Returns
// nullopt, and complains on stderr, for anything else.
inline std::optional<std::uint64_t> records_of_arguments(const char* program, int argc, char** argv,
                                                         std::uint64_t usual) {
  constexpr std::uint64_t kStep = 1000, kMost = 100'000'000;
  if (argc == 1) return usual;
  char* end = nullptr;
  const std::uint64_t records = std::strtoull(argv[1], &end, 10);
  if (argc == 2 && *end == '\0' && records % kStep == 0 && records > 0 && records <= kMost) {
    return records;
  }
  std::fprintf(stderr, "usage: %s [RECORDS]; allowed: multiples of %llu up to %llu\n", program,
               static_cast<unsigned long long>(kStep), static_cast<unsigned long long>(kMost));
  return std::nullopt;
}

[[noreturn]] inline void give_up(const char* what, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", what, error.message().c_str());
  std::exit(2);
}
inline void check(const Result<void>& result, const char* what) {
  if (!result) give_up(what, result.error());
}
template <class T>
T checked(Result<T> result, const char* what) {
  if (!result) give_up(what, result.error());
  return std::move(*result);
}

// Gives the keys their values of this version, or removes them.
inline void write_version(OrderedStore& store, std::span<const std::string> keys,
                          std::optional<std::uint64_t> version) {
  constexpr std::size_t kBatch = 1000;
  while (!keys.empty()) {
    const std::span<const std::string> some = keys.first(std::min(kBatch, keys.size()));
    std::vector<std::string> values;
    if (version) {
      for (const std::string& key : some) values.push_back(value_for(key, *version));
    }
    std::vector<RecordWrite> writes;
    for (std::size_t i = 0; i < some.size(); ++i) {
      writes.push_back(version ? RecordWrite{some[i], values[i]}
                               : RecordWrite{some[i], std::nullopt});
    }
    check(store.write(writes), "write");
    keys = keys.subspan(some.size());
  }
}

// Brings the index and its florets up to date, as an owner does who syncs now and then.
inline Aggregate refresh(IndexedStore& index) {
  const IndexedStore::View view = checked(index.view(), "view");
  checked(index.floret(view, KeyRange::all(), IndexedStore::Fresh::exact), "floret");
  return view.trie().total();
}

inline Secret bench_secret() {
  std::array<std::uint8_t, Secret::kSize> bytes;
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return Secret(bytes);
}

// Two stores in memory with the same records.
class Replicas {
 public:
  Replicas(KeyKind kind, std::uint64_t records) : kind_(kind) {
    keys_.reserve(records);
    for (std::uint64_t i = 0; i < records; ++i) keys_.push_back(key_text(kind, i));
    std::ranges::sort(keys_);
    for (Replica* replica : {&initiator_, &responder_}) {
      write_version(replica->store, keys_, 0);
      replica->index = checked(IndexedStore::open(replica->store, bench_secret(), {}), "index");
      semel::bench::refresh(*replica->index);
    }
  }

  KeyKind kind() const { return kind_; }
  const std::vector<std::string>& keys() const { return keys_; }  // in order
  IndexedStore& initiator() { return *initiator_.index; }
  IndexedStore& responder() { return *responder_.index; }

  // Returns true if both hold the same now.
  bool refresh() {
    const Aggregate here = semel::bench::refresh(*initiator_.index);
    return here == semel::bench::refresh(*responder_.index);
  }

 private:
  struct Replica {
    MemoryStore store;
    std::unique_ptr<IndexedStore> index;
  };

  KeyKind kind_;
  std::vector<std::string> keys_;
  Replica initiator_;
  Replica responder_;
};

// Runs of neighbours among `records` places, `count` places together, drawn at random: the first
// place of each run and its length. Where a run would go beyond the last place, it goes on at the
// first.
struct Run {
  std::uint64_t first;
  std::uint64_t length;
};
inline std::vector<Run> drawn_runs(std::uint64_t records, std::uint64_t count, std::uint64_t length,
                                   Random& random) {
  SEMEL_ASSERT(count <= records && records % length == 0);
  std::vector<std::uint64_t> blocks(records / length);
  std::iota(blocks.begin(), blocks.end(), std::uint64_t{0});
  const std::uint64_t shift = random.below(length);
  std::vector<Run> runs;
  for (std::uint64_t left = count; left > 0; left -= runs.back().length) {
    std::swap(blocks[runs.size()], blocks[runs.size() + random.below(blocks.size() - runs.size())]);
    runs.push_back({blocks[runs.size()] * length + shift, std::min(length, left)});
  }
  return runs;
}

inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Runs both ends in one thread, with nothing between them.
struct Synced {
  SyncReport report;
  double seconds;

  std::uint64_t bytes() const { return report.bytes_sent + report.bytes_received; }
};
inline Synced run_sync(IndexedStore& here, IndexedStore& there, const SyncSettings& settings) {
  const double start = cpu_seconds();
  Responder responder(there, {});
  LocalPeer peer(responder);
  SyncReport report = checked(sync(here, peer, settings), "sync");
  return {std::move(report), cpu_seconds() - start};
}

}  // namespace semel::bench
