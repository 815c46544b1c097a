#include "tests/cluster/sift_producers.h"

#include <algorithm>
#include <deque>
#include <span>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/clock.h"
#include "semel/core/internal/random.h"
#include "semel/slices/placement.h"
#include "semel/slices/sliced_filter.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

using client::Cluster;
using client::RemoteSlice;
using client::SiftKey;
using client::Taking;

constexpr std::uint32_t kSlices = 12;
constexpr std::size_t kProducers = 3;
constexpr std::uint64_t kMostAtOnce = 256;
constexpr std::uint64_t kOverlap = 1000;  // ids that are asked for at about the same time
constexpr std::size_t kAtOnceLate = 500;
// A call is never given up, because nobody would own the ids that it took. A claim outlives a call.
constexpr std::int64_t kPatienceMs = 60'000;
constexpr TimeMs kClaimMs = 2 * kPatienceMs;

std::vector<SiftKey> keys() {
  std::vector<SiftKey> keys;
  for (std::string& name : client::spread_keys("sift", kSlices)) keys.emplace_back(std::move(name));
  return keys;
}

Digest digest_of(std::uint64_t id) { return digest("event " + std::to_string(id), 0); }

}  // namespace

class SiftProducers::Producer {
 public:
  Producer(const SiftProducers& all, std::size_t number, Log& log)
      : cluster_(all.url_, {.connection = {.connect_timeout_ms = 500, .timeout_ms = 500},
                            .deadline_ms = kPatienceMs,
                            .replicas = all.replicas_,
                            .replicas_timeout_ms = 200,
                            .seed = mix(all.seed_ + number)}),
        random_(mix(all.seed_ + number)),
        log_(log),
        filter_(make(all.taking_, "producer" + std::to_string(number))) {}

  bool connect() {
    // The rate is so low that no false positive is expected in a campaign.
    const client::SiftShape shape{.window_ms = 3'600'000, .error = 1e-12, .capacity = 100'000};
    Result<void> done;
    if (eventually([&] { return (done = cluster_.connect()).has_value(); })) {
      done = client::reserve(cluster_, keys(), shape);
    }
    if (!done) log_.problems.push_back(done.error().message());
    return done.has_value();
  }

  void run(const std::atomic<bool>& enough, std::atomic<std::uint64_t>& next_id) {
    while (!enough && log_.problems.empty()) {
      const std::uint64_t count = 1 + random_.below(kMostAtOnce);
      const std::uint64_t first = next_id.fetch_add(count / 2);
      std::vector<std::uint64_t> ids;
      for (std::uint64_t i = 0; i < count; ++i) {
        // One id in eight is repeated from any earlier time.
        const bool old = random_.below(8) == 0;
        ids.push_back(old ? random_.below(first + 1) : first + random_.below(kOverlap));
      }
      ask(std::move(ids));
    }
  }

  void ask(const std::vector<std::uint64_t>& ids) {
    std::vector<Digest> digests;
    for (const std::uint64_t id : ids) digests.push_back(digest_of(id));
    std::vector<Verdict> verdicts(ids.size());
    filter_.test_and_set(digests, {}, verdicts, SystemClock().now_ms());
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      if (filter_.states()[i] == SliceState::live) continue;
      return log_.problems.push_back(slices_[i].error()->message());
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      Told& told = log_.told[ids[i]];
      if (verdicts[i] == Verdict::fresh) {
        ++told.fresh;
      } else if (verdicts[i] == Verdict::duplicate) {
        ++told.duplicate;
      } else {
        log_.problems.emplace_back("an id is stale, or has no room");
      }
    }
    log_.in_doubt = cluster_.counts().lost;
  }

 private:
  SlicedFilter make(Taking taking, const std::string& owner) {
    std::vector<Slice*> slices;
    for (SiftKey& key : keys()) {
      slices.push_back(&slices_.emplace_back(cluster_, std::move(key),
                                             RemoteSlice::Options{taking, owner, kClaimMs}));
    }
    return *SlicedFilter::make(*Placement::make({SliceLayout::horizontal, kSlices}),
                               std::move(slices), {});
  }

  Cluster cluster_;
  Random random_;
  Log& log_;
  std::deque<RemoteSlice> slices_;
  SlicedFilter filter_;
};

SiftProducers::SiftProducers(const client::Url& url, Taking taking, std::uint64_t seed,
                             std::uint32_t replicas)
    : url_(url), taking_(taking), seed_(seed), replicas_(replicas), logs_(kProducers) {
  for (std::size_t i = 0; i < kProducers; ++i) {
    threads_.emplace_back([this, i] {
      Producer producer(*this, i, logs_[i]);
      if (producer.connect()) producer.run(enough_, next_id_);
    });
  }
}

SiftProducers::Report SiftProducers::finish() {
  enough_ = true;
  threads_.clear();
  Report report;
  std::map<std::uint64_t, Told> all;
  const auto add = [&](const Log& log) {
    report.in_doubt += log.in_doubt;
    report.problems.insert(report.problems.end(), log.problems.begin(), log.problems.end());
  };
  for (const Log& log : logs_) {
    add(log);
    for (const auto& [id, told] : log.told) {
      all[id].fresh += told.fresh;
      all[id].duplicate += told.duplicate;
    }
  }
  std::vector<std::uint64_t> ids;
  for (const auto& [id, told] : all) {
    ids.push_back(id);
    report.duplicates += told.duplicate;
    if (told.fresh == 0) ++report.lost;
    if (told.fresh > 1) ++report.twice;
  }
  report.ids = ids.size();

  Log late;
  Producer producer(*this, kProducers, late);
  if (producer.connect()) {
    for (std::span<const std::uint64_t> rest = ids; !rest.empty();) {
      const std::size_t count = std::min(rest.size(), kAtOnceLate);
      producer.ask({rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count)});
      rest = rest.subspan(count);
    }
  }
  add(late);
  for (const auto& [id, told] : late.told) report.fresh_late += told.fresh;
  return report;
}

}  // namespace semel
