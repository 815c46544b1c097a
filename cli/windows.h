// The windows that recognise keys, by what is asked of them.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "cli/judge.h"
#include "semel/window/endless_filter.h"
#include "semel/window/endless_set.h"
#include "semel/window/exact_window.h"
#include "semel/window/forgetful_filter.h"

namespace semel::cli {

// What all windows together have room for at first, without an end. Fewer would save little, and a longer
// series of filters costs bits: at ten million keys 68 MiB in 4 filters, where 1 << 16 takes 80 in 8.
inline constexpr std::uint32_t kFirstKeys = 1 << 20;
// The same in a window, which follows the load.
inline constexpr std::uint32_t kFirstIds = 1 << 18;

// Calls make(maker) with a function that makes windows of one type, each for a share of the keys and
// with the error given to it: maker(share, error) is a Result<Window>.
template <class Make>
auto with_window(const Memory& memory, Make make) {
  const auto keys = [](double all, double share) {
    return std::max<std::uint64_t>(64, static_cast<std::uint64_t>(all * share));
  };
  if (memory.exact && memory.window_ms) {
    return make([=](double share, double) {
      return ExactWindow::make({.window_ms = *memory.window_ms,
                                .ids = keys(kFirstIds, share),
                                .hash = memory.hash,
                                .punctual = true},
                               memory.now_ms);
    });
  }
  if (memory.exact) {
    return make(
        [=](double, double) { return Result<EndlessSet>(EndlessSet(memory.hash, memory.now_ms)); });
  }
  if (memory.window_ms) {
    return make([=](double share, double error) {
      return ForgetfulFilter::make({.window_ms = *memory.window_ms,
                                    .fpr = error,
                                    .ids = keys(kFirstIds, share),
                                    .hash = memory.hash},
                                   memory.now_ms);
    });
  }
  return make([=](double share, double error) {
    return EndlessFilter::make(
        {.fpr = error, .first_keys = keys(kFirstKeys, share), .hash = memory.hash}, memory.now_ms);
  });
}

// A window from bytes, made for the same as the model.
template <Window W>
Result<W> decode_like(const W& model, ByteView in) {
  auto window = W::decode(in);
  if (!window) return window;
  const auto goal = [](const W& of) {
    if constexpr (std::same_as<W, EndlessSet>) {
      return of.hash();
    } else {
      return of.goal();
    }
  };
  if (goal(*window) != goal(model)) return Error{Errc::mismatch, "windows of another kind"};
  return window;
}

}  // namespace semel::cli
