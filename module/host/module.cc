#include "module/host/module.h"

#include <exception>

#include "module/host/listeners.h"
#include "module/host/reserve.h"
#include "module/host/statistics.h"
#include "module/host/type.h"
#include "module/host/value_limit.h"

namespace semel::host {
namespace {

void tell_info(api::InfoCtx* ctx, int /*for_crash_report*/) noexcept {
  if (api::InfoAddSection(ctx, "statistics") != api::kOk) return;
  const Statistics& s = statistics;
  const std::pair<const char*, std::uint64_t> fields[] = {
      {"tally_applied", s.tally_applied},     {"tally_duplicates", s.tally_duplicates},
      {"tally_refused", s.tally_refused},     {"sift_fresh", s.sift_fresh},
      {"sift_duplicates", s.sift_duplicates}, {"sift_refused", s.sift_refused},
      {"filter_added", s.filter_added},       {"filter_known", s.filter_known},
      {"filter_removed", s.filter_removed},   {"jobs_started", s.jobs},
      {"effects_applied", s.effects_applied}, {"effects_failed", s.effects_failed},
  };
  for (const auto& [name, value] : fields) api::InfoAddFieldULongLong(ctx, name, value);
  if (api::InfoAddSection(ctx, "memory") != api::kOk) return;
  api::InfoAddFieldULongLong(ctx, "max_value_bytes", value_limit());
}

std::string load_all(api::Ctx* ctx, std::span<const std::string_view> arguments,
                     const ModuleSpec& spec) {
  // Every read of an RDB is checked, and watchers are told of what did change, by us.
  api::SetModuleOptions(ctx, api::kHandleIoErrors | api::kNoImplicitSignal);
  if (std::string wrong = load_settings(ctx, spec.settings, arguments); !wrong.empty()) {
    return wrong;
  }
  if (std::string wrong = load_types(ctx, spec.types); !wrong.empty()) return wrong;
  CommandTable table(spec.families);
  if (std::string wrong = table.load(ctx, spec.renamings()); !wrong.empty()) return wrong;
  if (api::SetCommandACLCategories == nullptr) {
    api::Log(ctx, "notice",
             "commands of modules are in no ACL category of this server but @all: a rule such as "
             "-@write does not cover them. Give rights by keys, such as %%R~*, or by command");
  }
  if (!keep_reserve()) return "there is no memory for the reserve";
  if (!watch_listeners(ctx) || !watch_memory(ctx)) return "the server does not tell its events";
  if (api::RegisterInfoFunc(ctx, tell_info) != api::kOk) return "no INFO section";
  return "";
}

}  // namespace

int load(void* server, void** argv, int argc, const ModuleSpec& spec) noexcept {
  auto* const ctx = static_cast<api::Ctx*>(server);
  if (api::resolve(ctx) != nullptr)
    return api::kErr;  // a server before Redis 7.0: it can log nothing
  if (api::IsModuleNameBusy(spec.name) != 0) return api::kErr;
  api::SetModuleAttribs(ctx, spec.name, SEMEL_VERSION_NUMBER, api::kApiVersion);
  try {
    std::vector<std::string_view> arguments;
    for (int i = 0; i < argc; ++i) {
      std::size_t size = 0;
      const char* const text = api::StringPtrLen(static_cast<api::String*>(argv[i]), &size);
      arguments.emplace_back(text, size);
    }
    const std::string wrong = load_all(ctx, arguments, spec);
    if (wrong.empty()) return api::kOk;
    api::Log(ctx, "warning", "%s", wrong.c_str());
  } catch (const std::exception& error) {
    api::Log(ctx, "warning", "%s", error.what());
  }
  return api::kErr;
}

}  // namespace semel::host
