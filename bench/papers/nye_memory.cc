// 'Nye's trie and floret estimators', figure 11: the memory of the index.
//
// Prints TSV. 400,000 records with keys of 13 bytes; the paper's '256-byte records' may be 256
// bytes in all, or beside the key. `percent` is relative to the bytes of keys and values. `grown`
// is the percentage of a trie that got the last tenth of its records, picked at random, 40 at a
// time with a refresh after each. A hash trie, which has a node for each record, is ours with the
// least burst size. Fails if a value is above the paper's.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/numbered_records.h"
#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/random.h"
#include "semel/index/nye_trie.h"

namespace semel::bench {
namespace {

constexpr std::uint64_t kRecords = 400'000;
constexpr std::size_t kAtOnce = 40;

std::string decimal_key(std::uint64_t n) {
  const std::string digits = std::to_string(n);
  return "key" + std::string(10 - digits.size(), '0') + digits;
}
std::string binary_key(std::uint64_t n) { return "table" + big_endian(n); }
std::string random_key(std::uint64_t n) { return "table" + big_endian(mix(n)); }

struct Keys {
  const char* name;
  std::string (*key)(std::uint64_t);
};
constexpr std::array<Keys, 3> kKeys = {
    {{"decimal", decimal_key}, {"binary", binary_key}, {"random", random_key}}};

struct Structure {
  const char* name;
  std::uint32_t burst_bytes;
  double percent;  // the paper's
};
constexpr std::array<Structure, 3> kStructures = {{{"hash trie", NyeTrie::kLeastBurst, 12.8},
                                                   {"burst 4 KB", 4096, 1.3},
                                                   {"burst 32 KB", 32'768, 0.14}}};

void refresh(NyeTrie& trie, const NumberedRecords& records) {
  NumberedRecords::Reading cursor(records);
  const Result<void> done = trie.refresh(cursor);
  SEMEL_ASSERT(done.has_value());
}

double percent(const NyeTrie& trie) {
  return 100 * static_cast<double>(trie.bytes()) / static_cast<double>(trie.total().volume);
}

bool print_row(const Keys& keys, std::size_t value_size, const Structure& structure,
               const EntryDigest& digest) {
  std::vector<std::string> all;
  for (std::uint64_t n = 0; n < kRecords; ++n) all.push_back(keys.key(n));
  NumberedRecords records(all, value_size);
  NyeTrie built(structure.burst_bytes, digest);
  refresh(built, records);

  Random random(1);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(kRecords / 10);
  for (const std::string& key : all) records.hide(key, true);
  NyeTrie grown(structure.burst_bytes, digest);
  refresh(grown, records);
  for (std::size_t n = 0; n < all.size(); ++n) {
    records.hide(all[n], false);
    grown.mark(all[n]);
    if ((n + 1) % kAtOnce == 0) refresh(grown, records);
  }
  SEMEL_ASSERT(grown == built);

  const auto containers = static_cast<double>(built.container_count());
  const bool small = std::max(percent(built), percent(grown)) <= structure.percent;
  std::printf("%s\t%zu\t%s\t%zu\t%.1f\t%.2f\t%.3f\t%.3f\t%.2f\t%s\n", keys.name, value_size,
              structure.name, built.container_count(),
              static_cast<double>(built.total().volume) / containers,
              static_cast<double>(built.bytes()) / containers, percent(built), percent(grown),
              structure.percent, small ? "yes" : "NO");
  std::fflush(stdout);
  return small;
}

bool print_all() {
  const std::array<std::uint8_t, Secret::kSize> bytes{};
  const EntryDigest digest{Secret(bytes)};
  bool small = true;
  for (const std::size_t value_size : {243, 256}) {
    std::printf(
        "%s# values of %zu bytes\nkeys\tvalue\tstructure\tcontainers\tbytes_in_each\t"
        "bytes_for_each\tpercent\tgrown\tpaper\twithin\n",
        value_size == 243 ? "" : "\n\n", value_size);
    for (const Keys& keys : kKeys) {
      for (const Structure& structure : kStructures) {
        small = print_row(keys, value_size, structure, digest) && small;
      }
    }
  }
  return small;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all() ? 0 : 1; }
