// The settings of the module. A key is made with them unless the command says otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "module/host/config.h"
#include "semel/core/clock.h"

namespace semel::module {

struct Defaults {
  TimeMs tally_window_ms = 600'000;
  double tally_error = 1e-6;
  std::uint64_t tally_capacity = 1 << 16;

  TimeMs sift_window_ms = 600'000;
  double sift_error = 1e-6;
  std::uint64_t sift_capacity = 1 << 16;

  double bf_error_rate = 0.01;
  std::uint64_t bf_initial_size = 100;
  std::uint64_t bf_expansion = 2;

  std::uint64_t cf_initial_size = 1024;
  std::uint64_t cf_bucket_size = 2;
  std::uint64_t cf_max_iterations = 20;
  std::uint64_t cf_expansion = 1;
  double cf_error = 0.001;

  // The names of these families. Empty: no such commands. nullopt: BF and CF, where the server has
  // no such commands of its own.
  std::optional<std::string> bf_prefix;
  std::optional<std::string> cf_prefix;
};

// Used by the one thread that runs commands.
extern Defaults defaults;

std::span<host::Setting> settings();
// Returns the names in the configuration of RedisBloom and valkey-bloom.
std::span<host::Alias> aliases();

}  // namespace semel::module
