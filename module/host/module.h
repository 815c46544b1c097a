// A module: what it brings, and how it is loaded. What it brings does not call the server's API.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "module/host/command.h"
#include "module/host/config.h"
#include "module/host/value.h"

namespace semel::host {

struct ModuleSpec {
  const char* name;
  std::vector<const TypeSpec*> types;
  std::vector<std::span<const Command>> families;
  std::span<Setting> settings;
  // Asked when the settings are known.
  std::function<std::vector<CommandTable::Renaming>()> renamings;
};

// Called from the function that the server looks for. What went wrong is in the server's log, and in
// the answer: 0 if nothing.
int load(void* ctx, void** argv, int argc, const ModuleSpec& spec) noexcept;

}  // namespace semel::host
