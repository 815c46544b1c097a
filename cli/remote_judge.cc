#include "cli/remote_judge.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>
#include <unordered_set>

#include "cli/options.h"
#include "cli/serial_judge.h"
#include "cli/sift_report.h"
#include "cli/stop_signal.h"
#include "semel/core/internal/arithmetic.h"

namespace semel::cli {
namespace {

using client::Cluster;
using client::SiftKey;

constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{64};

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

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

  Result<void> begin() {
    const auto slices = static_cast<std::uint32_t>(keys_.size());
    SEMEL_TRY(client::expect_slices(*judging_, settings_.stream, slices));
    SEMEL_TRY(client::reserve(*judging_, keys_, settings_.shape));
    SEMEL_TRY(client::record_slices(*judging_, settings_.stream, slices));
    judging_->end_by(client::kNever);
    committing_->end_by(client::kNever);
    return {};
  }

  Result<void> written(const Chunk& chunk) override {
    if (settings_.delivery == Delivery::at_most_once) return {};
    return keep(commit(chunk));
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
          << " written after the end of the claim, perhaps by another producer too\n";
    }
    return out.str();
  }
  JsonObject json_details() const override {
    return JsonObject()
        .add("primaries", judging_->primaries())
        .add("replicas", judging_->replicas())
        .add("retries", retries())
        .add("waits", waits_)
        .add("perhaps_twice", late_);
  }

 private:
  std::uint64_t retries() const {
    return judging_->counts().retries() + committing_->counts().retries();
  }

  Trust measure() const override {
    Trust trust;
    trust.windows = keys_.size();
    if (error()) return trust;
    const auto infos = client::read_info(*judging_, keys_);
    if (!infos) return trust;
    for (const client::SiftInfo& info : *infos) {
      trust.bytes += info.bytes;
      trust.error_now += info.error_now / static_cast<double>(keys_.size());
    }
    return trust;
  }

  // Keeps the first error, and returns it: after it, no server is waited for again.
  Result<void> keep(const Result<void>& done) {
    const std::lock_guard lock(mutex_);
    if (!done && !error_) error_ = done.error();
    if (!done) return *error_;
    return {};
  }
  std::optional<Error> error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

  const SiftKey& key_of(const Chunk& chunk, std::size_t record) const {
    return keys_[placement_.probe(chunk.keys[record], 0).slice];
  }

  Result<void> judge_in_turn(Chunk& chunk) override {
    if (const auto failed = error()) return *failed;
    return keep(settings_.delivery == Delivery::at_most_once ? add(chunk) : claim(chunk));
  }

  // Records that one owner asks about at one key.
  struct Group {
    std::size_t slice;
    std::uint32_t attempt;
    auto operator<=>(const Group&) const = default;
  };

  // Asks about these records, in lists: words_of(attempt) are the words of a command, attempt_of(i)
  // is the attempt of a record. Puts the records in the order of the answers.
  template <class Answer, class WordsOf, class AttemptOf>
  Result<std::vector<Answer>> ask_all(Cluster& cluster, const Chunk& chunk,
                                      std::vector<std::size_t>& records,
                                      typename client::Calls<Answer>::Read read, WordsOf words_of,
                                      AttemptOf attempt_of) {
    std::map<Group, std::vector<std::size_t>> groups;
    for (const std::size_t i : records) {
      groups[{placement_.probe(chunk.keys[i], 0).slice, attempt_of(i)}].push_back(i);
    }
    records.clear();
    client::Calls<Answer> calls(cluster);
    for (const auto& [group, of_group] : groups) {
      calls.add_list(
          keys_[group.slice], words_of(group.attempt), of_group.size(), read,
          [&, &all = of_group](client::Command& to, std::size_t i) { to.add(chunk.id(all[i])); });
      records.insert(records.end(), of_group.begin(), of_group.end());
    }
    return calls.finish();
  }

  // Adds these records in one step, in order.
  Result<std::vector<Verdict>> add_all(Cluster& cluster, const Chunk& chunk,
                                       std::vector<std::size_t>& records) {
    return ask_all<Verdict>(
        cluster, chunk, records, client::read_insert,
        [](std::uint32_t) { return client::ListWords{"SIFT.MADD"}; },
        [](std::size_t) { return 0u; });
  }

  // Adds the keys in one step, in order: at most once.
  Result<void> add(Chunk& chunk) {
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] == Fate::unknown) asked.push_back(i);
    }
    const std::vector<Verdict> verdicts = SEMEL_TRY(add_all(*judging_, chunk, asked));
    for (std::size_t i = 0; i < asked.size(); ++i) {
      SEMEL_TRY(refuse_unjudged(verdicts[i], key_of(chunk, asked[i])));
      chunk.fates[asked[i]] = fate_of(verdicts[i]);
    }
    return {};
  }

  static Result<void> refuse_unjudged(Verdict verdict, const SiftKey& key) {
    if (verdict == Verdict::full) return client::no_room(key.name);
    if (verdict == Verdict::stale) {
      return Error{Errc::mismatch,
                   "the server refuses a new id as too old, in "
                   "key " +
                       key.name};
    }
    return {};
  }

  // The claims of a chunk: the number of the attempt that claimed each record. An attempt has an
  // owner of its own. So a release that comes late, after its connection was lost, cannot free what
  // was claimed since.
  struct Claims {
    std::chrono::steady_clock::time_point since;
    std::vector<std::uint32_t> attempts;
  };

  std::string owner(std::uint32_t attempt) const { return owner_ + '.' + std::to_string(attempt); }

  // Claims all keys, for written() to commit them: at least once.
  Result<void> claim(Chunk& chunk) {
    std::vector<std::size_t> open = not_held(chunk);
    Claims claims{std::chrono::steady_clock::now(),
                  std::vector<std::uint32_t>(chunk.records.size())};
    while (!open.empty()) {
      const std::vector<std::size_t> pending = SEMEL_TRY(ask(chunk, open, claims));
      open.clear();
      if (pending.empty()) break;
      ++waits_;
      const std::size_t lowest = *std::min_element(
          pending.begin(), pending.end(),
          [&](std::size_t a, std::size_t b) { return chunk.keys[a] < chunk.keys[b]; });
      SEMEL_TRY(give_back(chunk, chunk.keys[lowest], claims, open));
      SEMEL_TRY(wait_for(chunk, lowest, claims));
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
    return {};
  }

  // Returns the records that a server must be asked about. A key that we hold, or that comes again
  // in this chunk, is a duplicate: a server would grant it again.
  std::vector<std::size_t> not_held(Chunk& chunk) {
    std::vector<std::size_t> open;
    std::unordered_set<Digest> met;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] != Fate::unknown) continue;
      if (held_.contains(chunk.keys[i]) || !met.insert(chunk.keys[i]).second) {
        chunk.fates[i] = Fate::duplicate;
      } else {
        open.push_back(i);
      }
    }
    return open;
  }

  // Claims these records. Returns those that others hold; the rest have their fate.
  Result<std::vector<std::size_t>> ask(Chunk& chunk, std::vector<std::size_t> records,
                                       Claims& claims) {
    const std::vector<ClaimAnswer> answers = SEMEL_TRY(ask_all<ClaimAnswer>(
        *judging_, chunk, records, client::read_claim,
        [&](std::uint32_t attempt) { return client::claim_by(owner(attempt), settings_.claim_ms); },
        [&](std::size_t) { return attempt_; }));
    std::vector<std::size_t> pending;
    for (std::size_t n = 0; n < records.size(); ++n) {
      const std::size_t i = records[n];
      if (answers[n] == ClaimAnswer::full) return client::no_room(key_of(chunk, i).name);
      if (answers[n] == ClaimAnswer::pending) {
        pending.push_back(i);
      } else {
        chunk.fates[i] = answers[n] == ClaimAnswer::fresh ? Fate::first : Fate::duplicate;
        claims.attempts[i] = attempt_;
      }
    }
    return pending;
  }

  // Releases the keys of this chunk with digests above this one, and adds their records to `open`.
  Result<void> give_back(Chunk& chunk, Digest above, const Claims& claims,
                         std::vector<std::size_t>& open) {
    std::vector<std::size_t> records;
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] != Fate::first || chunk.keys[i] <= above) continue;
      chunk.fates[i] = Fate::unknown;
      records.push_back(i);
    }
    open.insert(open.end(), records.begin(), records.end());
    ++attempt_;
    SEMEL_TRY(ask_all<ClaimAnswer>(
        *judging_, chunk, records, client::read_release,
        [&](std::uint32_t attempt) { return client::release_by(owner(attempt)); },
        [&](std::size_t i) { return claims.attempts[i]; }));
    return {};
  }

  Result<void> wait_for(Chunk& chunk, std::size_t record, Claims& claims) {
    StopPatience patience;
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      std::this_thread::sleep_for(pause);
      if (patience.is_over()) {
        return Error{Errc::busy,
                     "stopped while another producer holds a key of " + key_of(chunk, record).name};
      }
      if (const auto failed = error()) return *failed;
      const std::vector<std::size_t> pending = SEMEL_TRY(ask(chunk, {record}, claims));
      if (pending.empty()) return {};
    }
  }

  // Commits the keys of the records that were written.
  Result<void> commit(const Chunk& chunk) {
    Claims claims;
    {
      const std::lock_guard lock(mutex_);
      claims = std::move(claims_.front());
      claims_.pop_front();
    }
    std::vector<std::size_t> records;
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] == Fate::first) records.push_back(i);
    }
    const std::vector<ClaimAnswer> answers = SEMEL_TRY(ask_all<ClaimAnswer>(
        *committing_, chunk, records, client::read_commit,
        [&](std::uint32_t attempt) { return client::commit_by(owner(attempt)); },
        [&](std::size_t i) { return claims.attempts[i]; }));
    std::vector<std::size_t> lost;
    std::uint64_t seen = 0;
    for (std::size_t n = 0; n < records.size(); ++n) {
      if (answers[n] == ClaimAnswer::full) return client::no_room(key_of(chunk, records[n]).name);
      if (answers[n] == ClaimAnswer::lost) lost.push_back(records[n]);
      if (answers[n] == ClaimAnswer::seen) ++seen;
    }
    SEMEL_TRY(insert(chunk, lost));
    const std::lock_guard lock(mutex_);
    for (const std::size_t record : records) held_.erase(chunk.keys[record]);
    // Before the end of the claim, `seen` means that our own commit was repeated.
    const auto age = std::chrono::steady_clock::now() - claims.since;
    if (age >= std::chrono::milliseconds(settings_.claim_ms)) late_ += seen + lost.size();
    return {};
  }

  // Inserts keys whose claims ended before the commit: another producer may have them, or nobody.
  Result<void> insert(const Chunk& chunk, std::vector<std::size_t> records) {
    const std::vector<Verdict> verdicts = SEMEL_TRY(add_all(*committing_, chunk, records));
    for (std::size_t n = 0; n < records.size(); ++n) {
      if (verdicts[n] == Verdict::full) return client::no_room(key_of(chunk, records[n]).name);
    }
    return {};
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

  mutable std::mutex mutex_;         // of all below
  std::unordered_set<Digest> held_;  // claimed, and not yet committed
  std::deque<Claims> claims_;        // of the chunks that are not yet written, by their numbers
  std::optional<Error> error_;
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

Result<std::unique_ptr<Cluster>> connect(const client::Url& url, const RemoteSettings& settings) {
  client::Url with_password = url;
  if (url.password.empty()) with_password.password = settings.password;
  if (!url.user.empty() && with_password.password.empty()) {
    return Error{Errc::invalid,
                 "user " + quoted(url.user) +
                     " needs a password; allowed: SEMEL_PASSWORD, --password-file, or in the URL"};
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
  SEMEL_TRY(cluster->connect());
  return cluster;
}

Result<std::unique_ptr<Judge>> make_remote_judge(const client::Url& url, std::uint32_t slices,
                                                 const RemoteSettings& settings) {
  auto judging = SEMEL_TRY(connect(url, settings));
  auto committing = SEMEL_TRY(connect(url, settings));
  auto judge =
      std::make_unique<RemoteJudge>(settings, slices, std::move(judging), std::move(committing));
  SEMEL_TRY(judge->begin());
  return std::unique_ptr<Judge>(std::move(judge));
}

}  // namespace semel::cli
