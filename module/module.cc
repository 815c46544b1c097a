// The entry points of semel.so. Valkey looks for its own first, and takes that of Redis otherwise.
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
  semel::host::ModuleSpec spec;
  spec.name = "semel";
  spec.types = {&semel::module::BloomValue::kType, &semel::module::CuckooValue::kType,
                &semel::module::SiftValue::kType, &semel::module::TallyValue::kType};
  spec.settings = semel::module::settings();
  spec.aliases = semel::module::aliases();
  spec.counters = semel::module::all_counters();
  spec.families = semel::module::families;
  return semel::host::load(ctx, argv, argc, spec);
}

extern "C" __attribute__((visibility("default"))) int ValkeyModule_OnLoad(void* ctx, void** argv,
                                                                          int argc) {
  return RedisModule_OnLoad(ctx, argv, argc);
}
