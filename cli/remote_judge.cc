#include "cli/remote_judge.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>
#include <unordered_set>

#include "cli/options.h"
#include "cli/serial_judge.h"
#include "cli/sift_report.h"
#include "cli/stop_signal.h"
#include "semel/core/arithmetic.h"

namespace semel::cli {
namespace {

using client::Claimed;
using client::Cluster;
using client::Committed;
using client::Repeat;
using client::SiftKey;

constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{64};

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

struct DigestHash {
  std::size_t operator()(Digest digest) const { return digest.lo; }
};
struct DigestEqual {
  bool operator()(Digest a, Digest b) const { return a.lo == b.lo && a.hi == b.hi; }
};
using DigestSet = std::unordered_set<Digest, DigestHash, DigestEqual>;

bool less(Digest a, Digest b) { return a.lo != b.lo ? a.lo < b.lo : a.hi < b.hi; }

class RemoteJudge final : public SerialJudge {
 public:
  RemoteJudge(const RemoteSettings& settings, std::uint32_t slices,
              std::unique_ptr<Cluster> judging, std::unique_ptr<Cluster> committing)
      : settings_(settings),
        owner_(make_owner()),
        placement_(*Placement::make({SliceLayout::horizontal, slices})),
        judging_(std::move(judging)),
        committing_(std::move(committing)) {
    for (std::string& key : client::spread_keys(settings.stream, slices)) {
      keys_.emplace_back(std::move(key));
    }
  }

  Result<void> begin(std::string& problem) {
    const auto slices = static_cast<std::uint32_t>(keys_.size());
    auto done = client::expect_slices(*judging_, settings_.stream, slices, problem);
    if (done) done = client::reserve(*judging_, keys_, settings_.shape, problem);
    if (done) done = client::record_slices(*judging_, settings_.stream, slices, problem);
    judging_->end_by(client::kNever);
    committing_->end_by(client::kNever);
    return done;
  }

  bool written(const Chunk& chunk) override {
    return settings_.delivery == Delivery::at_most_once || commit(chunk);
  }

  std::string problem() const override {
    const std::lock_guard lock(mutex_);
    return problem_;
  }

  // Nothing is known here, and nothing is kept.
  TimeMs now() const override { return SystemClock().now_ms(); }
  std::size_t sections() const override { return 0; }
  void encode(std::size_t, Sink) const override {}
  Result<void> decode(std::size_t, ByteView) override { return {}; }

  std::string details() const override {
    std::ostringstream out;
    out << "servers          " << judging_->primaries()
        << (judging_->primaries() == 1 ? " primary, " : " primaries, ");
    if (judging_->replicas() > 0) {
      out << "answers known to " << judging_->replicas()
          << (judging_->replicas() == 1 ? " replica\n" : " replicas\n");
    } else {
      out << "answers known to no replica\n";
    }
    if (retries() > 0) out << "retries          " << grouped(retries()) << '\n';
    if (waits_ > 0) out << "waits            " << grouped(waits_) << " for other producers\n";
    if (late_ > 0) {
      out << "perhaps twice    " << grouped(late_)
          << " written after the end of the claim, and perhaps by another too\n";
    }
    return out.str();
  }
  std::string json_details() const override {
    std::ostringstream out;
    out << ",\"primaries\":" << judging_->primaries() << ",\"replicas\":" << judging_->replicas()
        << ",\"retries\":" << retries() << ",\"waits\":" << waits_
        << ",\"perhaps_twice\":" << late_;
    return out.str();
  }

 private:
  std::uint64_t retries() const {
    return judging_->counts().retries() + committing_->counts().retries();
  }

  Trust measure() const override {
    Trust trust;
    trust.windows = keys_.size();
    if (failed()) return trust;
    std::string ignored;
    const auto infos = client::read_info(*judging_, keys_, ignored);
    if (!infos) return trust;
    for (const client::SiftInfo& info : *infos) {
      trust.bytes += info.bytes;
      trust.error_now += info.error_now / static_cast<double>(keys_.size());
    }
    return trust;
  }

  bool fail(std::string problem) {
    const std::lock_guard lock(mutex_);
    if (!failed_) problem_ = std::move(problem);
    failed_ = true;
    return false;
  }
  bool failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

  const SiftKey& key_of(const Chunk& chunk, std::size_t record) const {
    return keys_[placement_.probe(chunk.keys[record], 0).slice];
  }

  bool judge_in_turn(Chunk& chunk) override {
    if (failed()) return false;  // no need to wait for a server again
    return settings_.delivery == Delivery::at_most_once ? add(chunk) : claim(chunk);
  }

  // At most once: in one step, in order.
  bool add(Chunk& chunk) {
    struct Part {
      Cluster::Ticket ticket;
      std::vector<std::size_t> records;
      std::size_t slice;
    };
    std::vector<std::vector<std::size_t>> slices(keys_.size());
    std::vector<Part> parts;
    const auto start = [&](std::size_t slice) {
      client::Command command{"SIFT.MADD", keys_[slice].name};
      for (const std::size_t record : slices[slice]) command.add(chunk.id(record));
      const auto ticket = judging_->start(keys_[slice].slot, std::move(command), Repeat::safe);
      parts.push_back({ticket, std::exchange(slices[slice], {}), slice});
    };
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] != Fate::unknown) continue;
      const std::size_t slice = placement_.probe(chunk.keys[i], 0).slice;
      slices[slice].push_back(i);
      if (slices[slice].size() == client::kIdsPerCommand) start(slice);
    }
    for (std::size_t slice = 0; slice < slices.size(); ++slice) {
      if (!slices[slice].empty()) start(slice);
    }
    bool sound = true;
    for (const Part& part : parts) {
      const auto reply = judging_->finish(part.ticket);
      if (!reply) {
        sound = fail(judging_->problem());
        continue;
      }
      if (reply->size() != part.records.size()) {
        sound = fail(client::explain(reply->view(), keys_[part.slice].name));
        continue;
      }
      for (std::size_t i = 0; i < part.records.size(); ++i) {
        const auto verdict = client::read_added(reply->at(i));
        if (!verdict || *verdict == Verdict::full || *verdict == Verdict::stale) {
          sound = fail(client::explain(reply->at(i), keys_[part.slice].name));
          break;
        }
        chunk.fates[part.records[i]] = fate_of(*verdict);
      }
    }
    return sound;
  }

  // What claims a chunk: the numbers of its attempts, for each record. An attempt has an owner of its own,
  // so that a release that comes late, after its connection was lost, cannot free what was claimed since.
  struct Claims {
    std::chrono::steady_clock::time_point since;
    std::vector<std::uint32_t> attempts;
  };

  std::string owner(std::uint32_t attempt) const { return owner_ + '.' + std::to_string(attempt); }

  // At least once: all keys are claimed, for written() to commit them.
  bool claim(Chunk& chunk) {
    std::vector<std::size_t> open;
    {
      // What we hold, and what comes again in this chunk, is a duplicate: a server would grant it again.
      DigestSet met;
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < chunk.records.size(); ++i) {
        if (chunk.fates[i] != Fate::unknown) continue;
        if (held_.contains(chunk.keys[i]) || !met.insert(chunk.keys[i]).second) {
          chunk.fates[i] = Fate::duplicate;
        } else {
          open.push_back(i);
        }
      }
    }
    Claims claims{std::chrono::steady_clock::now(),
                  std::vector<std::uint32_t>(chunk.records.size())};
    std::vector<std::size_t> pending;
    while (!open.empty()) {
      if (!ask(chunk, open, claims, pending)) return false;
      open.clear();
      if (pending.empty()) break;
      ++waits_;
      const std::size_t lowest = *std::min_element(
          pending.begin(), pending.end(),
          [&](std::size_t a, std::size_t b) { return less(chunk.keys[a], chunk.keys[b]); });
      if (!give_back(chunk, chunk.keys[lowest], claims, open)) return false;
      if (!wait_for(chunk, lowest, claims)) return false;
      for (const std::size_t record : pending) {
        if (record != lowest) open.push_back(record);
      }
      std::sort(open.begin(), open.end());
    }
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] == Fate::first) held_.insert(chunk.keys[i]);
    }
    claims_.push_back(std::move(claims));
    return true;
  }

  // Claims these; those that others hold are `pending`, the others have their fate.
  bool ask(Chunk& chunk, const std::vector<std::size_t>& records, Claims& claims,
           std::vector<std::size_t>& pending) {
    std::vector<Cluster::Ticket> tickets;
    tickets.reserve(records.size());
    const std::string owner = this->owner(attempt_);
    for (const std::size_t i : records) {
      const SiftKey& key = key_of(chunk, i);
      tickets.push_back(judging_->start(
          key.slot, client::claim_command(key, chunk.id(i), owner, settings_.claim_ms),
          Repeat::safe));
    }
    pending.clear();
    bool sound = true;
    for (std::size_t t = 0; t < tickets.size(); ++t) {
      const auto reply = judging_->finish(tickets[t]);
      const auto claimed =
          reply ? client::read_claim(reply->view()) : Result<Claimed>(reply.error());
      if (!claimed || *claimed == Claimed::full) {
        sound = fail(reply ? client::explain(reply->view(), key_of(chunk, records[t]).name)
                           : judging_->problem());
      } else if (*claimed == Claimed::pending) {
        pending.push_back(records[t]);
      } else {
        chunk.fates[records[t]] = *claimed == Claimed::fresh ? Fate::first : Fate::duplicate;
        claims.attempts[records[t]] = attempt_;
      }
    }
    return sound;
  }

  // What this chunk holds above the digest is free again, and open.
  bool give_back(Chunk& chunk, Digest above, const Claims& claims, std::vector<std::size_t>& open) {
    std::vector<Cluster::Ticket> tickets;
    const std::size_t first = open.size();
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] != Fate::first || !less(above, chunk.keys[i])) continue;
      const SiftKey& key = key_of(chunk, i);
      tickets.push_back(judging_->start(
          key.slot, client::release_command(key, chunk.id(i), owner(claims.attempts[i])),
          Repeat::safe));
      chunk.fates[i] = Fate::unknown;
      open.push_back(i);
    }
    bool sound = true;
    for (std::size_t t = 0; t < tickets.size(); ++t) {
      const auto reply = judging_->finish(tickets[t]);
      if (reply && client::read_flag(reply->view())) continue;
      sound = fail(reply ? client::explain(reply->view(), key_of(chunk, open[first + t]).name)
                         : judging_->problem());
    }
    ++attempt_;
    return sound;
  }

  bool wait_for(Chunk& chunk, std::size_t record, Claims& claims) {
    std::vector<std::size_t> pending = {record};
    StopPatience patience;
    for (auto pause = kFirstPause; !pending.empty(); pause = std::min(2 * pause, kLongestPause)) {
      std::this_thread::sleep_for(pause);
      if (patience.is_over()) {
        return fail("stopped while another producer holds a key of " + key_of(chunk, record).name);
      }
      if (failed() || !ask(chunk, {record}, claims, pending)) return false;
    }
    return true;
  }

  // What was written is remembered.
  bool commit(const Chunk& chunk) {
    Claims claims;
    {
      const std::lock_guard lock(mutex_);
      claims = std::move(claims_.front());
      claims_.pop_front();
    }
    std::vector<std::size_t> records;
    std::vector<Cluster::Ticket> tickets;
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] != Fate::first) continue;
      const SiftKey& key = key_of(chunk, i);
      records.push_back(i);
      tickets.push_back(committing_->start(
          key.slot, client::commit_command(key, chunk.id(i), owner(claims.attempts[i])),
          Repeat::safe));
    }
    bool sound = true;
    std::vector<std::size_t> lost;
    std::uint64_t seen = 0;
    for (std::size_t t = 0; t < tickets.size(); ++t) {
      const auto reply = committing_->finish(tickets[t]);
      const auto committed =
          reply ? client::read_commit(reply->view()) : Result<Committed>(reply.error());
      if (!committed || *committed == Committed::full) {
        sound = fail(reply ? client::explain(reply->view(), key_of(chunk, records[t]).name)
                           : committing_->problem());
      } else if (*committed == Committed::lost) {
        lost.push_back(records[t]);
      } else if (*committed == Committed::seen) {
        ++seen;
      }
    }
    sound = remember(chunk, lost) && sound;
    const std::lock_guard lock(mutex_);
    for (const std::size_t record : records) held_.erase(chunk.keys[record]);
    // Before the end of the claim `seen` is a commit of ours that was repeated.
    const auto age = std::chrono::steady_clock::now() - claims.since;
    if (age >= std::chrono::milliseconds(settings_.claim_ms)) late_ += seen + lost.size();
    return sound;
  }

  // A claim that ended before the commit: another may have the key, or nobody.
  bool remember(const Chunk& chunk, const std::vector<std::size_t>& records) {
    std::vector<Cluster::Ticket> tickets;
    for (const std::size_t i : records) {
      const SiftKey& key = key_of(chunk, i);
      tickets.push_back(
          committing_->start(key.slot, {"SIFT.ADD", key.name, chunk.id(i)}, Repeat::safe));
    }
    bool sound = true;
    for (std::size_t t = 0; t < tickets.size(); ++t) {
      const auto reply = committing_->finish(tickets[t]);
      const auto added = reply ? client::read_added(reply->view()) : Result<Verdict>(reply.error());
      if (added && *added != Verdict::full) continue;
      sound = fail(reply ? client::explain(reply->view(), key_of(chunk, records[t]).name)
                         : committing_->problem());
    }
    return sound;
  }

  const RemoteSettings settings_;
  const std::string owner_;
  const Placement placement_;
  std::vector<SiftKey> keys_;
  const std::unique_ptr<Cluster> judging_;     // one of these for each of the two stages,
  const std::unique_ptr<Cluster> committing_;  // which are on different threads
  std::uint32_t attempt_ = 0;
  std::uint64_t waits_ = 0;
  std::uint64_t late_ = 0;

  mutable std::mutex mutex_;   // of all below
  DigestSet held_;             // claimed, and not yet committed
  std::deque<Claims> claims_;  // of the chunks that are not yet written, by their numbers
  std::string problem_;
  bool failed_ = false;
};

}  // namespace

std::string make_owner() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string owner = "semel-";
  for (std::uint64_t bits = random_number(), i = 0; i < 16; ++i, bits >>= 4) {
    owner += kDigits[bits & 15];
  }
  return owner;
}

Result<std::unique_ptr<Cluster>> connect(const client::Url& url, const RemoteSettings& settings,
                                         std::string& problem) {
  client::Url with_password = url;
  if (url.password.empty()) with_password.password = settings.password;
  if (!url.user.empty() && with_password.password.empty()) {
    problem = "user " + quoted(url.user) +
              " needs a password; allowed: SEMEL_PASSWORD, --password-file, or in the URL";
    return Error{Errc::invalid, "a user without a password"};
  }
  // Whoever holds a claim learns in time whether it could be committed.
  const client::ClusterOptions patience;
  auto cluster = std::make_unique<Cluster>(
      std::move(with_password),
      client::ClusterOptions{
          .deadline_ms = std::min<std::int64_t>(patience.deadline_ms, settings.claim_ms / 2),
          .replicas = settings.replicas,
          .seed = random_number()});
  cluster->end_by(std::chrono::steady_clock::now() + std::chrono::milliseconds(settings.claim_ms));
  if (const auto connected = cluster->connect(); !connected) {
    problem = cluster->problem();
    return connected.error();
  }
  return cluster;
}

Result<std::unique_ptr<Judge>> make_remote_judge(const client::Url& url, std::uint32_t slices,
                                                 const RemoteSettings& settings,
                                                 std::string& problem) {
  auto judging = connect(url, settings, problem);
  if (!judging) return judging.error();
  auto committing = connect(url, settings, problem);
  if (!committing) return committing.error();
  auto judge =
      std::make_unique<RemoteJudge>(settings, slices, *std::move(judging), *std::move(committing));
  if (const auto begun = judge->begin(problem); !begun) return begun.error();
  return std::unique_ptr<Judge>(std::move(judge));
}

}  // namespace semel::cli
