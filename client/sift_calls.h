// The SIFT commands of the module: sends them and reads their replies.
//
// Contract  Calls keeps any number of commands on their way together. What the server refuses is an
//           Error, in one sentence that says what to do about it.
//           Claims, commits, releases, tests and renewing inserts may be sent again without harm:
//           an owner that claims what it holds gets it again, and a commit that was made is `seen`.
//           An addition that was executed and is sent again is a duplicate of itself.
// Example   Calls<ClaimAnswer> claims(cluster);
//           claims.add_list(key, claim_by("me", 60'000), ids.size(), read_claim,
//                           [&](Command& to, std::size_t i) { to.add(ids[i]); });
//           const std::vector<ClaimAnswer> answers = SEMEL_TRY(claims.finish());
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cluster.h"
#include "client/command.h"
#include "client/reply.h"
#include "semel/core/clock.h"
#include "semel/core/result.h"
#include "semel/sift/claim_table.h"
#include "semel/window/window.h"

namespace semel::client {

// Longer lists are cut into several commands, so that none holds up other clients of a server.
inline constexpr std::size_t kIdsPerCommand = 512;

// A key that holds a window, and where it belongs.
struct SiftKey {
  explicit SiftKey(std::string name_of_key) : name(std::move(name_of_key)), slot(slot_of(name)) {}
  std::string name;
  std::uint32_t slot;
};

// Each reader returns nullopt for a reply that its command never has.
std::optional<ClaimAnswer> read_claim(ReplyView reply);    // fresh, pending, seen or full
std::optional<ClaimAnswer> read_commit(ReplyView reply);   // done, seen, lost or full
std::optional<ClaimAnswer> read_release(ReplyView reply);  // 1: done, 0: lost
std::optional<Verdict> read_test(ReplyView reply);         // 1: duplicate, 0: fresh
std::optional<Verdict> read_insert(ReplyView reply);       // 1: fresh, 0: duplicate; stale or full

// Explains an error, or a reply that makes no sense, to the user of this key.
// Errc::unsupported if the server has no such commands, otherwise Errc::mismatch.
Error refusal(ReplyView reply, std::string_view key);
// Returns the error for a key that has no room for more.
Error no_room(std::string_view key);

// The words of a command on a list of ids, except for its key and its ids.
struct ListWords {
  const char* name;
  std::vector<std::string> before_ids = {};
};
ListWords claim_by(std::string_view owner, TimeMs claim_ms);
ListWords commit_by(std::string_view owner);
ListWords release_by(std::string_view owner);

// Commands on ids that are on their way together.
template <class Answer>
class Calls {
 public:
  // REQUIRES: the cluster, and all keys, outlive it.
  explicit Calls(Cluster& cluster) : cluster_(&cluster) {}

  using Read = std::optional<Answer> (*)(ReplyView);
  // Queues a command on one id.
  void add(const SiftKey& key, Command command, Read read) {
    asked_.push_back(
        {cluster_->start(key.slot, std::move(command), Repeat::safe), &key, std::nullopt, read});
  }
  // Queues commands on lists of ids, whose replies are lists of as many answers. `words` gives a
  // command its words before the ids, add_id(command, i) adds the i-th id to it.
  template <class AddId>
  void add_list(const SiftKey& key, const ListWords& words, std::size_t ids, Read read,
                AddId add_id) {
    for (std::size_t first = 0; first < ids; first += kIdsPerCommand) {
      const std::size_t end = std::min(ids, first + kIdsPerCommand);
      Command command{words.name, key.name};
      for (const std::string& word : words.before_ids) command.add(word);
      for (std::size_t i = first; i < end; ++i) add_id(command, i);
      asked_.push_back(
          {cluster_->start(key.slot, std::move(command), Repeat::safe), &key, end - first, read});
    }
  }

  // Sends all that is queued at this client and waits for all answers. Returns one for each id, in
  // the order of the commands, or the first error.
  Result<std::vector<Answer>> finish() {
    std::vector<Answer> answers;
    std::optional<Error> error;
    for (const Asked& asked : std::exchange(asked_, {})) {
      const auto done = finish(asked, answers);
      if (!done && !error) error = done.error();
    }
    if (error) return *error;
    return answers;
  }

 private:
  struct Asked {
    Cluster::Ticket ticket;
    const SiftKey* key;
    std::optional<std::size_t> ids;  // of a list
    Read read;
  };

  Result<void> finish(const Asked& asked, std::vector<Answer>& answers) {
    const Reply reply = SEMEL_TRY(cluster_->finish(asked.ticket));
    if (asked.ids && reply.size() != *asked.ids) return refusal(reply.view(), asked.key->name);
    for (std::size_t i = 0; i < asked.ids.value_or(1); ++i) {
      const ReplyView one = asked.ids ? reply.at(i) : reply.view();
      const std::optional<Answer> answer = asked.read(one);
      if (!answer) return refusal(one, asked.key->name);
      answers.push_back(*answer);
    }
    return {};
  }

  Cluster* cluster_;
  std::vector<Asked> asked_;
};

// The settings of a window.
struct SiftShape {
  TimeMs window_ms = 0;
  bool exact = false;
  double error = 0;            // unless exact
  std::uint64_t capacity = 0;  // ids expected in a window
};

struct SiftInfo {
  TimeMs window_ms = 0;
  std::string structure;
  double error = 0;
  double error_now = 0;  // the probability that a new id is taken for a duplicate
  std::uint64_t bytes = 0;
};

// Makes the missing keys. Errc::mismatch if an existing key was made for another window, error or
// structure, or is something else; Errc::unsupported if the server has no such commands.
Result<void> reserve(Cluster& cluster, std::span<const SiftKey> keys, const SiftShape& shape);

// The first producer of a stream stores the number of its slices in the key NAME:slices. The names
// of the keys depend on this number, so another number would be another stream. expect_slices()
// only compares it, record_slices() also stores it. Errc::mismatch if another number is there.
Result<void> expect_slices(Cluster& cluster, const std::string& name, std::uint32_t slices);
Result<void> record_slices(Cluster& cluster, const std::string& name, std::uint32_t slices);

// Reads all keys in one pipeline. Errors are those of reserve().
Result<std::vector<SiftInfo>> read_info(Cluster& cluster, std::span<const SiftKey> keys);

}  // namespace semel::client
