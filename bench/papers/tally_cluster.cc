#include "bench/papers/tally_cluster.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "bench/papers/fbf_runs.h"
#include "semel/core/assert.h"
#include "semel/core/internal/random.h"
#include "semel/tally/internal/recogniser.h"
#include "semel/tally/table.h"

namespace semel::bench {
namespace {

using tally::Addition;
using tally::Answer;
using tally::OperationId;
using tally::Outcome;
using tally::Table;
using tally::internal::Recogniser;

constexpr std::uint64_t kSites = 10;
constexpr std::size_t kReplicas = 3;
constexpr SiteId kDying = 4, kReplacement = kSites + 1;
constexpr std::uint64_t kClients = 100;
constexpr TimeMs kExchangeMs = 100;
constexpr TimeMs kLeastTimeoutMs = 20, kMostTimeoutMs = 1000;  // of a client
constexpr TimeMs kNoticedMs = 2000;                            // after the death of a site
constexpr std::uint64_t kLooks = 50;
constexpr int kMostRounds = 20;  // of exchanges at the end

tally::Recognition recogniser_goal() { return {.window_ms = 600'000, .fpr = 1e-6}; }

// Every other client numbers its operations.
OperationId id_of_operation(std::uint64_t operation) {
  const std::uint64_t client = operation % kClients;
  return client % 2 == 0 ? OperationId::opaque(id_of(1, operation))
                         : OperationId::numbered(id_of(2, client), operation / kClients);
}

// A counter as a sum for each site.
class Shards {
 public:
  enum class Recognition : std::uint8_t { none, own, exchanged };

  Shards(Recognition recognition, SiteId site) : recognition_(recognition), site_(site) {}

  void add(const OperationId& id, TimeMs now_ms) {
    if (recognition_ != Recognition::none && !fresh(id, now_ms)) return;
    ++sums_[site_];
  }
  void take(const Shards& from, TimeMs now_ms) {
    for (const auto& [site, sum] : from.sums_) sums_[site] = std::max(sums_[site], sum);
    if (recognition_ != Recognition::exchanged) return;
    for (std::size_t& at = read_[from.site_]; at < from.ids_.size(); ++at) {
      fresh(from.ids_[at], now_ms);
    }
  }
  // Goes on as another site.
  void become(SiteId site) { site_ = site; }
  std::int64_t sum() const {
    std::int64_t sum = 0;
    for (const auto& [site, part] : sums_) sum += part;
    return sum;
  }

 private:
  bool fresh(const OperationId& id, TimeMs now_ms) {
    recogniser_.advance(now_ms);
    if (recogniser_.test_and_insert({id}) != Outcome::applied) return false;
    if (recognition_ == Recognition::exchanged) ids_.push_back(id);
    return true;
  }

  Recognition recognition_;
  SiteId site_;
  std::map<SiteId, std::int64_t> sums_;
  Recogniser recogniser_ = *Recogniser::make(recogniser_goal(), 0);
  std::vector<OperationId> ids_;        // in the order in which they came
  std::map<SiteId, std::size_t> read_;  // of the ids of another
};

struct Attempt {
  std::uint64_t operation;
  SiteId site;               // that took the first one
  bool after_death = false;  // of that site
};

struct Replica {
  Replica(SiteId at, Table holding)
      : site(at),
        table(std::move(holding)),
        plain(Shards::Recognition::none, at),
        own(Shards::Recognition::own, at),
        exchanged(Shards::Recognition::exchanged, at) {}

  std::uint64_t taken() const { return table.info().held.at(site); }

  SiteId site;
  Table table;
  Shards plain, own, exchanged;
  bool alive = true;
  // Operations that were answered and are not done, and the number up to which two must hold its
  // log.
  std::deque<std::pair<std::uint64_t, Attempt>> undone = {};
};

using Partition = std::vector<Replica>;

void send_entries(Replica& from, Replica& to, TimeMs now_ms) {
  std::vector<std::pair<std::string, Bytes>> entries;
  from.table.publish([&](std::string_view key, ByteView value) {
    entries.emplace_back(key, Bytes(value.begin(), value.end()));
  });
  for (const auto& [key, value] : entries) {
    SEMEL_ASSERT(to.table.receive(key, value, now_ms));
  }
  to.plain.take(from.plain, now_ms);
  to.own.take(from.own, now_ms);
  to.exchanged.take(from.exchanged, now_ms);
}

void send_all_entries(Partition& partition, TimeMs now_ms) {
  for (Replica& from : partition) {
    for (Replica& to : partition) {
      if (&from != &to && from.alive && to.alive) send_entries(from, to, now_ms);
    }
  }
}

Table copy_for(Replica& member, SiteId site) {
  SEMEL_ASSERT(member.table.admit(site));
  Bytes bytes;
  member.table.encode(bytes);
  Result<Table> copy = Table::decode(bytes);
  SEMEL_ASSERT(copy);
  SEMEL_ASSERT(copy->become(site, 0));
  return *std::move(copy);
}

class Cluster {
 public:
  Cluster(const ClusterRun& run, const LookAtCluster& look)
      : run_(run), look_(look), random_(run.seed), expected_(run.counters) {
    for (std::uint64_t p = 0; p < kSites; ++p) partitions_.push_back(new_partition(p));
  }

  ClusterOutcome operator()();

 private:
  static Partition new_partition(std::uint64_t number);
  std::string name(std::uint64_t counter) const { return "counter " + std::to_string(counter); }
  // The counter that it adds to, the same at every attempt.
  std::uint64_t counter_of(std::uint64_t operation) const {
    return Random(run_.seed ^ mix(operation)).below(run_.counters);
  }
  Partition& partition_of(std::uint64_t operation) {
    return partitions_[counter_of(operation) % kSites];
  }
  TimeMs timeout() {
    return kLeastTimeoutMs +
           static_cast<TimeMs>(random_.below(kMostTimeoutMs - kLeastTimeoutMs + 1));
  }

  void begin(std::uint64_t operation);
  void repeat(const Attempt& attempt);
  std::optional<Outcome> attempt(Replica& replica, std::uint64_t operation);
  void later(const Attempt& attempt) { retries_.push({now_ms_ + timeout(), attempt}); }
  void exchange();
  void kill();
  void replace();
  ClusterSums sums() const;
  void settle();

  struct Retry {
    TimeMs at_ms;
    Attempt attempt;
    // For equal times, the older operation comes first: a run depends on its seed alone.
    bool operator<(const Retry& other) const {
      return std::pair(other.at_ms, other.attempt.operation) < std::pair(at_ms, attempt.operation);
    }
  };

  ClusterRun run_;
  const LookAtCluster& look_;
  Random random_;
  TimeMs now_ms_ = 0;
  std::vector<Partition> partitions_;
  std::vector<std::int64_t> expected_;  // of each counter
  std::uint64_t begun_ = 0;
  std::priority_queue<Retry> retries_;
  ClusterOutcome outcome_;
};

// Partition p is at the sites p, p + 1 and p + 2 of the ring; sites are numbered from 1.
Partition Cluster::new_partition(std::uint64_t number) {
  Table::Settings settings;
  settings.recognition = recogniser_goal();
  settings.site = static_cast<SiteId>(number + 1);
  Partition partition;
  partition.reserve(kReplicas);
  partition.emplace_back(settings.site, *Table::make(settings, 0));
  while (partition.size() < kReplicas) {
    const auto site = static_cast<SiteId>((number + partition.size()) % kSites + 1);
    partition.emplace_back(site, copy_for(partition.front(), site));
    send_all_entries(partition, 0);
    send_all_entries(partition, 0);
  }
  return partition;
}

// Returns nullopt if there is no answer, or if the replica cannot take the operation now.
std::optional<Outcome> Cluster::attempt(Replica& replica, std::uint64_t operation) {
  if (!replica.alive) return std::nullopt;
  const OperationId id = id_of_operation(operation);
  const Result<Answer> answer = replica.table.add({name(counter_of(operation)), 1, id}, now_ms_);
  if (!answer) return std::nullopt;
  SEMEL_ASSERT(answer->outcome == Outcome::applied || answer->outcome == Outcome::duplicate);
  replica.plain.add(id, now_ms_);
  replica.own.add(id, now_ms_);
  replica.exchanged.add(id, now_ms_);
  return answer->outcome;
}

void Cluster::begin(std::uint64_t operation) {
  ++begun_;
  ++expected_[counter_of(operation)];
  Replica& replica = partition_of(operation)[random_.below(kReplicas)];
  const bool answer_lost = random_.unit() < run_.retried;
  const Attempt first{operation, replica.site};
  if (!attempt(replica, operation)) {
    later({operation, 0});
  } else if (answer_lost) {
    later(first);
  } else {
    replica.undone.emplace_back(replica.taken(), first);
  }
}

void Cluster::repeat(const Attempt& again) {
  Replica& replica = partition_of(again.operation)[random_.below(kReplicas)];
  const std::optional<Outcome> answered = attempt(replica, again.operation);
  if (!answered) {
    later(again);
    return;
  }
  const bool applied = *answered == Outcome::applied;
  if (again.after_death) {
    ++outcome_.repeated;
    outcome_.taken_again += applied;
  } else if (again.site != 0) {
    ++outcome_.retries;
    outcome_.elsewhere += replica.site != again.site;
    outcome_.before_heard += applied;
  }
  replica.undone.emplace_back(replica.taken(), Attempt{again.operation, replica.site});
}

void Cluster::exchange() {
  for (Partition& partition : partitions_) {
    const std::uint64_t from = random_.below(kReplicas);
    const std::uint64_t to = (from + 1 + random_.below(kReplicas - 1)) % kReplicas;
    if (!partition[from].alive || !partition[to].alive) continue;
    send_entries(partition[from], partition[to], now_ms_);
  }
  for (Partition& partition : partitions_) {
    for (Replica& replica : partition) {
      auto& undone = replica.undone;
      while (replica.alive && !undone.empty() &&
             replica.table.holders({replica.site, undone.front().first}) >= 2) {
        undone.pop_front();
      }
    }
  }
}

void Cluster::kill() {
  for (Partition& partition : partitions_) {
    for (Replica& replica : partition) {
      if (replica.site != kDying) continue;
      replica.alive = false;
      for (auto& [number, undone] : replica.undone) {
        undone.after_death = true;
        later(undone);
      }
      replica.undone.clear();
    }
  }
}

void Cluster::replace() {
  for (Partition& partition : partitions_) {
    const auto dead = std::find_if(partition.begin(), partition.end(),
                                   [](const Replica& replica) { return !replica.alive; });
    if (dead == partition.end()) continue;
    for (Replica& survivor : partition) {
      if (survivor.alive) SEMEL_ASSERT(survivor.table.retire(kDying));
    }
    Replica& member = dead == partition.begin() ? partition.back() : partition.front();
    Replica replacement(kReplacement, copy_for(member, kReplacement));
    replacement.plain = member.plain;
    replacement.own = member.own;
    replacement.exchanged = member.exchanged;
    for (Shards* shards : {&replacement.plain, &replacement.own, &replacement.exchanged}) {
      shards->become(kReplacement);
    }
    *dead = std::move(replacement);
  }
}

ClusterSums Cluster::sums() const {
  ClusterSums sums;
  sums.expected = begun_;
  for (const Partition& partition : partitions_) {
    const auto replica = std::find_if(partition.begin(), partition.end(),
                                      [](const Replica& each) { return each.alive; });
    sums.table += static_cast<std::int64_t>(replica->table.sum({}).sum);
    sums.shards += replica->plain.sum();
    sums.shards_own += replica->own.sum();
    sums.shards_exchanged += replica->exchanged.sum();
  }
  return sums;
}

// Exchanges entries until every replica has folded all operations that the others took.
void Cluster::settle() {
  const auto unsettled = [](const Partition& partition) {
    return std::any_of(partition.begin(), partition.end(),
                       [](const Replica& replica) { return replica.table.info().unfolded > 0; });
  };
  for (Partition& partition : partitions_) {
    int rounds = 0;
    do {
      SEMEL_ASSERT(rounds++ < kMostRounds);
      send_all_entries(partition, now_ms_);
    } while (unsettled(partition));
    for (const Replica& replica : partition) {
      outcome_.expected_undercount += replica.table.info().expected_undercount;
    }
  }
  for (std::uint64_t counter = 0; counter < run_.counters; ++counter) {
    for (const Replica& replica : partitions_[counter % kSites]) {
      const Result<std::optional<std::int64_t>> value = replica.table.get(name(counter));
      SEMEL_ASSERT(value);
      outcome_.wrong_values += value->value_or(0) != expected_[counter];
    }
  }
}

ClusterOutcome Cluster::operator()() {
  const auto operations = static_cast<TimeMs>(run_.operations);
  const TimeMs dies_ms = operations / 2 + kExchangeMs / 2;
  for (; now_ms_ < operations || !retries_.empty(); ++now_ms_) {
    if (now_ms_ < operations) begin(static_cast<std::uint64_t>(now_ms_));
    while (!retries_.empty() && retries_.top().at_ms <= now_ms_) {
      const Attempt due = retries_.top().attempt;
      retries_.pop();
      repeat(due);
    }
    if (now_ms_ % kExchangeMs == 0) exchange();
    if (run_.kill && now_ms_ == dies_ms) kill();
    if (run_.kill && now_ms_ == dies_ms + kNoticedMs) replace();
    if (now_ms_ < operations && now_ms_ % (operations / static_cast<TimeMs>(kLooks)) == 0) {
      look_(now_ms_, sums());
    }
  }
  settle();
  outcome_.sums = sums();
  return outcome_;
}

}  // namespace

ClusterOutcome run_cluster(const ClusterRun& run, const LookAtCluster& look) {
  SEMEL_ASSERT(run.operations >= kLooks && run.counters > 0);
  return Cluster(run, look)();
}

}  // namespace semel::bench
