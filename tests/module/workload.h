// Workload: random commands of all families on a few keys, the same for the same seed.
//
// Most commands are good. Some repeat earlier ones, some are wrong. Keys come and go by DEL,
// expiry, merges, copies and renames.
#pragma once

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

}  // namespace semel
