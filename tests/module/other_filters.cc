// A module that has commands of filters, like RedisBloom. Its filters are exact sets in its own
// memory. Its load arguments name the families that it has: BF, CF.
//
//   BF.ADD key item       Returns 1 if the item is new, 0 if not.
//   BF.EXISTS key item    Returns 1 or 0.
//   BF.DROP key           Removes the filter, as DEL would do with a key.
//   CF.ADDNX key item     Returns 1 if the item is new, 0 if not.
//   CF.DEL key item       Returns 1 or 0, or an error if there is no such filter.
//
// In Redis 8 it has the setting bf-error-rate, without a prefix.
#include <map>
#include <set>
#include <string>

#include "module/host/api.h"

namespace {

namespace api = semel::host::api;

std::map<std::string, std::set<std::string>> filters;

std::string text_of(const api::String* string) {
  std::size_t size = 0;
  const char* const text = api::StringPtrLen(string, &size);
  return {text, size};
}

int add(api::Ctx* ctx, api::String** argv, int argc) {
  if (argc != 3) return api::WrongArity(ctx);
  const bool fresh = filters[text_of(argv[1])].insert(text_of(argv[2])).second;
  return api::ReplyWithLongLong(ctx, fresh ? 1 : 0);
}

int exists(api::Ctx* ctx, api::String** argv, int argc) {
  if (argc != 3) return api::WrongArity(ctx);
  const auto filter = filters.find(text_of(argv[1]));
  const bool there = filter != filters.end() && filter->second.contains(text_of(argv[2]));
  return api::ReplyWithLongLong(ctx, there ? 1 : 0);
}

int remove_item(api::Ctx* ctx, api::String** argv, int argc) {
  if (argc != 3) return api::WrongArity(ctx);
  const auto filter = filters.find(text_of(argv[1]));
  if (filter == filters.end()) return api::ReplyWithError(ctx, "Not found");
  return api::ReplyWithLongLong(ctx,
                                static_cast<long long>(filter->second.erase(text_of(argv[2]))));
}

int drop(api::Ctx* ctx, api::String** argv, int argc) {
  if (argc != 2) return api::WrongArity(ctx);
  return api::ReplyWithLongLong(ctx, static_cast<long long>(filters.erase(text_of(argv[1]))));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int RedisModule_OnLoad(void* server, void** argv,
                                                                         int argc) {
  auto* const ctx = static_cast<api::Ctx*>(server);
  if (!api::resolve(ctx)) return api::kErr;
  api::SetModuleAttribs(ctx, "filters", 1, api::kApiVersion);
  for (int i = 0; i < argc; ++i) {
    const std::string family = text_of(static_cast<api::String*>(argv[i]));
    const auto has = [&](const char* verb, auto* function, const char* flags) {
      return api::CreateCommand(ctx, (family + verb).c_str(), function, flags, 1, 1, 1) == api::kOk;
    };
    if (!has(".add", add, "write") || !has(".exists", exists, "readonly") ||
        !has(".drop", drop, "write")) {
      return api::kErr;
    }
    if (family == "CF" && !(has(".addnx", add, "write") && has(".del", remove_item, "write"))) {
      return api::kErr;
    }
  }
  if (!api::is_valkey() && api::GetServerVersion() >= 8 << 16) {
    const auto show = [](const char* /*name*/, void* /*data*/) {
      static api::String* const shown = api::CreateString(nullptr, "0.01", 4);
      return shown;
    };
    const auto change = [](const char* /*name*/, api::String* /*value*/, void* /*data*/,
                           api::String** /*error*/) { return api::kOk; };
    if (api::RegisterStringConfig(ctx, "bf-error-rate", "0.01", api::kConfigUnprefixed, show,
                                  change, nullptr, nullptr) != api::kOk ||
        api::LoadConfigs(ctx) != api::kOk) {
      return api::kErr;
    }
  }
  return api::kOk;
}
