// IdWindow: the calls that ClientWindow and every structure behind Window (semel/window/window.h)
// have in common.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "semel/window/window.h"

namespace semel::window_internal {

template <class W>
concept IdWindow = requires(W window, const W& seen, typename W::Id id, TimeMs time,
                            std::span<const typename W::Id> ids, std::span<Verdict> verdicts) {
  { seen.test(id) } -> std::same_as<Verdict>;
  { window.insert(id) } -> std::same_as<Verdict>;
  { window.insert(id, time) } -> std::same_as<Verdict>;
  { window.test_and_insert(id) } -> std::same_as<Verdict>;
  { window.test_and_insert(id, time) } -> std::same_as<Verdict>;
  { seen.test(ids, verdicts) } -> std::same_as<void>;
  { window.insert(ids, verdicts) } -> std::same_as<void>;
  { window.test_and_insert(ids, verdicts) } -> std::same_as<void>;
  { window.advance(time) } -> std::same_as<void>;
  { seen.now() } -> std::same_as<TimeMs>;
  { seen.promise() } -> std::same_as<WindowPromise>;
  { seen.counts() } -> std::same_as<WindowCounts>;
  { seen.false_positive_rate() } -> std::same_as<double>;
  { seen.bytes() } -> std::same_as<std::uint64_t>;
};

}  // namespace semel::window_internal
