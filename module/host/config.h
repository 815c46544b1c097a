// Settings: what users configure, by CONFIG SET semel.NAME, in the file of the server, and by the
// arguments of MODULE LOAD: NAME VALUE NAME VALUE ...
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "module/host/api.h"

namespace semel::host {

enum class SettingKind : std::uint8_t {
  changeable,
  at_load,  // by MODULE LOAD or the file of the server alone
};

struct Setting {
  const char* name;
  SettingKind kind;
  std::string value;  // the default, and then what it is
  const char* summary;
  // What is wrong with a value; null if nothing. Takes what is right.
  std::function<const char*(std::string_view)> take;
};

// What went wrong; empty if nothing. REQUIRES: the settings live as long as the process.
std::string load_settings(api::Ctx* ctx, std::span<Setting> settings,
                          std::span<const std::string_view> arguments);

}  // namespace semel::host
