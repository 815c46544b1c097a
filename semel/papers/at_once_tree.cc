#include "semel/papers/at_once_tree.h"

#include <algorithm>
#include <utility>

#include "semel/core/assert.h"

namespace semel::papers {

Result<AtOnceTree> AtOnceTree::make(TreeShape shape, std::vector<Slice*> nodes, Options options) {
  if (nodes.size() != shape.nodes() ||
      std::find(nodes.begin(), nodes.end(), nullptr) != nodes.end()) {
    return Error{Errc::invalid, "Bloom tree: every node of the shape needs a slice"};
  }
  if (options.root_failed != Verdict::duplicate && options.root_failed != Verdict::fresh) {
    return Error{Errc::invalid, "Bloom tree: a failed root says duplicate or fresh"};
  }
  return AtOnceTree(std::move(shape), std::move(nodes), options);
}

AtOnceTree::AtOnceTree(TreeShape shape, std::vector<Slice*> nodes, Options options)
    : shape_(std::move(shape)),
      nodes_(std::move(nodes)),
      options_(options),
      states_(nodes_.size(), SliceState::live),
      load_(shape_.levels()) {}

void AtOnceTree::set_state(std::size_t node, SliceState state) {
  SEMEL_ASSERT(node < states_.size());
  states_[node] = state;
}

void AtOnceTree::test_and_set(std::size_t leaf, std::span<const Digest> ids,
                              std::span<const TimeMs> at_ms, std::span<Verdict> verdicts,
                              TimeMs now_ms) {
  SEMEL_ASSERT(shape_.leaf(leaf) && ids.size() == verdicts.size());
  SEMEL_ASSERT(at_ms.empty() || at_ms.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto at = at_ms.empty() ? std::nullopt : std::optional(at_ms[i]);
    verdicts[i] = sift(leaf, {ids[i], at, now_ms});
  }
}

Verdict AtOnceTree::sift(std::size_t leaf, const Event& event) {
  std::vector<std::size_t> owed;  // nodes that know the bits, but not for how long
  const auto end = [&](Verdict verdict) {
    for (const std::size_t node : owed) (void)ask(node, SliceAction::set, event);
    return verdict;
  };
  std::size_t from = TreeShape::kNone;
  for (std::size_t node = leaf; node != TreeShape::kNone; from = node, node = shape_.parent(node)) {
    const std::optional<Verdict> verdict = ask(node, SliceAction::test_and_set, event);
    const bool is_root = node == shape_.root();
    if (!verdict) {
      if (is_root) return end(options_.root_failed);
    } else if (*verdict == Verdict::duplicate) {
      if (!refutable(node) || stands(node, from, event)) {
        ++load_of(node).hits;
        return end(Verdict::duplicate);
      }
      ++load_of(node).refuted;
      owed.push_back(node);
    } else if (*verdict != Verdict::fresh && is_root) {
      return *verdict;
    } else if (*verdict == Verdict::full) {
      states_[node] = SliceState::returning;  // the node lacks ids that its parent will know
    }
  }
  return end(Verdict::fresh);
}

// Returns true unless the nodes below refute the hit. A node that cannot be asked, or has missed
// ids, refutes nothing.
bool AtOnceTree::stands(std::size_t node, std::size_t from, const Event& event) {
  if (from != TreeShape::kNone && !live(from)) return true;
  std::vector<std::size_t> asked;
  for (const std::size_t child : shape_.children(node)) {
    if (child != from) asked.push_back(child);
  }
  while (!asked.empty()) {
    if (std::ranges::any_of(asked, [&](std::size_t n) { return failed(n); })) return true;
    std::vector<std::size_t> next;
    for (const std::size_t child : asked) {
      const std::optional<Verdict> verdict = ask(child, SliceAction::test, event);
      const bool hit = verdict == Verdict::duplicate;
      if (!verdict || !live(child) || (hit && !refutable(child))) return true;
      if (!hit) continue;
      const auto children = shape_.children(child);
      next.insert(next.end(), children.begin(), children.end());
    }
    asked = std::move(next);
  }
  return false;
}

// Returns nullopt if the node has failed.
std::optional<Verdict> AtOnceTree::ask(std::size_t node, SliceAction action, const Event& event) {
  if (failed(node)) return std::nullopt;
  SliceMessage message{node, {.action = action, .now_ms = event.now_ms, .keys = {event.id}}};
  if (event.at_ms && action != SliceAction::test) message.call.at_ms = {*event.at_ms};
  TreeLoad& load = load_of(node);
  ++load.messages;
  ++(action == SliceAction::set ? load.sets : load.tests);
  deliver({&message, 1}, nodes_);
  if (!message.call.failed) return message.call.verdicts[0];
  states_[node] = SliceState::failed;
  return std::nullopt;
}

}  // namespace semel::papers
