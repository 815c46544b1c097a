#include "module/host/config.h"

#include <algorithm>

#include "module/host/api.h"
#include "module/host/string.h"

namespace semel::host {
namespace {

std::string_view text_of(const api::String* string) {
  std::size_t size = 0;
  const char* const text = api::StringPtrLen(string, &size);
  return {text, size};
}

// Returns the value of a setting. The server does not own the string, which lives until the next
// call.
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
  if (const Result<void> taken = setting.take(value); !taken) {
    const std::string text = taken.error().about(std::string("semel.") + name).message();
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

Result<void> load_settings(api::Ctx* ctx, std::span<Setting> settings,
                           std::span<const std::string_view> arguments) {
  const auto invalid = [](std::string words) { return Error{Errc::invalid, std::move(words)}; };
  if (arguments.size() % 2 != 0) {
    return invalid("load arguments are pairs: name value [name value ...]");
  }
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    for (std::size_t j = 0; j < i; j += 2) {
      if (arguments[j] == arguments[i]) {
        return invalid(std::string(arguments[i]) + " is given twice");
      }
    }
    const auto setting = std::find_if(settings.begin(), settings.end(), [&](const Setting& known) {
      return known.name == arguments[i];
    });
    if (setting == settings.end()) {
      std::string all;
      for (const Setting& known : settings) all.append(all.empty() ? "" : ", ").append(known.name);
      return invalid("no setting '" + std::string(arguments[i]) + "'; there are: " + all);
    }
    if (const Result<void> taken = setting->take(arguments[i + 1]); !taken) {
      return taken.error().about(setting->name);
    }
    setting->value = arguments[i + 1];
  }
  // The load arguments become the defaults that the server sees.
  for (Setting& setting : settings) {
    if (api::RegisterStringConfig(ctx, setting.name, setting.value.c_str(), flags_of(setting.kind),
                                  show, change, nullptr, &setting) != api::kOk) {
      return Error{Errc::unsupported, "the server rejects a setting", std::string(setting.name)};
    }
  }
  if (api::LoadConfigs(ctx) != api::kOk) {
    return invalid("a setting in the server's configuration is wrong");
  }
  return {};
}

}  // namespace semel::host
