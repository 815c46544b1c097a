// Nye's trie over records of 100 bytes, with containers of 4 KB: the cost of a write, of a read of
// the index with a measure and without, and of the bulk load, beside the cost of the digests alone.
#include "semel/index/nye_trie.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/numbered_records.h"
#include "semel/core/assert.h"
#include "semel/core/internal/random.h"

namespace semel::bench {
namespace {

constexpr std::size_t kValueSize = 100 - sizeof(Key);
constexpr std::uint32_t kBurst = 4096;

// Sixteen bits of the value, like that of a counter.
int128 measure_of(std::string_view, std::string_view value) {
  return load_u64(bytes_of(value).data()) % (1U << 16);
}

NumberedRecords records_of(std::uint64_t count) {
  std::vector<std::string> keys;
  keys.reserve(count);
  for (std::uint64_t n = 0; n < count; ++n) keys.emplace_back(key_of(n).view());
  return {std::move(keys), kValueSize};
}

void refresh(NyeTrie& trie, const NumberedRecords& records) {
  NumberedRecords::Reading cursor(records);
  const Result<void> done = trie.refresh(cursor);
  SEMEL_ASSERT(done.has_value());
}

Workload of_present(std::uint64_t keys, std::size_t slice) {
  Workload workload = present_keys(keys);
  workload.answers = Workload::Answers::any;
  workload.slice = slice;
  return workload;
}

void measure_bulk_load(Session& session, const EntryDigest& digest) {
  constexpr std::size_t kRecords = std::size_t{1} << 17;
  const NumberedRecords records = records_of(kRecords);
  const auto load = [&](const Slice&) {
    NyeTrie trie(kBurst, digest);
    refresh(trie, records);
    return trie.total().count;
  };
  const auto digests = [&](const Slice&) {
    EntryDigest of = digest;
    Digest sum{0, 0};
    for (const std::string& key : records.keys()) sum ^= of(key, records.value());
    return sum.lo;
  };
  session.compare({{.id = "nye-trie/" + in_short(kRecords) + "/bulk-load",
                    .workload = of_present(kRecords, kRecords),
                    .ours = {"semel-trie", load},
                    .peers = {{"digests-alone", digests}}}});
}

void measure(Session& session, const EntryDigest& digest) {
  const std::uint64_t count = session.small();
  const NumberedRecords records = records_of(count);
  NyeTrie trie(kBurst, digest), marked(kBurst, digest), measured(kBurst, digest, &measure_of);
  for (NyeTrie* const made : {&trie, &marked, &measured}) refresh(*made, records);
  const std::string id = "nye-trie/" + in_short(count) + "/";
  std::size_t next = 0;
  const auto mark_in_order = [&](const Slice& slice) {
    for (std::size_t n = 0; n < slice.keys.size(); ++n) {
      marked.mark(records.keys()[next++ % records.keys().size()]);
    }
    return std::uint64_t{0};
  };
  const auto mark = [&](const Slice& slice) {
    for (const Key& key : slice.keys) marked.mark(key.view());
    return std::uint64_t{0};
  };
  const auto mark_and_refresh = [&](const Slice& slice) {
    for (const Key& key : slice.keys) trie.mark(key.view());
    refresh(trie, records);
    return std::uint64_t{0};
  };
  const auto sum_in = [&](const NyeTrie& of, const Slice& slice) {
    NumberedRecords::Reading cursor(records);
    std::uint64_t all = 0;
    for (const Key& key : slice.keys) {
      const Aggregate sum = *of.sum(KeyRange{std::string(key.view()), std::nullopt}, cursor);
      all += sum.count + static_cast<std::uint64_t>(sum.measure);
    }
    return all;
  };
  const auto sum = [&](const Slice& slice) { return sum_in(trie, slice); };
  const auto sum_of_measures = [&](const Slice& slice) { return sum_in(measured, slice); };
  const auto node_of = [](const Key& key) {
    BitPath node = BitPath::of_key(key.view());
    node.truncate(10);
    return node;
  };
  const auto sum_of_node = [&](const Slice& slice) {
    NumberedRecords::Reading cursor(records);
    std::uint64_t all = 0;
    for (const Key& key : slice.keys) all += trie.sum(node_of(key), cursor)->count;
    return all;
  };
  const auto branch = [&](const Slice& slice) {
    std::uint64_t all = 0;
    for (const Key& key : slice.keys) all += trie.branch(node_of(key))->size();
    return all;
  };
  const auto one = [&](const char* name, std::size_t slice, const auto& work) {
    session.compare({{.id = id + name,
                      .workload = of_present(count, slice),
                      .ours = {"semel-trie", work},
                      .peers = {}}});
  };
  one("mark-in-order", std::size_t{1} << 17, mark_in_order);
  one("mark-at-random", std::size_t{1} << 17, mark);
  one("mark-and-refresh-1", 1, mark_and_refresh);
  one("mark-and-refresh-1000", 1000, mark_and_refresh);
  one("sum-of-a-range", 1024, sum);
  one("sum-of-measures", 1024, sum_of_measures);
  one("sum-of-a-node", 1024, sum_of_node);
  one("branch", 1024, branch);
}

const Registration kNyeTrie("nye-trie", "marks, refreshes, sums and the bulk load of Nye's trie",
                            [](Session& session) {
                              const std::array<std::uint8_t, Secret::kSize> bytes{};
                              const EntryDigest digest{Secret(bytes)};
                              measure_bulk_load(session, digest);
                              measure(session, digest);
                            });

}  // namespace
}  // namespace semel::bench
