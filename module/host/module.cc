#include "module/host/module.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "module/host/api.h"
#include "module/host/census.h"
#include "module/host/listeners.h"
#include "module/host/migration.h"
#include "module/host/reserve.h"
#include "module/host/staging.h"
#include "module/host/type.h"
#include "module/host/value_limit.h"

namespace semel::host {
namespace {

// The server calls tell_info() without any data of ours.
std::vector<Counter> info_counters;

// A signal handler writes the report of a crash, and must not wait for a lock.
void tell_sums(api::InfoCtx* ctx, const TypeSpec& type, bool after_a_crash) {
  if (api::InfoAddSection(ctx, type.family) != api::kOk) return;
  const Sums sums = after_a_crash ? census.sums_unlocked(type.index) : census.sums(type.index);
  std::array<char, 64> text;
  const auto name = [&](const char* field) {
    std::snprintf(text.data(), text.size(), "%s_%s", type.family, field);
    return text.data();
  };
  const auto tell = [&](const char* field, std::uint64_t value) {
    api::InfoAddFieldULongLong(ctx, name(field), value);
  };
  tell("keys", sums.keys);
  tell("bytes", sums.bytes);
  tell("items", sums.items);
  tell("capacity", sums.capacity);
  api::InfoAddFieldDouble(ctx, name("error_worst"), sums.error_worst);
  api::InfoAddFieldDouble(ctx, name("error_ratio_worst"), sums.error_ratio_worst);
  if (type.has_claims) {
    tell("claims", sums.claims);
    tell("claims_expired", sums.claims_expired);
  }
  if (type.forgets) tell("forgotten_early", sums.forgotten_early);
  tell("evicted_keys", sums.evicted);
  tell("expired_keys", sums.expired);
}

void tell_info(api::InfoCtx* ctx, int for_crash_report) noexcept {
  if (for_crash_report == 0) census.catch_up(std::chrono::milliseconds(1));
  for (const TypeSpec* const type : types()) tell_sums(ctx, *type, for_crash_report != 0);
  if (api::InfoAddSection(ctx, "statistics") != api::kOk) return;
  for (const Counter& counter : info_counters) {
    api::InfoAddFieldULongLong(ctx, counter.name, *counter.value);
  }
  if (api::InfoAddSection(ctx, "memory") != api::kOk) return;
  api::InfoAddFieldULongLong(ctx, "max_value_bytes", value_limit());
  const Staged staged = host::staged();
  api::InfoAddFieldULongLong(ctx, "staged_keys", staged.keys);
  api::InfoAddFieldULongLong(ctx, "staged_bytes", staged.bytes);
  api::InfoAddFieldULongLong(ctx, "unserved_bytes",
                             for_crash_report == 0 ? census.unserved_bytes() : 0);
}

// We check every read of an RDB, tell watchers what did change, and keep apart what a server loads
// beside the dataset that it serves. A server does not check the bits, and may know another meaning
// of one that came later. So that one is set only where the server knows ours.
int options(bool follows_slots) {
  int all = api::kHandleIoErrors | api::kNoImplicitSignal | api::kHandleAsyncLoad;
  if (follows_slots && api::is_valkey() && api::GetModuleOptionsAll != nullptr) {
    all |= api::GetModuleOptionsAll() & api::kHandleSlotMigration;
  }
  return all;
}

Result<void> load_all(api::Ctx* ctx, std::span<const std::string_view> arguments,
                      const ModuleSpec& spec) {
  api::SetModuleOptions(ctx, options(watch_migrations(ctx)));
  SEMEL_TRY(load_settings(ctx, spec.settings, spec.aliases, arguments));
  SEMEL_TRY(load_types(ctx, spec.types));
  SEMEL_TRY(load_staging(ctx));
  SEMEL_TRY(CommandTable::load(ctx, spec.families()));
  if (api::SetCommandACLCategories == nullptr) {
    api::Log(
        ctx, "notice",
        "in this server the commands of modules are in no ACL category but @all: a rule such as "
        "-@write does not cover them. Grant rights by keys, such as %%R~*, or by command");
  }
  if (!keep_reserve()) return Error{Errc::full, "there is no memory for the reserve"};
  if (!watch_listeners(ctx) || !watch_memory(ctx) || !watch_removals(ctx) || !watch_datasets(ctx)) {
    return Error{Errc::unsupported, "the server does not report its events"};
  }
  info_counters = spec.counters;
  info_counters.insert(info_counters.end(), {{"refused_limit", &counters.refused_limit},
                                             {"refused_oom", &counters.refused_oom},
                                             {"jobs_started", &counters.jobs_started},
                                             {"effects_applied", &counters.effects_applied},
                                             {"effects_failed", &counters.effects_failed}});
  if (api::RegisterInfoFunc(ctx, tell_info) != api::kOk) {
    return Error{Errc::unsupported, "the server has no INFO section for modules"};
  }
  return {};
}

}  // namespace

int load(void* server, void** argv, int argc, const ModuleSpec& spec) noexcept {
  auto* const ctx = static_cast<api::Ctx*>(server);
  if (!api::resolve(ctx)) return api::kErr;  // before Redis 7.0, whose log cannot be reached
  if (api::IsModuleNameBusy(spec.name) != 0) return api::kErr;
  api::SetModuleAttribs(ctx, spec.name, SEMEL_VERSION_NUMBER, api::kApiVersion);
  try {
    std::vector<std::string_view> arguments;
    for (int i = 0; i < argc; ++i) {
      std::size_t size = 0;
      const char* const text = api::StringPtrLen(static_cast<api::String*>(argv[i]), &size);
      arguments.emplace_back(text, size);
    }
    const Result<void> loaded = load_all(ctx, arguments, spec);
    if (loaded) return api::kOk;
    api::Log(ctx, "warning", "%s", loaded.error().message().c_str());
  } catch (const std::exception& error) {
    api::Log(ctx, "warning", "%s", error.what());
  }
  return api::kErr;
}

}  // namespace semel::host
