// Makes the batch calls of a window from its single calls.
#pragma once

#include <algorithm>
#include <span>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/window/window.h"

namespace semel::window_internal {

// Sets verdicts[i] = judge(ids[i]) in order.
template <class Id, class Judge>
void judge_each(std::span<const Id> ids, std::span<Verdict> verdicts, Judge judge) {
  SEMEL_ASSERT(ids.size() == verdicts.size());
  std::transform(ids.begin(), ids.end(), verdicts.begin(), judge);
}

// Sets verdicts[i] = judge(ids[i]) in order. Calls touch(id), which prefetches what judge(id) will
// need, some ids ahead.
template <class Id, class Touch, class Judge>
[[gnu::always_inline]] inline void judge_ahead(std::span<const Id> ids, std::span<Verdict> verdicts,
                                               Touch touch, Judge judge) {
  SEMEL_ASSERT(ids.size() == verdicts.size());
  for_each_ahead(
      ids.size(), [&](std::size_t i) { touch(ids[i]); },
      [&](std::size_t i) { verdicts[i] = judge(ids[i]); });
}

}  // namespace semel::window_internal
