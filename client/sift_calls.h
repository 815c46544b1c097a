// The SIFT commands of the module, as they are asked and as they are answered.
//
// Contract  A command is on one key. What the server refuses is an Error, and explain() says it in one
//           sentence with what to do about it.
// Repeats   claim, commit, release, test and remember may be sent again without harm: an owner that claims
//           what it holds gets it again, and a commit that was made is `seen`. add may not: the answer of
//           the second is 'seen' where the first was executed and its answer was lost.
#pragma once

#include <cstdint>
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
#include "semel/window/window.h"

namespace semel::client {

// Longer lists are cut into several commands: one does not hold up the other clients of a server.
inline constexpr std::size_t kIdsPerCommand = 512;

// A key that holds a window, and where it belongs.
struct SiftKey {
  explicit SiftKey(std::string name_of_key) : name(std::move(name_of_key)), slot(slot_of(name)) {}
  std::string name;
  std::uint32_t slot;
};

enum class Claimed : std::uint8_t { fresh, pending, seen, full };
enum class Committed : std::uint8_t { done, seen, lost, full };

Command claim_command(const SiftKey& key, std::string_view id, std::string_view owner,
                      TimeMs claim_ms);
Command commit_command(const SiftKey& key, std::string_view id, std::string_view owner);
Command release_command(const SiftKey& key, std::string_view id, std::string_view owner);

// Of the readers of answers each refuses what is not one of those that its command has.
Result<Claimed> read_claim(ReplyView reply);
Result<Committed> read_commit(ReplyView reply);
Result<bool> read_flag(ReplyView reply);  // 1 or 0
// 1, 0, STALE or FULL, as an element of SIFT.MADD and SIFT.INSERT.
Result<Verdict> read_added(ReplyView reply);

// What an error of the server means to the user of this key.
std::string explain(ReplyView reply, std::string_view key);

// What a window is made for.
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
  double error_now = 0;  // that a new id is taken for a duplicate
  std::uint64_t bytes = 0;
};

// Makes the keys that are not there. Errc::mismatch if one is there that was made for another window,
// error or structure, or is something else; Errc::unsupported if the server has no such commands.
// `problem` says which.
Result<void> reserve(Cluster& cluster, std::span<const SiftKey> keys, const SiftShape& shape,
                     std::string& problem);
// How many slices a stream has is in none of its keys, and decides how they are called: another
// number would be another stream. So the first producer leaves it in the key NAME:slices.
// expect_slices() only looks, record_slices() leaves it there. Errc::mismatch if another number is
// there; otherwise errors as of reserve().
Result<void> expect_slices(Cluster& cluster, const std::string& name, std::uint32_t slices,
                           std::string& problem);
Result<void> record_slices(Cluster& cluster, const std::string& name, std::uint32_t slices,
                           std::string& problem);

// Of each key, in one pipeline. Errors as of reserve().
Result<std::vector<SiftInfo>> read_info(Cluster& cluster, std::span<const SiftKey> keys,
                                        std::string& problem);

}  // namespace semel::client
