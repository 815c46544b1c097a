#include "client/remote_slice.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/slices/mailbox.h"

namespace semel::client {
namespace {

constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{64};

// As it is sent.
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

std::vector<std::size_t> all_of(const SliceCall& call) {
  std::vector<std::size_t> all(call.keys.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

Verdict verdict_of(Claimed claimed) {
  switch (claimed) {
    case Claimed::fresh:
      return Verdict::fresh;
    case Claimed::seen:
      return Verdict::duplicate;
    case Claimed::full:
      return Verdict::full;
    case Claimed::pending:
      break;
  }
  return Verdict::stale;
}

// A claim is lost at its end at the earliest: before that, `seen` is by a commit of this owner that was
// repeated.
Verdict verdict_of(Committed committed) {
  switch (committed) {
    case Committed::done:
    case Committed::seen:
      return Verdict::fresh;
    case Committed::full:
      return Verdict::full;
    case Committed::lost:
      break;
  }
  return Verdict::stale;
}

}  // namespace

RemoteSlice::RemoteSlice(Cluster& cluster, SiftKey key, Options options)
    : cluster_(cluster), key_(std::move(key)), options_(std::move(options)) {}

bool RemoteSlice::claims(const SliceCall& call) const {
  return call.action == SliceAction::test_and_set && options_.taking == Taking::claimed &&
         call.at_ms.empty();
}

std::string RemoteSlice::owner_of(const SliceCall& call) const {
  return call.action == SliceAction::test_and_set ? options_.owner : std::to_string(call.owner);
}

void RemoteSlice::fail(SliceCall& call, std::string problem) {
  call.failed = true;
  problem_ = std::move(problem);
}

void RemoteSlice::start(SliceCall& call) {
  call.failed = false;
  call.verdicts.assign(call.keys.size(), Verdict::fresh);
  std::vector<std::size_t> asked = all_of(call);
  if (claims(call)) {
    // The second claim of an owner is granted as the first was, and says nothing: take() knows.
    const std::vector<std::size_t> before = repetitions(call.keys);
    std::erase_if(asked, [&](std::size_t i) { return before[i] != kNoRepetition; });
  }
  Started& started = started_.emplace_back(Started{&call, {}});
  ask(call, asked, started.parts);
}

// Queues the action for these keys, and says which ticket is for which.
void RemoteSlice::ask(SliceCall& call, std::span<const std::size_t> keys,
                      std::vector<Part>& parts) {
  const auto single = [&](std::size_t key, Command command) {
    parts.push_back({cluster_.start(key_.slot, std::move(command), Repeat::safe), key, 1});
  };
  const bool timed = !call.at_ms.empty();
  switch (call.action) {
    case SliceAction::claim:
      for (const std::size_t i : keys) {
        const TimeMs claim_ms = std::max<TimeMs>(call.claim_until_ms - call.now_ms, 1);
        single(i, claim_command(key_, IdBytes(call.keys[i]).view(), owner_of(call), claim_ms));
      }
      return;
    case SliceAction::commit:
      for (const std::size_t i : keys) {
        single(i, commit_command(key_, IdBytes(call.keys[i]).view(), owner_of(call)));
      }
      return;
    case SliceAction::release:
      for (const std::size_t i : keys) {
        single(i, release_command(key_, IdBytes(call.keys[i]).view(), owner_of(call)));
      }
      return;
    case SliceAction::forget:
      return;  // a commit of the module is not kept apart
    case SliceAction::test_and_set:
      if (!claims(call)) break;
      for (const std::size_t i : keys) {
        single(i, claim_command(key_, IdBytes(call.keys[i]).view(), owner_of(call),
                                options_.claim_ms));
      }
      return;
    case SliceAction::test:
    case SliceAction::set:
      break;
  }
  // All keys, in lists.
  for (std::size_t first = 0; first < call.keys.size(); first += kIdsPerCommand) {
    const std::size_t count = std::min(kIdsPerCommand, call.keys.size() - first);
    Command command;
    if (call.action == SliceAction::test) {
      command.add("SIFT.MTEST").add(key_.name);
    } else if (call.action == SliceAction::test_and_set && !timed) {
      command.add("SIFT.MADD").add(key_.name);
    } else {
      command.add("SIFT.INSERT").add(key_.name);
      if (call.action == SliceAction::set) command.add("RENEW");
      if (timed) command.add("TIMED");
      command.add("ITEMS");
    }
    for (std::size_t i = first; i < first + count; ++i) {
      command.add(IdBytes(call.keys[i]).view());
      if (timed && call.action != SliceAction::test) command.add(call.at_ms[i]);
    }
    parts.push_back({cluster_.start(key_.slot, std::move(command), Repeat::safe), first, count});
  }
}

void RemoteSlice::finish(SliceCall& call) {
  const auto started = std::find_if(started_.begin(), started_.end(),
                                    [&](const Started& one) { return one.call == &call; });
  SEMEL_ASSERT(started != started_.end());
  std::vector<Part> parts = std::move(started->parts);
  started_.erase(started);
  if (claims(call)) return take(call, std::move(parts));
  for (const Part& part : parts) read(call, part);
}

void RemoteSlice::read(SliceCall& call, const Part& part) {
  const auto reply = cluster_.finish(part.ticket);
  if (!reply) return fail(call, cluster_.problem());
  if (call.failed) return;
  const auto verdict = [&](std::size_t i) -> Result<Verdict> {
    const ReplyView answer = reply->view();
    switch (call.action) {
      case SliceAction::claim: {
        const auto claimed = read_claim(answer);
        if (!claimed) return claimed.error();
        return verdict_of(*claimed);
      }
      case SliceAction::commit: {
        const auto committed = read_commit(answer);
        if (!committed) return committed.error();
        return verdict_of(*committed);
      }
      case SliceAction::release: {
        const auto released = read_flag(answer);
        if (!released) return released.error();
        return *released ? Verdict::fresh : Verdict::stale;
      }
      case SliceAction::test: {
        if (answer.size() != part.count) break;
        const auto known = read_flag(answer.at(i));
        if (!known) return known.error();
        return *known ? Verdict::duplicate : Verdict::fresh;
      }
      case SliceAction::set:
      case SliceAction::test_and_set:
      case SliceAction::forget:
        if (answer.size() != part.count) break;
        return read_added(answer.at(i));
    }
    return Error{Errc::mismatch, "an answer of another kind"};
  };
  for (std::size_t i = 0; i < part.count; ++i) {
    const auto answer = verdict(i);
    if (!answer) return fail(call, explain(reply->view(), key_.name));
    call.verdicts[part.first + i] = *answer;
  }
}

// Claims until no id is held by another, and commits what is ours at once: whoever waits for it goes on.
void RemoteSlice::take(SliceCall& call, std::vector<Part> claims) {
  auto pause = kFirstPause;
  while (!claims.empty()) {
    std::vector<std::size_t> granted;
    std::vector<std::size_t> again;
    for (const Part& part : claims) {
      const auto reply = cluster_.finish(part.ticket);
      if (!reply) {
        fail(call, cluster_.problem());
        continue;
      }
      const auto claimed = read_claim(reply->view());
      if (!claimed) {
        fail(call, explain(reply->view(), key_.name));
        continue;
      }
      call.verdicts[part.first] = verdict_of(*claimed);
      if (*claimed == Claimed::fresh) granted.push_back(part.first);
      if (*claimed == Claimed::pending) again.push_back(part.first);
    }
    if (call.failed) return;
    const bool waits = granted.empty();
    std::vector<Part> commits;
    for (const std::size_t i : granted) {
      commits.push_back(
          {cluster_.start(key_.slot,
                          commit_command(key_, IdBytes(call.keys[i]).view(), options_.owner),
                          Repeat::safe),
           i, 1});
    }
    for (const Part& part : commits) {
      const auto reply = cluster_.finish(part.ticket);
      const auto committed = reply ? read_commit(reply->view()) : Result<Committed>(reply.error());
      if (!committed) {
        fail(call, reply ? explain(reply->view(), key_.name) : cluster_.problem());
      } else if (*committed == Committed::lost) {
        again.push_back(part.first);
      } else {
        call.verdicts[part.first] = verdict_of(*committed);
      }
    }
    if (call.failed) return;
    claims.clear();
    if (!again.empty() && waits) {
      if (options_.gives_up && options_.gives_up()) {
        return fail(call, "stopped while another producer holds a key of " + key_.name);
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
    ask(call, again, claims);
  }
  const std::vector<std::size_t> before = repetitions(call.keys);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == kNoRepetition) continue;
    // Of one that was refused, so is the next.
    const Verdict first = call.verdicts[before[i]];
    call.verdicts[i] = first == Verdict::fresh ? Verdict::duplicate : first;
  }
}

std::uint64_t RemoteSlice::bytes() const {
  std::string ignored;
  const auto info = read_info(cluster_, {&key_, 1}, ignored);
  return info ? info->front().bytes : 0;
}

double RemoteSlice::false_positive_rate() const {
  std::string ignored;
  const auto info = read_info(cluster_, {&key_, 1}, ignored);
  return info ? info->front().error_now : 0;
}

}  // namespace semel::client
