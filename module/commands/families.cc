#include "module/commands/families.h"

#include "module/commands/defaults.h"

namespace semel::module {

// The categories of BF and CF are those of RedisBloom and valkey-bloom.
std::vector<host::Family> families() {
  return {{"BF", "bloom", bloom_commands(), "bf-prefix", defaults.bf_prefix},
          {"CF", "cuckoo", cuckoo_commands(), "cf-prefix", defaults.cf_prefix},
          {"SIFT", "sift", sift_commands()},
          {"TALLY", "tally", tally_commands()},
          {"SEMEL", "semel", host::effect_commands()}};
}

}  // namespace semel::module
