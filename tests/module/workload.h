// Workload: random commands of all families on a few keys, the same for the same seed.
//
// Most commands are good. Some repeat earlier ones, some are wrong. Keys come and go by DEL,
// expiry, merges, copies and renames.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "semel/core/internal/random.h"
#include "tests/module/talk.h"

namespace semel {

class Workload {
 public:
  explicit Workload(std::uint64_t seed) : random_(seed) {}

  Words next();

 private:
  // Returns a name with a number below `most`.
  std::string some(std::uint64_t most, std::string name = "") {
    return name.append(std::to_string(random_.below(most)));
  }
  std::string key(const char* family) { return some(4, family); }
  std::string item() { return some(2000); }
  Words tally();
  Words sift();
  Words bloom();
  Words cuckoo();
  Words any_key();

  Random random_;
};

// Runs random commands. The server answers each of them.
inline void run(Talk& talk, Workload& workload, int commands) {
  for (int i = 0; i < commands; ++i) ASSERT_FALSE(talk.call(workload.next()).lost());
}

// Waits until keys with a short time to live have expired at the primary. Its replicas have heard
// of that when they are in step.
inline void let_expire(Talk& talk) {
  talk("DEBUG SLEEP 0.05");
  for (const Answer& key : talk.call({"KEYS", "*"}).parts) talk.call({"EXISTS", key.text});
  talk("SET pebble 1");  // a new offset, after all expiries
}

}  // namespace semel
