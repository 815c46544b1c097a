// The judges whose states fuzz_sift_state reads: the first byte of an input chooses one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cli/judge.h"
#include "cli/sift_state.h"

namespace semel::cli {

inline const StateOptions kFuzzedOptions = {{"--a", "1"}, {"--b", ""}};
inline constexpr std::uint8_t kFuzzedJudges = 12;

inline std::unique_ptr<Judge> fuzzed_judge(std::uint8_t kind) {
  const Memory memory{.window_ms = kind % 4 < 2 ? std::optional<TimeMs>(1000) : std::nullopt,
                      .exact = kind % 2 == 0,
                      .error = 0.1,
                      .hash = {},
                      .now_ms = 0};
  if (kind < 4) return *make_parallel_judge(memory, 2);
  if (kind < 8) return *make_sliced_judge(memory, {SliceLayout::vertical, 2, 1, 2});
  const auto plan = parse_tree("level a slices 2\nlevel b key 1\n", {Format::csv, ','});
  return *make_tree_judge(memory, *plan, nullptr);
}

}  // namespace semel::cli
