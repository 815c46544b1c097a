#include "module/host/api.h"

#include <cstring>

namespace semel::host::api {

#define SEMEL_HOST_DEFINE(result, name, arguments) result(*name) arguments = nullptr;
SEMEL_HOST_FUNCTIONS(SEMEL_HOST_DEFINE)
SEMEL_HOST_LATER_FUNCTIONS(SEMEL_HOST_DEFINE)
#undef SEMEL_HOST_DEFINE

namespace {

constinit bool valkey = false;

using GetApi = int (*)(const char* name, void* function);

template <class Function>
bool find(GetApi get_api, const char* name, Function*& function) {
  void* found = nullptr;
  if (get_api(name, &found) != kOk || found == nullptr) return false;
  std::memcpy(&function, &found, sizeof(found));
  return true;
}

}  // namespace

bool resolve(Ctx* ctx) {
  // The first word of a context is the function that finds the others.
  GetApi get_api = nullptr;
  std::memcpy(&get_api, reinterpret_cast<const char*>(ctx), sizeof(get_api));

#define SEMEL_HOST_FIND(result, name, arguments) \
  if (!find(get_api, "RedisModule_" #name, name)) return false;
  SEMEL_HOST_FUNCTIONS(SEMEL_HOST_FIND)
#undef SEMEL_HOST_FIND

#define SEMEL_HOST_TRY(result, name, arguments) find(get_api, "RedisModule_" #name, name);
  SEMEL_HOST_LATER_FUNCTIONS(SEMEL_HOST_TRY)
#undef SEMEL_HOST_TRY
  // Valkey has each function under two names.
  void (*only_valkey_has)() = nullptr;
  valkey = find(get_api, "ValkeyModule_Log", only_valkey_has);
  return true;
}

bool is_valkey() { return valkey; }

// In Redis 8 the bit says that DEBUG is allowed.
bool is_slot_import(int flags) { return valkey && (flags & kFlagSlotImport) != 0; }

bool is_replicated(int flags) { return (flags & kFlagReplicated) != 0 || is_slot_import(flags); }

}  // namespace semel::host::api
