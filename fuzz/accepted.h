// Counts the inputs that the code under test accepted. fuzz/smoke.cc demands it of every seed: the
// mutations of a seed that is refused at its first bytes test nothing. libFuzzer does not ask.
#pragma once

#include <cstdint>

namespace semel {

inline std::uint64_t accepted_inputs = 0;

}  // namespace semel

// A fuzzer without this header has no such function, and may refuse its seeds.
extern "C" [[gnu::used]] inline std::uint64_t semel_accepted_inputs() {
  return semel::accepted_inputs;
}
