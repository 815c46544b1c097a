// Replicas of a server of a test, and how tests compare them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/module/module_server.h"
#include "tests/support/eventually.h"

namespace semel {

inline void follow(const RedisServer& replica, const RedisServer& primary) {
  Talk talk(replica);
  ASSERT_EQ(talk("REPLICAOF 127.0.0.1 " + std::to_string(primary.port())), "+OK");
}

// Waits until the replica has all that the primary has sent.
inline void expect_in_step(const RedisServer& primary, const RedisServer& replica) {
  Talk from(primary), to(replica);
  const bool in_step = eventually([&] {
    // Ask the replica first: a change between the two questions makes them differ.
    const std::int64_t there = info(to, "replication", "slave_repl_offset");
    const bool up =
        to.call({"INFO", "replication"}).text.find("link_status:up") != std::string::npos;
    return up && there == info(from, "replication", "master_repl_offset");
  });
  ASSERT_TRUE(in_step) << "the replica does not catch up\n" << replica.log();
}

}  // namespace semel
