#include "semel/slices/bloom_tree.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "semel/core/assert.h"
#include "semel/slices/internal/tree_run.h"

namespace semel {

bool TreeRules::valid() const {
  if (root_failed != Verdict::duplicate && root_failed != Verdict::fresh) return false;
  return claim_ms >= 0;
}

TimeMs longest_ms(TreeKind kind, std::size_t levels, TimeMs node_ms) {
  SEMEL_ASSERT(levels > 0 && node_ms >= 0);
  if (kind == TreeKind::sparse) return node_ms;
  TimeMs product_ms = 0;
  return __builtin_mul_overflow(node_ms, levels, &product_ms) ? std::numeric_limits<TimeMs>::max()
                                                              : product_ms;
}

TreeLoad& TreeLoad::operator+=(const TreeLoad& other) {
  messages += other.messages;
  tests += other.tests;
  sets += other.sets;
  claims += other.claims;
  hits += other.hits;
  refuted += other.refuted;
  return *this;
}

Result<BloomTree> BloomTree::make(TreeShape shape, std::vector<Slice*> nodes, Options options) {
  if (nodes.size() != shape.nodes() ||
      std::find(nodes.begin(), nodes.end(), nullptr) != nodes.end()) {
    return Error{Errc::invalid, "Bloom tree: every node of the shape needs a slice"};
  }
  const TreeRules& rules = options.rules;
  if (!rules.valid()) return Error{Errc::invalid, "Bloom tree: invalid root_failed or claim_ms"};
  if (rules.producers == Producers::many && rules.confirm_at > 0 && !options.pause) {
    return Error{Errc::invalid, "Bloom tree: many producers with confirm_at need a pause"};
  }
  return BloomTree(std::move(shape), std::move(nodes), std::move(options));
}

BloomTree::BloomTree(TreeShape shape, std::vector<Slice*> nodes, Options options)
    : shape_(std::move(shape)),
      nodes_(std::move(nodes)),
      options_(std::move(options)),
      states_(nodes_.size(), SliceState::live),
      load_(shape_.levels()) {}

Result<std::size_t> BloomTree::add_leaf(std::size_t parent, Slice* node) {
  if (node == nullptr) return Error{Errc::invalid, "Bloom tree: the new leaf needs a slice"};
  const Result<std::size_t> leaf = shape_.add_leaf(parent);
  if (!leaf) return leaf;
  nodes_.push_back(node);
  states_.push_back(SliceState::live);
  load_.resize(shape_.levels());
  return leaf;
}

void BloomTree::test(std::size_t leaf, std::span<const Digest> ids, std::span<Verdict> verdicts,
                     TimeMs now_ms) {
  run({.leaf = leaf, .ids = {ids.begin(), ids.end()}, .now_ms = now_ms, .only_test = true},
      verdicts);
}

void BloomTree::test_and_set(std::size_t leaf, std::span<const Digest> ids,
                             std::span<const TimeMs> at_ms, std::span<Verdict> verdicts,
                             TimeMs now_ms) {
  run({.leaf = leaf,
       .ids = {ids.begin(), ids.end()},
       .at_ms = {at_ms.begin(), at_ms.end()},
       .now_ms = now_ms},
      verdicts);
}

void BloomTree::set_state(std::size_t node, SliceState state) {
  SEMEL_ASSERT(node < states_.size());
  states_[node] = state;
}

void BloomTree::run(slices_internal::TreeJob job, std::span<Verdict> verdicts) {
  SEMEL_ASSERT(job.ids.size() == verdicts.size());
  job.owner = options_.first_owner + runs_++;
  TimeMs now_ms = job.now_ms;
  slices_internal::TreeRun run(shape_, options_.rules, states_, std::move(job));
  while (!run.done()) {
    if (run.waits()) now_ms = std::max(now_ms, options_.pause());
    deliver(run.messages(), nodes_);
    run.step(now_ms);
  }
  std::ranges::copy(run.verdicts(), verdicts.begin());
  states_.assign(run.states().begin(), run.states().end());
  for (std::size_t level = 0; level < load_.size(); ++level) load_[level] += run.load()[level];
}

std::vector<TreeLevel> BloomTree::levels() const {
  std::vector<TreeLevel> levels(shape_.levels());
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    TreeLevel& level = levels[shape_.level(node)];
    ++level.nodes;
    level.bytes += nodes_[node]->bytes();
    level.false_positive_rate += nodes_[node]->false_positive_rate();
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels[i].load = load_[i];
    levels[i].false_positive_rate /= static_cast<double>(levels[i].nodes);
  }
  return levels;
}

std::uint64_t BloomTree::bytes() const {
  std::uint64_t sum = 0;
  for (const Slice* node : nodes_) sum += node->bytes();
  return sum;
}

double BloomTree::false_positive_rate(std::size_t leaf) const {
  SEMEL_ASSERT(shape_.leaf(leaf));
  double sum = 0;
  for (std::size_t node = leaf; node != TreeShape::kNone; node = shape_.parent(node)) {
    sum += nodes_[node]->false_positive_rate();
  }
  return std::min(sum, 1.0);
}

}  // namespace semel
