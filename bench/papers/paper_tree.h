// The Bloom tree of 'One is Enough', section 6, as printed: plain filters, algorithms 1 and 2, and
// the top-down heuristic, which calls an id distinct when the first hit on its way is refuted. And
// the same filter as a node of BloomTree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/papers/one_is_enough.h"
#include "semel/core/assert.h"
#include "semel/filter/bloom_filter.h"
#include "semel/slices/slice.h"
#include "semel/slices/tree_shape.h"

namespace semel::bench {

inline constexpr std::uint32_t kTreeProbes = 4;

// Has the size that equation 1 gives.
inline BloomShape tree_filter(double ids, double error) {
  const auto bits = static_cast<std::uint64_t>(cells_for(ids, kTreeProbes, error));
  return {BloomLayout::plain, kTreeProbes, divide_up(bits, 64) * 64, {}};
}

struct PaperLevel {
  std::uint64_t accesses = 0;  // of filters, to test, to set, or to test and set
  std::uint64_t hits = 0;
};

class PaperTree {
 public:
  PaperTree(TreeShape shape, bool dense, std::size_t threshold, const BloomShape& filter)
      : shape_(std::move(shape)),
        dense_(dense),
        threshold_(threshold),
        filters_(shape_.nodes(), BloomFilter(filter)),
        levels_(shape_.levels()) {}

  // Returns true if the id is called a duplicate.
  bool sift(std::size_t leaf, Digest id) {
    std::vector<std::size_t> missed;  // the stack of algorithm 2
    for (std::size_t node = leaf; node != TreeShape::kNone; node = shape_.parent(node)) {
      if (test(node, id)) {
        const bool stands = confirmed(node, missed.empty() ? TreeShape::kNone : missed.back(), id);
        if (stands) ++levels_[shape_.level(node)].hits;
        if (stands) return true;
        break;
      }
      if (dense_) filters_[node].add(id);  // in the same access
      missed.push_back(node);
    }
    if (!dense_) {
      for (const std::size_t node : missed) set(node, id);
    }
    return false;
  }

  const std::vector<PaperLevel>& levels() const { return levels_; }

 private:
  bool test(std::size_t node, Digest id) {
    ++levels_[shape_.level(node)].accesses;
    return filters_[node].contains(id);
  }
  void set(std::size_t node, Digest id) {
    ++levels_[shape_.level(node)].accesses;
    filters_[node].add(id);
  }
  // Asks all children, and all children of those that know the id.
  bool confirmed(std::size_t node, std::size_t from, Digest id) {
    if (shape_.level(node) >= threshold_ || shape_.leaf(node)) return true;
    bool any = false;
    for (const std::size_t child : shape_.children(node)) {
      if (child != from && test(child, id)) any = confirmed(child, TreeShape::kNone, id) || any;
    }
    return any;
  }

  TreeShape shape_;
  bool dense_;
  std::size_t threshold_;
  std::vector<BloomFilter> filters_;
  std::vector<PaperLevel> levels_;
};

// Append-only, for one producer.
class FilterNode final : public Slice {
 public:
  explicit FilterNode(const BloomShape& shape) : filter_(shape) {}

  void start(SliceCall& call) override {
    call.verdicts.clear();
    for (const Digest& key : call.keys) {
      bool known = false;
      switch (call.action) {
        case SliceAction::test:
          known = filter_.contains(key);
          break;
        case SliceAction::set:
        case SliceAction::test_and_set:
          known = !filter_.add(key);
          break;
        default:
          SEMEL_ASSERT(!"claims are for many producers");
      }
      call.verdicts.push_back(known ? Verdict::duplicate : Verdict::fresh);
    }
  }
  void finish(SliceCall&) override {}
  std::uint64_t bytes() const override { return filter_.bytes(); }
  double false_positive_rate() const override { return filter_.live_fpr(); }

 private:
  BloomFilter filter_;
};

}  // namespace semel::bench
