// Table: additions a second, by recogniser, beside additions without ids.
//
// All ids are new, and time goes on with them: a steady load, with kIds operations in a window. The
// counters are in memory, and the window is full, before anything is measured. Hashing the ids is
// part of the time.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "semel/core/assert.h"
#include "semel/tally/table.h"

namespace semel::bench {
namespace {

using tally::Addition;
using tally::Answer;
using tally::OperationId;
using tally::Outcome;
using tally::Recognition;
using tally::Table;

constexpr std::uint64_t kIds = 1'000'000;
constexpr std::uint64_t kClients = 1000;
constexpr std::size_t kLargestBatch = 1000;

OperationId opaque(std::uint64_t number) { return OperationId::opaque(digest_of(key_of(number))); }
OperationId numbered(std::uint64_t number) {
  return OperationId::numbered(digest_of(key_of(number % kClients)), number / kClients);
}
OperationId none(std::uint64_t /*number*/) { return {}; }

// A table, and the operations that come to it: one for each millisecond.
class Load {
 public:
  using MakeId = OperationId (*)(std::uint64_t number);

  Load(std::string name, Recognition::Kind kind, MakeId make_id, std::uint64_t counters)
      : name_(std::move(name)), make_id_(make_id), table_(made(kind)) {
    std::vector<Key> names(kLargestBatch);
    for (std::uint64_t n = 0; n < std::max(counters, 2 * kIds); n += names.size()) {
      for (std::size_t i = 0; i < names.size(); ++i) names[i] = key_of((n + i) % counters);
      add(names, names.size());
    }
  }

  Contender contender(std::size_t batch) {
    std::optional<double> bits;
    if (make_id_ != none) {
      bits = static_cast<double>(table_.info().recogniser_bytes) * 8 / double{kIds};
    }
    return {name_, [this, batch](const Slice& slice) { return add(slice.keys, batch); }, bits};
  }

 private:
  static Table made(Recognition::Kind kind) {
    Table::Settings settings;
    settings.recognition = {.kind = kind, .window_ms = kIds, .fpr = 1e-6, .ids = kIds};
    return *Table::make(settings, 0);
  }

  // Returns how many counted.
  std::uint64_t add(std::span<const Key> names, std::size_t batch) {
    std::array<Addition, kLargestBatch> additions;
    std::array<Answer, kLargestBatch> answers;
    std::uint64_t applied = 0;
    for (std::size_t at = 0; at < names.size(); at += batch) {
      const std::size_t size = std::min(batch, names.size() - at);
      for (std::size_t i = 0; i < size; ++i) {
        additions[i] = {names[at + i].view(), 1, make_id_(next_++)};
      }
      const Result<void> added = table_.add(std::span(additions).first(size),
                                            std::span(answers).first(size), TimeMs(next_));
      SEMEL_ASSERT(added);
      for (std::size_t i = 0; i < size; ++i) applied += answers[i].outcome == Outcome::applied;
    }
    // One in a million new ids is taken for a retry.
    SEMEL_ASSERT(applied + 1 + names.size() / 10'000 >= names.size());
    return applied;
  }

  std::string name_;
  MakeId make_id_;
  Table table_;
  std::uint64_t next_ = 0;
};

void measure(Session& session, std::uint64_t counters) {
  using Kind = Recognition::Kind;
  Load opaque_clients("clients-opaque", Kind::clients, opaque, counters);
  Load numbered_clients("clients-numbered", Kind::clients, numbered, counters);
  Load filter("filter", Kind::filter, opaque, counters);
  Load exact("exact", Kind::exact, opaque, counters);
  Load without("without-ids", Kind::clients, none, counters);
  std::vector<Comparison> comparisons;
  for (const std::size_t batch : {1, 50, 1000}) {
    Workload workload = present_keys(counters);
    workload.answers = Workload::Answers::any;
    comparisons.push_back(
        {.id = "tally-add/" + in_short(counters) + "/batch-" + std::to_string(batch),
         .workload = workload,
         .ours = opaque_clients.contender(batch),
         .peers = {numbered_clients.contender(batch), filter.contender(batch),
                   exact.contender(batch), without.contender(batch)}});
  }
  session.compare(comparisons);
}

const Registration kFew("tally-few", "additions to a table of a thousand counters",
                        [](Session& session) { measure(session, 1000); });
const Registration kMany("tally-many", "additions to a table of a million counters",
                         [](Session& session) { measure(session, session.small()); });

}  // namespace
}  // namespace semel::bench
