// Workloads: names of counters and ids, and the commands that are sent to the servers.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "bench/peers/redis_load.h"
#include "semel/core/internal/arithmetic.h"

namespace semel::bench {

inline constexpr std::uint64_t kCounters = 100'000;
inline constexpr std::size_t kBatch = 100;  // items of BF.MADD and BF.MEXISTS

// Returns 16 hexadecimal digits. Different numbers give different ids, because mix() is a
// bijection.
class Id {
 public:
  explicit Id(std::uint64_t number) {
    std::uint64_t rest = mix(number + 1);
    for (char& digit : text_) {
      digit = "0123456789abcdef"[rest & 15];
      rest >>= 4;
    }
  }
  operator std::string_view() const { return {text_.data(), text_.size()}; }

 private:
  std::array<char, 16> text_;
};

// Returns the counter of an operation: any counter, but always the same one.
inline std::string counter_of(std::uint64_t operation) {
  return "counter:" + std::to_string(mix(operation ^ 0x5eed) % kCounters);
}

// Returns `count` commands; `add` appends one for a number, counted up from `first`.
template <class Add>
Commands each(std::uint64_t first, std::uint64_t count, Add add) {
  Commands commands;
  for (std::uint64_t i = first; i < first + count; ++i) add(commands, i);
  return commands;
}

// Adds a command with kBatch ids behind a key, for every kBatch ids counted up from `first`.
inline Commands batches(std::string_view command, std::string_view key, std::uint64_t first,
                        std::uint64_t count) {
  Commands commands;
  std::vector<Id> ids;
  std::vector<std::string_view> words;
  for (std::uint64_t i = first; i < first + count; i += kBatch) {
    ids.clear();
    for (std::uint64_t j = i; j < i + kBatch; ++j) ids.emplace_back(j);
    words = {command, key};
    words.insert(words.end(), ids.begin(), ids.end());
    commands.add(words);
  }
  return commands;
}

}  // namespace semel::bench
