#include "bench/harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <ostream>

#include "semel/core/assert.h"
#include "semel/core/internal/random.h"

namespace semel::bench {
namespace {

double cpu_seconds() {
  timespec now{};
  SEMEL_ASSERT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The measurements of one contender over the rounds.
struct Record {
  std::vector<double> ns;
  std::uint64_t yes = 0;
};

Outcome outcome_of(const Contender& contender, const Workload& workload, Record& record) {
  std::sort(record.ns.begin(), record.ns.end());
  const std::size_t rounds = record.ns.size();
  Outcome outcome{record.ns[(rounds - 1) / 10], record.ns[rounds / 2], {}, contender.bits_per_key};
  if (workload.answers == Workload::Answers::no && contender.bits_per_key) {
    const double looked_up = static_cast<double>(rounds) * static_cast<double>(workload.slice);
    outcome.error_rate = static_cast<double>(record.yes) / looked_up;
  }
  return outcome;
}

// One comparison while it is measured.
class Measurement {
 public:
  explicit Measurement(const Comparison& comparison)
      : comparison_(comparison),
        workload_(comparison.workload),
        contenders_{&comparison.ours},
        keys_(workload_.slice),
        digests_(workload_.slice) {
    for (const Contender& peer : comparison.peers) contenders_.push_back(&peer);
    records_.resize(contenders_.size());
  }

  void measure_round(std::size_t round) {
    workload_.draw(keys_);
    std::transform(keys_.begin(), keys_.end(), digests_.begin(), digest_of);
    for (std::size_t turn = 0; turn < contenders_.size(); ++turn) {
      const std::size_t i = (round + turn) % contenders_.size();
      measure_one(*contenders_[i], round, records_[i]);
    }
  }

  // Ours comes first, then the peers in their order.
  std::vector<Outcome> outcomes() {
    std::vector<Outcome> all;
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      all.push_back(outcome_of(*contenders_[i], workload_, records_[i]));
    }
    return all;
  }

 private:
  void measure_one(const Contender& contender, std::size_t round, Record& record) {
    if (contender.prepare) contender.prepare(round);
    const double start = cpu_seconds();
    const std::uint64_t yes = contender.work({keys_, digests_});
    const double seconds = cpu_seconds() - start;
    record.ns.push_back(seconds * 1e9 / static_cast<double>(keys_.size()));
    record.yes += yes;
    if (workload_.answers == Workload::Answers::yes && yes != keys_.size()) {
      std::fprintf(stderr, "%s: %s misses keys that were added\n", comparison_.id.c_str(),
                   contender.name.c_str());
      std::abort();
    }
  }

  const Comparison& comparison_;
  Workload workload_;  // a copy: drawing changes it
  std::vector<const Contender*> contenders_;
  std::vector<Record> records_;
  std::vector<Key> keys_;
  std::vector<Digest> digests_;
};

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string if_known(const char* format, std::optional<double> value) {
  return value ? formatted(format, *value) : "-";
}

void print_row(std::ostream& out, const std::string& name, const Outcome& outcome,
               std::optional<double> ratio) {
  out << formatted("  %-20s %8.2f %8.2f %8.1f %10s %9s %7s\n", name.c_str(), outcome.ns,
                   outcome.median_ns, 1e3 / outcome.ns,
                   if_known("%.2e", outcome.error_rate).c_str(),
                   if_known("%.2f", outcome.bits_per_key).c_str(), if_known("%.2f", ratio).c_str());
}

void write_row(std::ostream& out, const std::string& id, const std::string& peer,
               std::optional<double> ours, std::optional<double> theirs, const char* unit) {
  if (!ours || !theirs || *ours <= 0) return;
  out << id << '\t'
      << formatted("%.5g\t%s\t%.5g\t%.3f\t%s\n", *ours, peer.c_str(), *theirs, *theirs / *ours,
                   unit);
}

}  // namespace

Workload absent_keys(std::uint64_t keys) {
  return {Workload::Answers::no, [next = keys](std::span<Key> out) mutable {
            for (Key& key : out) key = key_of(next++);
          }};
}

Workload present_keys(std::uint64_t keys) {
  return {Workload::Answers::yes, [keys, random = Random(1)](std::span<Key> out) mutable {
            for (Key& key : out) key = key_of(random.below(keys));
          }};
}

Workload new_keys(std::uint64_t keys) {
  const auto draw = [keys, next = std::uint64_t{0}](std::span<Key> out) mutable {
    for (Key& key : out) key = key_of(next++ % keys);
  };
  Workload workload{Workload::Answers::any, draw};
  workload.slice = std::min<std::uint64_t>(workload.slice, keys / 8);
  while (keys % workload.slice != 0) --workload.slice;
  return workload;
}

Session::Session(bool quick, std::ostream& table, std::ostream* tsv)
    : quick_(quick), table_(table), tsv_(tsv) {
  if (tsv_ != nullptr) *tsv_ << "id\tours\tpeer\tpeer_value\tratio\tunit\n";
}

void Session::compare(const std::vector<Comparison>& comparisons) {
  std::vector<Measurement> measurements(comparisons.begin(), comparisons.end());
  const std::size_t rounds = quick_ ? 9 : 61;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (Measurement& measurement : measurements) measurement.measure_round(round);
  }
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    report(comparisons[i], measurements[i].outcomes());
  }
}

void Session::report(const Comparison& comparison, const std::vector<Outcome>& outcomes) {
  const Outcome& ours = outcomes.front();
  table_ << '\n' << comparison.id << '\n';
  table_ << formatted("  %-20s %8s %8s %8s %10s %9s %7s\n", "", "ns", "median", "M/s", "error",
                      "bits/key", "ratio");
  print_row(table_, comparison.ours.name, ours, {});
  for (std::size_t i = 0; i < comparison.peers.size(); ++i) {
    const Outcome& theirs = outcomes[i + 1];
    print_row(table_, comparison.peers[i].name, theirs, theirs.ns / ours.ns);
    if (tsv_ == nullptr) continue;
    const std::string& peer = comparison.peers[i].name;
    const std::string id = comparison.id + '/' + peer;
    write_row(*tsv_, id, peer, ours.ns, theirs.ns, "ns");
    write_row(*tsv_, id + "/error", peer, ours.error_rate, theirs.error_rate, "error_rate");
    write_row(*tsv_, id + "/bits", peer, ours.bits_per_key, theirs.bits_per_key, "bits_per_key");
  }
  table_.flush();
}

std::vector<Benchmark>& benchmarks() {
  static std::vector<Benchmark> all;
  return all;
}

Registration::Registration(std::string name, std::string summary,
                           std::function<void(Session&)> run) {
  std::vector<Benchmark>& all = benchmarks();
  const auto after =
      std::upper_bound(all.begin(), all.end(), name,
                       [](const std::string& a, const Benchmark& b) { return a < b.name; });
  all.insert(after, {std::move(name), std::move(summary), std::move(run)});
}

std::string in_short(std::uint64_t count) {
  if (count % 1'000'000 == 0) return std::to_string(count / 1'000'000) + 'M';
  if (count % 1'000 == 0) return std::to_string(count / 1'000) + 'k';
  return std::to_string(count);
}

}  // namespace semel::bench
