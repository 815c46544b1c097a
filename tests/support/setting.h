// Settings of a test, which variables of the environment choose.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace semel {

// Returns the number in a variable of the environment, or `otherwise` if it is not set.
inline std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// Returns the seed of a test whose runs differ: SEMEL_SEED, or a random one.
// Prints it, so that a run that failed can be repeated.
inline std::uint64_t fresh_seed() {
  std::random_device device;
  const std::uint64_t seed = setting("SEMEL_SEED", std::uint64_t{device()} << 32 | device());
  std::printf("SEMEL_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace semel
