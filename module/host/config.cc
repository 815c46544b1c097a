#include "module/host/config.h"

#include <algorithm>

#include "module/host/string.h"

namespace semel::host {
namespace {

std::string_view text_of(const api::String* string) {
  std::size_t size = 0;
  const char* const text = api::StringPtrLen(string, &size);
  return {text, size};
}

// The server takes no share in the string that it is shown: it lives until the next one is.
api::String* show(const char* /*name*/, void* data) noexcept {
  static api::String* shown = nullptr;
  if (shown != nullptr) api::FreeString(nullptr, shown);
  const std::string& value = static_cast<const Setting*>(data)->value;
  shown = api::CreateString(nullptr, value.data(), value.size());
  return shown;
}

int change(const char* name, api::String* to, void* data, api::String** error) noexcept {
  Setting& setting = *static_cast<Setting*>(data);
  const std::string_view value = text_of(to);
  const char* const wrong = setting.take(value);
  if (wrong != nullptr) {
    const std::string text = std::string("semel.").append(name).append(": ").append(wrong);
    *error = api::CreateString(nullptr, text.data(), text.size());
    return api::kErr;
  }
  setting.value = value;
  return api::kOk;
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

}  // namespace

std::string load_settings(api::Ctx* ctx, std::span<Setting> settings,
                          std::span<const std::string_view> arguments) {
  if (arguments.size() % 2 != 0) return "load arguments are pairs: name value [name value ...]";
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    for (std::size_t j = 0; j < i; j += 2) {
      if (arguments[j] == arguments[i]) return std::string(arguments[i]).append(" is given twice");
    }
    const auto setting = std::find_if(settings.begin(), settings.end(), [&](const Setting& known) {
      return known.name == arguments[i];
    });
    if (setting == settings.end()) {
      std::string all;
      for (const Setting& known : settings) all.append(all.empty() ? "" : ", ").append(known.name);
      return std::string("no setting '").append(arguments[i]).append("'; there are: ").append(all);
    }
    if (const char* const wrong = setting->take(arguments[i + 1]); wrong != nullptr) {
      return std::string(setting->name).append(": ").append(wrong);
    }
    setting->value = arguments[i + 1];
  }
  // The default that the server hears of is what the load arguments made of it.
  for (Setting& setting : settings) {
    if (api::RegisterStringConfig(ctx, setting.name, setting.value.c_str(), flags_of(setting.kind),
                                  show, change, nullptr, &setting) != api::kOk) {
      return std::string("the server does not take the setting ").append(setting.name);
    }
  }
  if (api::LoadConfigs(ctx) != api::kOk) return "a setting in the server's configuration is wrong";
  return "";
}

}  // namespace semel::host
