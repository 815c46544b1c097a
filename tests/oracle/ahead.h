// Tests a window as of a later time, compared with a copy that was advanced to it.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "semel/hash/digest.h"
#include "semel/window/internal/id_window.h"

namespace semel {

// Compares test(id, now_ms) of the window, one by one and as a batch, with test(id) of the copy.
template <window_internal::IdWindow W>
void expect_test_ahead_of_time(const W& window, std::span<const Digest> ids, TimeMs now_ms) {
  W later = window;
  later.advance(now_ms);
  std::vector<Verdict> verdicts(ids.size()), batch(ids.size()), expected(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) verdicts[i] = window.test(ids[i], now_ms);
  window.test(ids, now_ms, batch);
  later.test(ids, expected);
  EXPECT_EQ(verdicts, expected) << "at " << now_ms << ", from " << window.now();
  EXPECT_EQ(batch, expected) << "at " << now_ms << ", from " << window.now();
}

}  // namespace semel
