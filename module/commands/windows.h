// Code that SIFT.* and TALLY.* share: it makes keys that recognise ids for a window.
//
// A family is a struct with
//
//   Value, Goal                     the value, and what it is made for
//   kReserve                        "SIFT.RESERVE"
//   kNoun                           "the sift"
//   kLeastBytes, kExactFpr          the least MAXBYTES; the value of goal.fpr with EXACT
//   beside_max_bytes(value)         bytes of a new value that MAXBYTES does not limit
//   kKinds                          words such as EXACT and the kinds of windows that they choose
//   kExactBytes                     the least memory of an id with EXACT
//   default_goal(), kind(goal)      the goal without options; its field that holds the kind
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "module/commands/creation.h"
#include "module/commands/keys.h"
#include "semel/window/window.h"

namespace semel::module {

template <class Kind>
struct KindWord {
  const char* word;
  Kind kind;
};

inline const char* text_of(OnFull on_full) {
  return on_full == OnFull::refuse ? "refuse" : "forget";
}

// These take an option. They return true if it was the next argument, and valid.
bool take_on_full(Options& options, OnFull& out);                                // ONFULL
bool take_max_bytes(Options& options, std::uint64_t least, std::uint64_t& out);  // MAXBYTES

// Gives a key without MAXBYTES the limit of the configuration as its MAXBYTES. Effects carry it, so
// that all copies of the key have the same bound. Returns false after an error: MAXBYTES is above
// the limit.
bool take_limit(host::Call& call, std::uint64_t& max_bytes);

// Answers that `what` could not be made: "ERR could not create ...: the reason (the limit)".
void refuse_creation(host::Call& call, const char* what, const Error& error);

// Returns true if this many ids may fit into MAXBYTES and the limit of the configuration, at the
// least memory of each. Answers with an error if not. A key with EXACT takes its memory as ids
// come, so nothing else would tell before it is full.
bool may_fit(host::Call& call, const char* what, std::uint64_t ids, std::uint64_t least_bytes,
             std::uint64_t max_bytes);

// Warns in the log of the server if it may evict the key that was made: once each time the settings
// begin to allow that.
void warn_of_eviction(const host::Call& call, const char* what);

// Makes the value of a key, and tells the replicas all that it was made of. Returns null after an
// error.
template <class Family>
typename Family::Value* create(host::Call& call, const host::OpenKey& key,
                               typename Family::Goal goal, const Secret& secret) {
  if (!take_limit(call, goal.max_bytes)) return nullptr;
  auto made = Family::Value::make(secret, goal, call.now_ms());
  if (!made) {
    refuse_creation(call, Family::kNoun, made.error());
    return nullptr;
  }
  const std::uint64_t limit = max_value_bytes(call);
  if (limit != 0 && Family::beside_max_bytes(**made) > limit) {
    refuse_creation(call, Family::kNoun, {Errc::limit, "too little memory for a first entry"});
    return nullptr;
  }
  const std::string window = std::to_string(goal.window_ms);
  const std::string error = text_of(goal.fpr);
  const std::string ids = std::to_string(goal.ids);
  const std::string bytes = std::to_string(goal.max_bytes);
  std::vector<std::string_view> words = {
      Family::kReserve,      call[1],  "WINDOW",       window, "CAPACITY", ids, "ONFULL",
      text_of(goal.on_full), "SECRET", text_of(secret)};
  bool exact = false;
  for (const auto& [word, kind] : Family::kKinds) {
    if (Family::kind(goal) != kind) continue;
    words.push_back(word);
    exact = words.back() == "EXACT";
  }
  if (!exact) words.insert(words.end(), {"ERROR", error});
  if (goal.max_bytes != kNoCap) words.insert(words.end(), {"MAXBYTES", bytes});
  call.effect(words);
  warn_of_eviction(call, Family::kNoun);
  return &key.set(std::move(*made));
}

// FAMILY.RESERVE key [WINDOW duration] [ERROR error] [CAPACITY n] [a kind] [MAXBYTES bytes]
// [ONFULL refuse|forget]. Effects also have SECRET.
template <class Family>
void reserve(host::Call& call) {
  typename Family::Goal goal = Family::default_goal();
  std::optional<Secret> secret;
  std::optional<std::string> kind_given;
  bool error_given = false, capacity_given = false;
  Options options(call, 2);
  const auto take_kind = [&] {
    for (const auto& [word, kind] : Family::kKinds) {
      if (!options.flag(word)) continue;
      if (kind_given) options.refuse("ERR " + *kind_given + " and " + word + " exclude each other");
      kind_given = word;
      Family::kind(goal) = kind;
      return true;
    }
    return false;
  };
  while (options.more()) {
    if (options.count("CAPACITY", 1, std::uint64_t{1} << 38, goal.ids)) {
      capacity_given = true;
      continue;
    }
    if (options.duration("WINDOW", goal.window_ms) ||
        take_max_bytes(options, Family::kLeastBytes, goal.max_bytes) ||
        take_on_full(options, goal.on_full) || take_secret(options, call, secret) || take_kind()) {
      continue;
    }
    if (options.error_rate("ERROR", goal.fpr)) {
      error_given = true;
    } else {
      options.unknown();
    }
  }
  if (options.refused()) return;
  if (kind_given == "EXACT") {
    if (error_given) return call.error("ERR EXACT and ERROR exclude each other");
    goal.fpr = Family::kExactFpr;
  }
  const host::OpenKey key = call.open(1, host::Access::write);
  if (!is_free<typename Family::Value>(call, key, "ERR the key exists already")) return;
  const bool is_checked = kind_given == "EXACT" && capacity_given && !call.replayed();
  if (is_checked && !may_fit(call, Family::kNoun, goal.ids, Family::kExactBytes, goal.max_bytes)) {
    return;
  }
  if (create<Family>(call, key, goal, secret ? *secret : Secret::random()) != nullptr) made(call);
}

}  // namespace semel::module
