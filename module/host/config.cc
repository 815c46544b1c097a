#include "module/host/config.h"

#include <algorithm>
#include <vector>

#include "module/host/api.h"
#include "module/host/reply.h"
#include "module/host/string.h"

namespace semel::host {
namespace {

// This is true while the server hands over the values in its file, and the defaults of other
// settings.
constinit bool loading = false;

std::string_view text_of(const api::String* string) {
  std::size_t size = 0;
  const char* const text = api::StringPtrLen(string, &size);
  return {text, size};
}

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// Returns a string that the server does not own. It lives until the next call.
api::String* show(const std::string& value) {
  static api::String* shown = nullptr;
  if (shown != nullptr) api::FreeString(nullptr, shown);
  shown = api::CreateString(nullptr, value.data(), value.size());
  return shown;
}

int refuse(const std::string& text, api::String** error) {
  *error = api::CreateString(nullptr, text.data(), text.size());
  return api::kErr;
}

api::String* show_setting(const char* /*name*/, void* data) noexcept {
  return show(static_cast<const Setting*>(data)->value);
}

api::String* show_alias(const char* /*name*/, void* data) noexcept {
  const Alias& alias = *static_cast<const Alias*>(data);
  return show(alias.target == nullptr ? alias.value : alias.target->value);
}

int change(Setting& setting, const std::string& name, std::string_view value, api::String** error) {
  if (const Result<void> taken = setting.take(value); !taken) {
    return refuse(taken.error().about(name).message(), error);
  }
  setting.value = value;
  return api::kOk;
}

int change_setting(const char* name, api::String* to, void* data, api::String** error) noexcept {
  return change(*static_cast<Setting*>(data), std::string("semel.") + name, text_of(to), error);
}

// The server hands over the default of a name that its file does not have. So while it does,
// the default changes nothing, because the file may have the other name of the setting.
int change_alias(const char* name, api::String* to, void* data, api::String** error) noexcept {
  Alias& alias = *static_cast<Alias*>(data);
  const std::string_view value = text_of(to);
  if (alias.target == nullptr) {
    alias.value = value;
    return api::kOk;
  }
  if (loading && value == alias.value) return api::kOk;
  if (loading && alias.target->value != alias.value && alias.target->value != value) {
    return refuse(std::string(name) + " and semel." + alias.target->name + " differ", error);
  }
  return change(*alias.target, name, value, error);
}

unsigned flags_of(SettingKind kind) {
  switch (kind) {
    case SettingKind::changeable:
      return 0;
    case SettingKind::at_load:
      return api::kConfigImmutable;
  }
  return 0;
}

// Redis 8 has settings of modules without a prefix.
bool takes_unprefixed() {
  constexpr int kRedis8 = 8 << 16;
  return !api::is_valkey() && api::GetServerVersion() >= kRedis8;
}

Error invalid(std::string words) { return {Errc::invalid, std::move(words)}; }

// Returns the setting of this name, or of an alias of this name. An alias without a setting gives
// null. Logs what is different for an alias.
Result<Setting*> setting_of(api::Ctx* ctx, std::string_view name, std::span<Setting> settings,
                            std::span<Alias> aliases) {
  for (Setting& setting : settings) {
    if (same_name(setting.name, name)) return &setting;
  }
  for (const Alias& alias : aliases) {
    if (!same_name(alias.name, name)) continue;
    if (alias.note != nullptr) {
      std::string what = "has no effect here";
      if (alias.target != nullptr) what = std::string("sets semel.") + alias.target->name;
      api::Log(ctx, "notice", "%s %s: %s", alias.name, what.c_str(), alias.note);
    }
    return alias.target;
  }
  std::string all;
  for (const Setting& known : settings) all.append(all.empty() ? "" : ", ").append(known.name);
  return invalid("no setting '" + std::string(name) + "'; there are: " + all);
}

}  // namespace

Result<void> load_settings(api::Ctx* ctx, std::span<Setting> settings, std::span<Alias> aliases,
                           std::span<const std::string_view> arguments) {
  if (arguments.size() % 2 != 0) {
    return invalid("load arguments are pairs: name value [name value ...]");
  }
  for (Alias& alias : aliases) {
    if (alias.setting == nullptr) continue;
    alias.target = &*std::find_if(settings.begin(), settings.end(), [&](const Setting& known) {
      return same_name(known.name, alias.setting);
    });
  }
  std::vector<const Setting*> given;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    Setting* const setting = SEMEL_TRY(setting_of(ctx, arguments[i], settings, aliases));
    if (setting == nullptr) continue;
    if (std::find(given.begin(), given.end(), setting) != given.end()) {
      return invalid(std::string(setting->name) + " is given twice");
    }
    given.push_back(setting);
    if (const Result<void> taken = setting->take(arguments[i + 1]); !taken) {
      return taken.error().about(std::string(arguments[i]));
    }
    setting->value = arguments[i + 1];
  }
  // The load arguments become the defaults that the server sees.
  for (Setting& setting : settings) {
    if (api::RegisterStringConfig(ctx, setting.name, setting.value.c_str(), flags_of(setting.kind),
                                  show_setting, change_setting, nullptr, &setting) != api::kOk) {
      return Error{Errc::unsupported, "the server rejects a setting", std::string(setting.name)};
    }
  }
  // Aliases come after the settings, because the server sets them in this order.
  for (Alias& alias : aliases) {
    if (!alias.unprefixed || !takes_unprefixed()) continue;
    if (lists_some(api::Call(ctx, "CONFIG", "cc", "GET", alias.name))) continue;  // another module
    if (alias.target != nullptr) alias.value = alias.target->value;
    api::RegisterStringConfig(ctx, alias.name, alias.value.c_str(), api::kConfigUnprefixed,
                              show_alias, change_alias, nullptr, &alias);
  }
  loading = true;
  const int loaded = api::LoadConfigs(ctx);
  loading = false;
  if (loaded != api::kOk) return invalid("a setting in the server's configuration is wrong");
  return {};
}

}  // namespace semel::host
