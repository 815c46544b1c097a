// The entry point of semel.so, which Redis and Valkey load.
#include "module/host/module.h"

#include "module/commands/counts.h"
#include "module/commands/defaults.h"
#include "module/commands/families.h"
#include "module/types/bloom_value.h"
#include "module/types/cuckoo_value.h"
#include "module/types/sift_value.h"
#include "module/types/tally_value.h"

extern "C" __attribute__((visibility("default"))) int RedisModule_OnLoad(void* ctx, void** argv,
                                                                         int argc) {
  using semel::host::CommandTable;
  using semel::module::defaults;
  semel::host::ModuleSpec spec;
  spec.name = "semel";
  spec.types = {&semel::module::BloomValue::kType, &semel::module::CuckooValue::kType,
                &semel::module::SiftValue::kType, &semel::module::TallyValue::kType};
  spec.families = {semel::module::bloom_commands(), semel::module::cuckoo_commands(),
                   semel::module::sift_commands(), semel::module::tally_commands(),
                   semel::host::effect_commands()};
  spec.settings = semel::module::settings();
  spec.counters = semel::module::all_counters();
  spec.renamings = [] {
    return std::vector<CommandTable::Renaming>{{"BF", defaults.bf_prefix, "bf-prefix"},
                                               {"CF", defaults.cf_prefix, "cf-prefix"}};
  };
  return semel::host::load(ctx, argv, argc, spec);
}
