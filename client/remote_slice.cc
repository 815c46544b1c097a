#include "client/remote_slice.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/codec.h"

namespace semel::client {
namespace {

constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{64};

// The bytes in which a digest is sent.
class IdBytes {
 public:
  explicit IdBytes(Digest key) {
    store_u64(bytes_.data(), key.lo);
    store_u64(bytes_.data() + 8, key.hi);
  }
  std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::array<std::uint8_t, 16> bytes_{};
};

bool is_of_claims(SliceAction action) {
  return action == SliceAction::claim || action == SliceAction::commit ||
         action == SliceAction::release;
}

// Returns the answer of a slice. No claim is lost before its end. Until then, `seen` for a commit
// means that this owner has committed before.
Verdict verdict_of(SliceAction action, ClaimAnswer answer) {
  switch (answer) {
    case ClaimAnswer::fresh:
    case ClaimAnswer::done:
      return Verdict::fresh;
    case ClaimAnswer::seen:
      return action == SliceAction::commit ? Verdict::fresh : Verdict::duplicate;
    case ClaimAnswer::full:
      return Verdict::full;
    case ClaimAnswer::pending:
    case ClaimAnswer::lost:
    case ClaimAnswer::stale:
      break;
  }
  return Verdict::stale;
}

// Returns the indices of the keys that no earlier key of the call equals. A second claim of the
// same owner is granted if the first was, and so tells nothing.
std::vector<std::size_t> distinct(const SliceCall& call) {
  const std::vector<std::size_t> before = repetitions(call.keys);
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == kNoRepetition) first.push_back(i);
  }
  return first;
}

}  // namespace

RemoteSlice::RemoteSlice(Cluster& cluster, SiftKey key, Options options)
    : cluster_(cluster), key_(std::move(key)), options_(std::move(options)) {}

bool RemoteSlice::takes_by_claims(const SliceCall& call) const {
  return call.action == SliceAction::test_and_set && options_.taking == Taking::claimed &&
         call.at_ms.empty();
}

void RemoteSlice::start(SliceCall& call) {
  call.expect_answers();
  Started& started =
      started_.emplace_back(Started{&call, Calls<ClaimAnswer>(cluster_), Calls<Verdict>(cluster_)});
  if (takes_by_claims(call)) {
    claim(call, distinct(call), started.claims);
  } else if (is_of_claims(call.action)) {
    ask_claims(call, started.claims);
  } else if (call.action != SliceAction::forget) {  // the module keeps no commit apart
    ask_lists(call, started.lists);
  }
}

void RemoteSlice::claim(const SliceCall& call, const std::vector<std::size_t>& which,
                        Calls<ClaimAnswer>& claims) const {
  claims.add_list(key_, claim_by(options_.owner, options_.claim_ms), which.size(), read_claim,
                  [&](Command& to, std::size_t i) { to.add(IdBytes(call.keys[which[i]]).view()); });
}

void RemoteSlice::ask_claims(const SliceCall& call, Calls<ClaimAnswer>& claims) const {
  const std::string owner = std::to_string(call.owner);
  const TimeMs claim_ms = std::max<TimeMs>(call.claim_until_ms - call.now_ms, 1);
  const auto ask = [&](const ListWords& words, Calls<ClaimAnswer>::Read read) {
    claims.add_list(key_, words, call.keys.size(), read,
                    [&](Command& to, std::size_t i) { to.add(IdBytes(call.keys[i]).view()); });
  };
  if (call.action == SliceAction::claim) ask(claim_by(owner, claim_ms), read_claim);
  if (call.action == SliceAction::commit) ask(commit_by(owner), read_commit);
  if (call.action == SliceAction::release) ask(release_by(owner), read_release);
}

void RemoteSlice::ask_lists(const SliceCall& call, Calls<Verdict>& lists) const {
  const bool tests = call.action == SliceAction::test;
  const bool timed = !call.at_ms.empty() && !tests;
  ListWords words{tests ? "SIFT.MTEST" : "SIFT.MADD"};
  if (!tests && (call.action != SliceAction::test_and_set || timed)) {
    words.name = "SIFT.INSERT";
    if (call.action == SliceAction::set) words.before_ids.emplace_back("RENEW");
    if (timed) words.before_ids.emplace_back("TIMED");
    words.before_ids.emplace_back("ITEMS");
  }
  lists.add_list(key_, words, call.keys.size(), tests ? read_test : read_insert,
                 [&](Command& to, std::size_t i) {
                   to.add(IdBytes(call.keys[i]).view());
                   if (timed) to.add(call.at_ms[i]);
                 });
}

void RemoteSlice::finish(SliceCall& call) {
  const auto found = std::find_if(started_.begin(), started_.end(),
                                  [&](const Started& one) { return one.call == &call; });
  SEMEL_ASSERT(found != started_.end());
  Started started = std::move(*found);
  started_.erase(found);
  const auto answered = answer(call, std::move(started));
  call.failed = !answered;
  if (!answered) error_ = answered.error();
}

Result<void> RemoteSlice::answer(SliceCall& call, Started started) {
  if (takes_by_claims(call)) return take(call, std::move(started.claims));
  if (is_of_claims(call.action)) {
    const std::vector<ClaimAnswer> answers = SEMEL_TRY(started.claims.finish());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      // No claim is lost before its end. Until then, `seen` for a commit means that this owner has
      // committed before.
      const bool repeated = call.action == SliceAction::commit && answers[i] == ClaimAnswer::seen;
      call.claims[i] = repeated ? ClaimAnswer::done : answers[i];
    }
  } else if (call.action != SliceAction::forget) {
    call.verdicts = SEMEL_TRY(started.lists.finish());
  }
  return {};
}

Result<void> RemoteSlice::take(SliceCall& call, Calls<ClaimAnswer> claims) {
  auto pause = kFirstPause;
  for (std::vector<std::size_t> asked = distinct(call); !asked.empty();) {
    const std::vector<ClaimAnswer> answers = SEMEL_TRY(claims.finish());
    std::vector<std::size_t> granted;
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      call.verdicts[asked[i]] = verdict_of(SliceAction::claim, answers[i]);
      if (answers[i] == ClaimAnswer::fresh) granted.push_back(asked[i]);
      if (answers[i] == ClaimAnswer::pending) again.push_back(asked[i]);
    }
    SEMEL_TRY(commit(call, granted, again));
    if (!again.empty() && granted.empty()) {
      if (options_.gives_up && options_.gives_up()) {
        return Error{Errc::busy, "stopped while another producer holds a key of " + key_.name};
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
    claim(call, again, claims);
    asked = std::move(again);
  }
  // After an id that was refused, its repetition is refused too.
  const std::vector<std::size_t> before = repetitions(call.keys);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == kNoRepetition) continue;
    const Verdict first = call.verdicts[before[i]];
    call.verdicts[i] = first == Verdict::fresh ? Verdict::duplicate : first;
  }
  return {};
}

Result<void> RemoteSlice::commit(SliceCall& call, const std::vector<std::size_t>& granted,
                                 std::vector<std::size_t>& again) {
  Calls<ClaimAnswer> commits(cluster_);
  commits.add_list(
      key_, commit_by(options_.owner), granted.size(), read_commit,
      [&](Command& to, std::size_t i) { to.add(IdBytes(call.keys[granted[i]]).view()); });
  const std::vector<ClaimAnswer> answers = SEMEL_TRY(commits.finish());
  for (std::size_t i = 0; i < granted.size(); ++i) {
    if (answers[i] == ClaimAnswer::lost) {
      again.push_back(granted[i]);
    } else {
      call.verdicts[granted[i]] = verdict_of(SliceAction::commit, answers[i]);
    }
  }
  return {};
}

std::uint64_t RemoteSlice::bytes() const {
  const auto info = read_info(cluster_, {&key_, 1});
  return info ? info->front().bytes : 0;
}

double RemoteSlice::false_positive_rate() const {
  const auto info = read_info(cluster_, {&key_, 1});
  return info ? info->front().error_now : 0;
}

}  // namespace semel::client
