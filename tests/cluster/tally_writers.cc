#include "tests/cluster/tally_writers.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "semel/core/assert.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

using client::Cluster;
using client::ClusterOptions;
using client::Command;
using client::Repeat;
using std::chrono::steady_clock;

constexpr std::size_t kTables = 6;
constexpr std::size_t kWriters = 4;
constexpr std::uint64_t kCounters = 5;
constexpr std::uint64_t kMostAtOnce = 24;
constexpr std::size_t kRemembered = 4096;  // by a writer, to be repeated
constexpr std::chrono::minutes kPatience{2};

std::vector<std::string> tables() { return client::spread_keys("tally", kTables); }

// Commands time out before a failover is done, so that writers give up and start again.
ClusterOptions options(std::uint64_t seed, Planted planted) {
  return {.connection = {.connect_timeout_ms = 500, .timeout_ms = 500},
          .deadline_ms = 1'000,
          .replicas = planted == Planted::no_wait ? 0 : 1,
          .replicas_timeout_ms = 200,
          .seed = seed};
}

struct Operation {
  std::string table;
  std::string counter;
  std::int64_t delta;
  std::string client;
  std::uint64_t sequence;
  bool numbered;
  bool again = false;  // it was acknowledged before

  Command command() const {
    Command command{"TALLY.INCRBY", table, counter};
    command.add(delta);
    const std::string number = std::to_string(sequence);
    if (numbered) return command.add("OP").add(client).add(number);
    return command.add("ID").add(client + "/" + number);
  }
};

}  // namespace

class TallyWriters::Writer {
 public:
  Writer(const client::Url& url, std::uint64_t number, std::uint64_t seed, Planted planted,
         Report& report)
      : cluster_(url, options(mix(seed + number), planted)),
        random_(mix(seed + number)),
        name_("writer" + std::to_string(number)),
        planted_(planted),
        report_(report) {}

  void run(const std::atomic<bool>& enough) {
    Result<void> connected;
    if (!eventually([&] { return (connected = cluster_.connect()).has_value(); }))
      return report_.problems.push_back(connected.error().message());
    while (!enough && report_.problems.empty()) {
      std::vector<Operation> batch;
      for (std::uint64_t i = 1 + random_.below(kMostAtOnce); i > 0; --i) batch.push_back(next());
      if (!done_.empty()) {
        batch.push_back(done_[random_.below(done_.size())]);
        batch.back().again = true;
      }
      acknowledge(std::move(batch));
    }
    report_.in_doubt = cluster_.counts().lost;
  }

 private:
  Operation next() {
    return {.table = tables_[random_.below(tables_.size())],
            .counter = "counter" + std::to_string(random_.below(kCounters)),
            .delta = 1 + static_cast<std::int64_t>(random_.below(9)),
            .client = name_,
            .sequence = ++sequence_,
            .numbered = random_.below(2) == 0};
  }

  void acknowledge(std::vector<Operation> open) {
    const auto deadline = steady_clock::now() + kPatience;
    const Repeat repeat = planted_ == Planted::new_ids ? Repeat::never : Repeat::safe;
    while (!open.empty()) {
      std::vector<Cluster::Ticket> tickets;
      for (const Operation& operation : open) {
        tickets.push_back(
            cluster_.start(client::slot_of(operation.table), operation.command(), repeat));
      }
      std::vector<Operation> unanswered;
      std::string why;
      for (std::size_t i = 0; i < open.size(); ++i) {
        const auto reply = cluster_.finish(tickets[i]);
        if (reply) {
          take(std::move(open[i]), *reply);
          continue;
        }
        if (planted_ == Planted::new_ids && !open[i].again) open[i].sequence = ++sequence_;
        unanswered.push_back(std::move(open[i]));
        why = reply.error().message();
      }
      open = std::move(unanswered);
      if (!open.empty() && steady_clock::now() > deadline) {
        return report_.problems.push_back("no acknowledgement comes: " + why);
      }
    }
  }

  void take(Operation operation, const client::Reply& reply) {
    if (reply.size() != 2) return report_.problems.push_back(std::string(reply.text()));
    if (operation.again) {
      ++(reply.at(1).text() == "duplicate" ? report_.recognised : report_.counted_again);
      return;
    }
    ++report_.acknowledged;
    report_.expected[operation.table][operation.counter] += operation.delta;
    done_.push_back(std::move(operation));
    if (done_.size() > kRemembered) done_.pop_front();
  }

  Cluster cluster_;
  Random random_;
  const std::string name_;
  const Planted planted_;
  Report& report_;
  const std::vector<std::string> tables_ = tables();
  std::uint64_t sequence_ = 0;
  std::deque<Operation> done_;
};

TallyWriters::TallyWriters(const client::Url& url, std::uint64_t seed, Planted planted)
    : reports_(kWriters) {
  Cluster cluster(url, {.replicas = 1});
  SEMEL_ASSERT(eventually([&] { return cluster.connect().has_value(); }));
  bool exact = false;
  for (const std::string& table : tables()) {
    Command command{"TALLY.RESERVE", table, "WINDOW", "1h", "CAPACITY", "100000"};
    // The rate is so low that no false positive is expected in a campaign.
    exact = !exact;
    exact ? command.add("EXACT") : command.add("ERROR").add("1e-12");
    const auto reply = cluster.call(table, std::move(command), Repeat::safe);
    // An earlier call whose answer was lost may have made the table.
    if (reply && (!reply->is_error() || cluster.counts().lost > 0)) continue;
    const std::string why = reply ? reply->excerpt() : reply.error().message();
    std::fprintf(stderr, "cannot make %s: %s\n", table.c_str(), why.c_str());
    std::abort();
  }
  for (std::size_t i = 0; i < kWriters; ++i) {
    threads_.emplace_back(
        [this, url, i, seed, planted] { Writer(url, i, seed, planted, reports_[i]).run(enough_); });
  }
}

TallyWriters::Report TallyWriters::finish() {
  enough_ = true;
  threads_.clear();
  Report all;
  for (const Report& one : reports_) {
    for (const auto& [table, counters] : one.expected) {
      for (const auto& [counter, sum] : counters) all.expected[table][counter] += sum;
    }
    all.acknowledged += one.acknowledged;
    all.in_doubt += one.in_doubt;
    all.recognised += one.recognised;
    all.counted_again += one.counted_again;
    all.problems.insert(all.problems.end(), one.problems.begin(), one.problems.end());
  }
  return all;
}

TallyWriters::Sums sums_of(const client::Url& url) {
  Cluster cluster(url);
  SEMEL_ASSERT(eventually([&] { return cluster.connect().has_value(); }));
  TallyWriters::Sums sums;
  for (const std::string& table : tables()) {
    const auto reply = cluster.call(table, {"TALLY.RANGE", table, "-", "+"}, Repeat::safe);
    SEMEL_ASSERT(reply && !reply->is_error());
    for (std::size_t i = 0; i + 1 < reply->size(); i += 2) {
      sums[table][std::string(reply->at(i).text())] = reply->at(i + 1).integer();
    }
  }
  return sums;
}

}  // namespace semel
