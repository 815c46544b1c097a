// Runs one stream of events through one Bloom tree, and measures what the figures need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/papers/paper_tree.h"
#include "bench/papers/web_log.h"
#include "semel/papers/at_once_tree.h"
#include "semel/slices/bloom_tree.h"

namespace semel::bench {

struct TreeOutcome {
  std::vector<PaperLevel> levels;
  std::uint64_t distinct = 0;         // ids of the stream
  std::uint64_t false_positives = 0;  // first events that were called duplicates
  std::uint64_t false_negatives = 0;  // later ones that were called distinct

  double false_positive_rate() const {
    return static_cast<double>(false_positives) / static_cast<double>(distinct);
  }
};

// Holds `sift(leaf, id)`, which says whether it is a duplicate, to the truth.
template <class Sift>
TreeOutcome run_log(const LogSize& size, Sift sift) {
  TreeOutcome outcome;
  WebLog log(size, 1);
  std::vector<bool> seen(size.domain);
  for (std::uint64_t n = 0; n < kLogEvents; ++n) {
    const LogEvent event = log.next();
    const bool duplicate = sift(event.leaf, digest_of(event.id));
    if (!seen[event.id]) {
      ++outcome.distinct;
      outcome.false_positives += duplicate;
    } else {
      outcome.false_negatives += !duplicate;
    }
    seen[event.id] = true;
  }
  return outcome;
}

inline std::uint64_t distinct_in(const LogSize& size) {
  return run_log(size, [](std::size_t, Digest) { return false; }).distinct;
}

inline TreeOutcome run_paper_tree(const LogSize& size, std::size_t levels, bool dense,
                                  std::size_t threshold, const BloomShape& filter) {
  const TreeShape shape = log_tree(levels);
  PaperTree tree(shape, dense, threshold, filter);
  TreeOutcome outcome = run_log(
      size, [&](std::size_t leaf, Digest id) { return tree.sift(leaf_node(shape, leaf), id); });
  outcome.levels = tree.levels();
  return outcome;
}

// Sends the log through a tree of filters, which `make(shape, nodes)` makes.
template <class Make>
TreeOutcome run_tree_of_slices(const LogSize& size, std::size_t levels, const BloomShape& filter,
                               Make make) {
  const TreeShape shape = log_tree(levels);
  std::vector<std::unique_ptr<Slice>> owned;
  std::vector<Slice*> nodes;
  for (std::size_t node = 0; node < shape.nodes(); ++node) {
    owned.push_back(std::make_unique<FilterNode>(filter));
    nodes.push_back(owned.back().get());
  }
  auto tree = make(shape, nodes);
  TreeOutcome outcome = run_log(size, [&](std::size_t leaf, Digest id) {
    Verdict verdict = Verdict::fresh;
    tree.test_and_set(leaf_node(shape, leaf), {&id, 1}, {}, {&verdict, 1}, 0);
    return verdict == Verdict::duplicate;
  });
  for (const TreeLoad& load : tree.load()) outcome.levels.push_back({load.accesses(), load.hits});
  return outcome;
}

inline TreeOutcome run_bloom_tree(const LogSize& size, std::size_t levels, const TreeRules& rules,
                                  const BloomShape& filter) {
  return run_tree_of_slices(size, levels, filter,
                            [&](const TreeShape& shape, const std::vector<Slice*>& nodes) {
                              return *BloomTree::make(shape, nodes, {.rules = rules});
                            });
}

inline TreeOutcome run_at_once_tree(const LogSize& size, std::size_t levels, std::size_t confirm_at,
                                    const BloomShape& filter) {
  return run_tree_of_slices(
      size, levels, filter, [&](const TreeShape& shape, const std::vector<Slice*>& nodes) {
        return *papers::AtOnceTree::make(shape, nodes, {.confirm_at = confirm_at});
      });
}

}  // namespace semel::bench
