#include "semel/slices/mailbox.h"

#include <algorithm>
#include <numeric>

#include "semel/window/digest_table.h"

namespace semel {

std::vector<std::size_t> repetitions(std::span<const Digest> ids) {
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return ids[a] == ids[b] ? a < b : comes_before(ids[a], ids[b]);
  });
  std::vector<std::size_t> before(ids.size(), kNoRepetition);
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (ids[order[i]] == ids[order[i - 1]]) before[order[i]] = order[i - 1];
  }
  return before;
}

}  // namespace semel
