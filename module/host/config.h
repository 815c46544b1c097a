// Settings: what users configure by CONFIG SET semel.NAME, in the file of the server, and by the
// arguments of MODULE LOAD: NAME VALUE NAME VALUE ... Names are in any case.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "module/host/handles.h"
#include "semel/core/result.h"

namespace semel::host {

enum class SettingKind : std::uint8_t {
  changeable,
  at_load,  // only by MODULE LOAD or in the file of the server
};

struct Setting {
  const char* name;
  SettingKind kind;
  std::string value;  // the default at first, then the current value
  const char* summary;
  // Takes a value, or says what is wrong with it.
  std::function<Result<void>(std::string_view)> take;
};

// The name of a setting in the configuration of another module. It is a load argument here too.
struct Alias {
  const char* name;
  const char* setting;  // of ours; null: nothing here depends on it
  const char* note;     // for the log, if the alias is used: what is different here; or null
  // Redis 8 has it in its file, without a prefix. So this module takes it there.
  bool unprefixed = false;
  std::string value = {};  // of an alias without a setting, and the default of another
  Setting* target = nullptr;
};

// REQUIRES: the settings and aliases live as long as the process.
Result<void> load_settings(api::Ctx* ctx, std::span<Setting> settings, std::span<Alias> aliases,
                           std::span<const std::string_view> arguments);

}  // namespace semel::host
