// Writes the seeds that are no golden files: states at the edges of their formats. Run it after a
// change of a format, and commit what changed:
//
//   build/release/bin/fuzz/write_seeds fuzz/corpus
//
// Seeds whose names begin like a golden file are copies of it (tests/golden/data).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/module_chunks.h"
#include "fuzz/sift_judges.h"
#include "module/types/cuckoo_value.h"
#include "semel/core/assert.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series.h"
#include "semel/sift/claim_table.h"
#include "semel/tally/internal/recogniser.h"
#include "semel/tally/table.h"
#include "semel/window/client_window.h"
#include "semel/window/internal/endless_filter.h"
#include "semel/window/internal/endless_set.h"
#include "semel/window/internal/exact_window.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

constexpr TimeMs kFirst = std::numeric_limits<TimeMs>::min();
constexpr TimeMs kLast = std::numeric_limits<TimeMs>::max();

std::filesystem::path corpus;

void write(std::string_view name, const Bytes& bytes) {
  const std::filesystem::path path = corpus / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text_of(bytes);
  if (!file.flush()) {
    std::fprintf(stderr, "write_seeds: cannot write %s\n", path.c_str());
    std::exit(1);
  }
}

template <class Type>
void write_state(std::string_view name, const Type& state) {
  write(name, encoded(state));
}

void write_bloom_deltas() {
  const BloomShape small{BloomLayout::plain, 1, 64, {}};
  write_state("bloom_delta_decode/empty.bin", BloomDelta(small));
  GrowBloom full(small);
  BloomDelta every_bit(small);
  for (std::uint64_t n = 0; full.live_fpr() < 1; ++n) (void)full.add(key(n), &every_bit);
  write_state("bloom_delta_decode/every_bit.bin", every_bit);
  const BloomShape blocked{BloomLayout::blocked3, 9, 15'360, kTestHash};
  GrowBloom filter(blocked);
  BloomDelta delta(blocked);
  (void)filter.add(key(1), &delta);
  write_state("bloom_delta_decode/blocked3.bin", delta);
}

void write_claims() {
  ClaimTable claims(1000, 0);
  write_state("claims_decode/empty.bin", claims);
  (void)claims.claim({1, 2}, 3, 50);
  write_state("claims_decode/one_claim.bin", claims);
  SEMEL_ASSERT(claims.commit({1, 2}, 3) == ClaimAnswer::done);
  write_state("claims_decode/one_commit.bin", claims);
}

void write_client_windows() {
  const ClientWindow::Goal small{.window_ms = 1000, .generations = 1, .max_bytes = 4096};
  ClientWindow window = *ClientWindow::make(small, -5);
  write_state("client_window_decode/empty.bin", window);
  window.advance(9990);
  for (std::uint64_t n = 0; n < 90; ++n) (void)window.insert({{n % 5, n % 2}, n * n * n});
  write_state("client_window_decode/sparse.bin", window);

  // At the end of time, with the greatest numbers.
  ClientWindow full = *ClientWindow::make(
      {.window_ms = 64, .generations = 64, .max_bytes = 4096, .on_full = OnFull::forget},
      kLast - 70);
  for (std::uint64_t n = 0; n < 210; ++n) {
    full.advance(kLast - 70 + static_cast<TimeMs>(n / 3));
    (void)full.insert({{n % 3, 0}, ~std::uint64_t{0} - 1000 + 5 * n});
  }
  SEMEL_ASSERT(full.counts().forgotten_early > 0);
  write_state("client_window_decode/forgot_early.bin", full);
}

void write_exact_windows() {
  using window_internal::EndlessSet;
  using window_internal::ExactWindow;
  const ExactWindow::Goal small{.window_ms = 1000, .generations = 1, .max_bytes = 4096};
  ExactWindow window = *ExactWindow::make(small, -5);
  write_state("exact_window_decode/empty.bin", window);
  window.advance(9990);
  for (const Digest& id : keys(0, 100)) (void)window.insert(id);
  write_state("exact_window_decode/one_generation.bin", window);

  // At the beginning of time.
  ExactWindow full = *ExactWindow::make(
      {.window_ms = 64, .generations = 64, .max_bytes = 8192, .on_full = OnFull::forget}, kFirst);
  for (std::uint64_t n = 0; full.counts().forgotten_early == 0; ++n) {
    full.advance(kFirst + static_cast<TimeMs>(n / 3));
    (void)full.insert(key(n));
  }
  write_state("exact_window_decode/forgot_early.bin", full);

  EndlessSet set({}, 0);
  write_state("endless_set_decode/empty.bin", set);
  // More ids than a line has slots belong into the last line, so some are found in the first.
  for (std::uint64_t n = 0; n < 13; ++n) (void)set.insert({n, ~std::uint64_t{0} - n / 3});
  (void)set.insert({0, 0});
  write_state("endless_set_decode/around_the_end.bin", set);
}

void write_observed() {
  const CuckooShape shape{4, 8, Dot::kBits, 3, {}};
  ObservedCuckoo filter(shape);
  ObservedDelta delta(shape);
  // Each site adds in several lives, and goes back to none.
  for (std::uint64_t n = 0; n < 8; ++n) {
    SEMEL_ASSERT(filter.add(key(n), {static_cast<SiteId>(n % 2), 1 + n / 3}, &delta));
  }
  for (const std::uint64_t n : {1, 4, 6}) (void)filter.remove(key(n), &delta);
  write_state("observed_cuckoo_decode/lives.bin", filter);
  write_state("observed_delta_decode/lives.bin", delta);
}

void write_series() {
  const SeriesGoal goal{.fpr = 0.01, .first_keys = 4, .sites = 2, .hash = kTestHash};
  write_state("filter_series_decode/empty.bin", *GrowBloomSeries::make(goal));
  write_state("series_delta_decode/empty.bin", SeriesDelta<ObservedCuckoo>(goal));
  const window_internal::EndlessFilter::Goal endless{.fpr = 0.01, .first_keys = 10};
  write_state("series_decode/empty.bin", *window_internal::EndlessFilter::make(endless, 0));
}

// A life that began after a restore adds to a later link of the chain of fuzz_module_cuckoo.
void write_cuckoo_piece() {
  using module::CuckooValue;
  const auto value = filter_of<CuckooValue>({0.01, 4, 2, 20, 1});
  SEMEL_ASSERT(value->begin(1, 3, CuckooValue::Begun::here));
  for (const char* item : {"f", "g", "h"}) {
    SEMEL_ASSERT(value->add(value->hasher()(item), 0));
  }
  CuckooValue::Chunk last{1, {}};
  for (std::uint64_t at = 1; at != 0;) {
    CuckooValue::Chunk chunk = value->dump(at);
    at = chunk.next;
    if (at != 0) last = std::move(chunk);
  }
  write("module_cuckoo/piece3", last.bytes);
}

// ------------------------------------------------------------------------------------------ tables

constexpr TimeMs kNow = 1'700'000'000'000;

void send(tally::Table& from, tally::Table& to) {
  std::vector<std::pair<std::string, Bytes>> entries;
  from.publish([&](std::string_view key, ByteView value) {
    entries.emplace_back(key, Bytes(value.begin(), value.end()));
  });
  for (const auto& [key, value] : entries) SEMEL_ASSERT(to.receive(key, value, kNow));
}

void exchange(tally::Table& a, tally::Table& b) {
  for (int i = 0; i < 3; ++i) {
    send(a, b);
    send(b, a);
  }
}

void write_tables() {
  using tally::OperationId;
  using tally::Recognition;
  using tally::Table;
  const auto id = [](std::uint64_t n) { return OperationId::opaque({n, 2}); };
  const auto add = [](Table& table, std::string_view counter, std::int64_t delta,
                      const OperationId& named) {
    SEMEL_ASSERT(table.add({counter, delta, named}, kNow));
  };
  const Recognition clients{.window_ms = 10'000, .fpr = 0.1, .ids = 1};
  write_state("recogniser_decode/no_filter.bin",
              *tally::internal::Recogniser::make({.window_ms = 1000}, -1));

  Table a = *Table::make({.recognition = clients}, kNow);
  add(a, "x", 5, id(1));
  add(a, "y", -7, OperationId::numbered({1, 2}, 300));
  write_state("tally_table_decode/alone", a);
  SEMEL_ASSERT(a.admit(2));
  Table b = *Table::decode(encoded(a));
  SEMEL_ASSERT(b.become(2, kNow));
  write_state("tally_table_decode/new", b);

  exchange(a, b);
  add(a, "x", 9, id(3));
  SEMEL_ASSERT(a.reset("y", {}, kNow));
  add(b, "x", 1, id(4));
  send(a, b);
  add(b, "z", 3, OperationId::numbered({1, 2}, 302));
  SEMEL_ASSERT(b.remove("x", id(5), kNow));
  write_state("tally_table_decode/tail_a", a);
  write_state("tally_table_decode/tail_b", b);

  // A site that left, with operations that the others have not folded.
  SEMEL_ASSERT(a.admit(3));
  exchange(a, b);
  add(b, "x", 2, id(6));
  add(a, "z", 1, {});
  SEMEL_ASSERT(a.retire(2));
  add(a, "x", 4, id(7));
  write_state("tally_table_decode/fenced", a);
}

// ---------------------------------------------------------------------------- states of semel sift

void write_sift_states() {
  using namespace cli;
  for (const std::uint8_t kind : {0, 2, 4, 8, 10}) {  // the exact ones, which are small
    const std::unique_ptr<Judge> judge = fuzzed_judge(kind);
    Chunk chunk;
    chunk.read_ms = 10;
    chunk.keys = keys(0, 6);
    chunk.records.resize(chunk.keys.size());
    chunk.fates.resize(chunk.keys.size(), Fate::unknown);
    for (std::uint64_t n = 0; n < chunk.keys.size(); ++n) chunk.places.push_back({key(n % 2)});
    SEMEL_ASSERT(judge->judge(chunk));
    Bytes bytes = {kind};
    const auto append = [&](ByteView piece) -> Result<void> {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return {};
    };
    SEMEL_ASSERT(encode_state(kFuzzedOptions, *judge, append));
    write("sift_state/kind" + std::to_string(kind), bytes);
  }
}

}  // namespace
}  // namespace semel

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
    return 2;
  }
  semel::corpus = argv[1];
  semel::write_bloom_deltas();
  semel::write_claims();
  semel::write_client_windows();
  semel::write_exact_windows();
  semel::write_observed();
  semel::write_series();
  semel::write_cuckoo_piece();
  semel::write_tables();
  semel::write_sift_states();
  return 0;
}
