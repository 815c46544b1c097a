// Servers with the module, and functions to question them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "tests/module/talk.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_server.h"

namespace semel {

// Returns the arguments of a server that loads the module with the arguments `load`.
inline Words with_module(Words arguments = {}, const Words& load = {}) {
  arguments.insert(arguments.end(), {"--loadmodule", SEMEL_MODULE});
  arguments.insert(arguments.end(), load.begin(), load.end());
  return arguments;
}

// Returns DEBUG DIGEST-VALUE of every key of the first database.
using Digests = std::map<std::string, std::string>;
inline Digests digests(Talk& talk) {
  Digests all;
  for (const Answer& key : talk.call({"KEYS", "*"}).parts) {
    const Answer digest = talk.call({"DEBUG", "DIGEST-VALUE", key.text});
    all[key.text] = digest.parts.empty() ? digest.shown() : digest.parts[0].text;
  }
  return all;
}

// Reports the keys that differ.
inline void expect_equal(const Digests& found, const Digests& expected) {
  for (const auto& [key, digest] : expected) {
    const auto there = found.find(key);
    EXPECT_TRUE(there != found.end()) << key << " is missing";
    if (there != found.end()) {
      EXPECT_EQ(there->second, digest) << key;
    }
  }
  for (const auto& [key, digest] : found) EXPECT_TRUE(expected.contains(key)) << key << " is new";
}

// Returns a field of INFO, or -1 if there is none.
inline std::int64_t info(Talk& talk, const std::string& section, const std::string& field) {
  const std::string text = talk.call({"INFO", section}).text;
  const std::string line = std::string("\n").append(field).append(":");
  const std::size_t at = text.find(line);
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + line.size()));
}

inline bool is_valkey(Talk& talk) {
  return talk.call({"INFO", "server"}).text.find("server_name:valkey") != std::string::npos;
}

// Makes the server rewrite its AOF file, and waits for it. A rewrite that the server has begun on
// its own does not count.
inline void rewrite_aof(Talk& talk) {
  std::string answer;
  ASSERT_TRUE(eventually([&] {
    answer = talk("BGREWRITEAOF");
    return answer.find("already in progress") == std::string::npos;
  }));
  ASSERT_FALSE(answer.starts_with('-')) << answer;
  ASSERT_TRUE(eventually([&] {
    return info(talk, "persistence", "aof_rewrite_in_progress") == 0 &&
           info(talk, "persistence", "aof_rewrite_scheduled") == 0;
  }));
}

}  // namespace semel
