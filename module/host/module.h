// A module: what it consists of, and how it is loaded.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "module/host/command.h"
#include "module/host/config.h"
#include "module/host/counters.h"
#include "module/host/value.h"

namespace semel::host {

struct ModuleSpec {
  const char* name;
  std::vector<const TypeSpec*> types;
  std::span<Setting> settings;
  std::span<Alias> aliases;
  std::vector<Counter> counters;  // for INFO, before those of the host
  // Called when the settings are known.
  std::function<std::vector<Family>()> families;
};

// Loads a module: call it from the function that the server looks for. Returns 0 for success. The
// server's log says what went wrong.
int load(void* ctx, void** argv, int argc, const ModuleSpec& spec) noexcept;

}  // namespace semel::host
