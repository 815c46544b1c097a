// Events with a place where each comes in, like the web log of 'One is Enough', which is not
// public.
//
// The model: there are 81 leaves, and the share of a leaf falls with its rank as rank^-0.85. Ids
// follow Zipf's law with the exponent 1. All leaves have one ranking of ids, but 5 % of the events
// follow a ranking of their leaf. The paper gives two numbers of distinct ids. Its text says about
// 4300. Its filters (143000, 105000 and 89000 cells for errors of 0.02, 0.05 and 0.08 with k = 4;
// the first is printed as 14300) are those that equation 1 gives for 16,850 ids, and its table 1
// leaves 17,000 to 18,000 of 100,000 events that are no duplicates. With 16,850 ids the three
// numbers of the model, the number of leaves, their shares and the 5 %, are chosen so that table 1
// comes out: 49K hits in the leaves of a dense tree, 5K in those of a sparse one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/random.h"
#include "semel/slices/tree_shape.h"

namespace semel::bench {

inline constexpr std::size_t kFanOut = 3;
inline constexpr std::size_t kLeaves = 81;  // kFanOut^4: the leaves of five levels
inline constexpr std::uint64_t kLogEvents = 100'000;

struct LogEvent {
  std::size_t leaf;
  std::uint64_t id;
};

// The number of ids to draw from, so that about this many different ids come up.
struct LogSize {
  const char* name;
  std::uint64_t domain;
};
inline constexpr LogSize kLogByTable = {"16850 ids", 27'500};
inline constexpr LogSize kLogByText = {"4300 ids", 4'350};

class WebLog {
 public:
  WebLog(const LogSize& size, std::uint64_t seed)
      : random_(seed), ranks_(size.domain, 1), leaves_(kLeaves, kLeafSkew) {}

  LogEvent next() {
    // Ranks of leaves are scattered, so that the busy ones are not all in one part of the tree.
    const std::size_t leaf = leaves_.draw(random_) * 34 % kLeaves;
    const std::uint64_t rank = ranks_.draw(random_);
    const bool own = random_.unit() < kOwnShare;
    return {leaf, own ? scale(mix(rank * kLeaves + leaf), ranks_.size()) : rank};
  }

 private:
  static constexpr double kLeafSkew = 0.85, kOwnShare = 0.05;

  class Zipf {
   public:
    Zipf(std::uint64_t size, double exponent) {
      double sum = 0;
      for (std::uint64_t rank = 1; rank <= size; ++rank) {
        sum += std::pow(static_cast<double>(rank), -exponent);
        up_to_.push_back(sum);
      }
    }
    std::uint64_t draw(Random& random) const {
      const double point = random.unit() * up_to_.back();
      return static_cast<std::uint64_t>(std::lower_bound(up_to_.begin(), up_to_.end(), point) -
                                        up_to_.begin());
    }
    std::uint64_t size() const { return up_to_.size(); }

   private:
    std::vector<double> up_to_;
  };

  Random random_;
  Zipf ranks_, leaves_;
};

// A tree of `levels` over the leaves of the log: two levels have all of them below the root. Leaf l
// of the log is node leaf_node(shape, l).
inline TreeShape log_tree(std::size_t levels) {
  std::vector<std::size_t> parents = {TreeShape::kNone};
  std::size_t first = 0, width = 1;  // of the last level
  for (std::size_t level = 1; level < levels; ++level) {
    const std::size_t fan_out = levels == 2 ? kLeaves : kFanOut;
    for (std::size_t node = 0; node < width * fan_out; ++node) {
      parents.push_back(first + node / fan_out);
    }
    first += width;
    width *= fan_out;
  }
  return *TreeShape::make(parents);
}
inline std::size_t leaf_node(const TreeShape& shape, std::size_t leaf) {
  return shape.nodes() - kLeaves + leaf;
}

}  // namespace semel::bench
