#include "semel/slices/internal/tree_run.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "semel/core/assert.h"

namespace semel::slices_internal {
namespace {

bool refused(Verdict verdict) { return verdict == Verdict::full || verdict == Verdict::stale; }

}  // namespace

TreeRun::TreeRun(const TreeShape& shape, const TreeRules& rules, std::vector<SliceState> states,
                 TreeJob job)
    : shape_(&shape),
      rules_(rules),
      states_(std::move(states)),
      job_(std::move(job)),
      items_(job_.ids.size()),
      verdicts_(job_.ids.size()),
      load_(shape.levels()),
      left_(job_.ids.size()) {
  SEMEL_ASSERT(rules_.valid());
  SEMEL_ASSERT(states_.size() == shape.nodes());
  SEMEL_ASSERT(shape.leaf(job_.leaf));
  SEMEL_ASSERT(job_.at_ms.empty() || job_.at_ms.size() == job_.ids.size());
  for (std::size_t node = job_.leaf; node != TreeShape::kNone; node = shape.parent(node)) {
    path_.push_back(node);
  }
  needs_.resize(items_.size() * path_.size());
  if (!job_.only_test) {
    const std::vector<std::size_t> before = repetitions(job_.ids);
    for (std::size_t item = 0; item < items_.size(); ++item) items_[item].before = before[item];
  }
  for (std::size_t item = 0; item < items_.size(); ++item) advance(item);
  write_messages();
}

std::span<const Verdict> TreeRun::verdicts() const {
  SEMEL_ASSERT(done());
  return verdicts_;
}

void TreeRun::step(TimeMs now_ms) {
  SEMEL_ASSERT(!done());
  job_.now_ms = now_ms;
  read_answers();
  for (std::size_t item = 0; item < items_.size(); ++item) advance(item);
  write_messages();
}

bool TreeRun::refutable(std::size_t node) const {
  return shape_->level(node) < rules_.confirm_at && !shape_->has_own(node);
}

bool TreeRun::claims() const {
  return rules_.producers == Producers::many && !job_.only_test && refutable(path_.back());
}

bool TreeRun::tests_and_sets(std::size_t place) const {
  return !job_.only_test && place + 1 == path_.size() && !refutable(path_[place]);
}

std::uint8_t& TreeRun::needs(std::size_t item, std::size_t place) {
  return needs_[item * path_.size() + place];
}

void TreeRun::read_answers() {
  mailbox_.read([&](std::size_t node) { states_[node] = SliceState::failed; },
                [&](std::size_t node, SliceAction action, std::size_t item, Verdict verdict) {
                  read(items_[item], node, action, verdict);
                },
                [&](std::size_t item, ClaimAnswer answer) {
                  items_[item].claim = answer;
                  items_[item].answered = true;
                });
}

void TreeRun::read(Item& item, std::size_t node, SliceAction action, Verdict verdict) {
  const bool sets = action == SliceAction::set || action == SliceAction::test_and_set;
  if (sets && verdict == Verdict::full && node != path_.back()) {
    states_[node] = SliceState::returning;  // the node lacks ids that its parent will know
  }
  if (item.phase == Phase::confirm) {
    const bool hit = verdict == Verdict::duplicate;
    if (hit && refutable(node)) {
      const auto children = shape_->children(node);
      item.next.insert(item.next.end(), children.begin(), children.end());
    } else if (hit || !live(node)) {
      item.stands = true;
    }
  } else if (item.phase == Phase::claim && action == SliceAction::test) {
    item.tested = true;
    item.test = verdict;
  } else {
    item.answered = true;
    item.answer = verdict;
  }
}

// Continues an item once all questions about it are answered.
void TreeRun::advance(std::size_t i) {
  Item& item = items_[i];
  switch (item.phase) {
    case Phase::behind:
      if (item.before == kNone) return begin(i);
      if (items_[item.before].phase != Phase::done) return;
      if (refused(verdicts_[item.before])) return begin(i);
      return finish(i, Verdict::duplicate);
    case Phase::climb:
      return item.answered ? judge(i, item.answer) : climb(i);
    case Phase::claim:
      if (!item.answered || !item.tested) return climb(i);  // past the root, which has failed
      if (item.claim == ClaimAnswer::seen) {
        ++load_at(i).hits;
        return finish(i, Verdict::duplicate);
      }
      if (item.claim != ClaimAnswer::fresh) return;  // another holds it: ask again
      item.claimed = true;
      return judge(i, item.test);
    case Phase::confirm:
      return confirm(i);
    case Phase::commit:
      if (!item.answered) return without_root(i);
      // A repeated commit finds the id seen.
      if (item.claim != ClaimAnswer::done && item.claim != ClaimAnswer::seen) return begin(i);
      item.committed = true;
      verdicts_[i] = Verdict::fresh;
      return set_root(i);
    case Phase::set_root:
      if (item.answered && refused(item.answer)) {
        verdicts_[i] = item.answer;
        return end(i);
      }
      return set_below(i, path_.size() - 1);
    case Phase::set:
      return end(i);
    case Phase::release:
    case Phase::forget:
      return finish(i, verdicts_[i]);
    case Phase::done:
      return;
  }
}

void TreeRun::begin(std::size_t i) {
  Item& item = items_[i];
  item.place = 0;
  item.claimed = item.committed = false;
  for (std::size_t place = 0; place < path_.size(); ++place) needs(i, place) = 0;
  climb(i);
}

// Asks the first node from `place` on that has not failed.
void TreeRun::climb(std::size_t i) {
  Item& item = items_[i];
  for (; failed(path_[item.place]); ++item.place) {
    if (at_root(item)) return without_root(i);
    needs(i, item.place) = 1;
  }
  item.phase = at_root(item) && claims() ? Phase::claim : Phase::climb;
}

void TreeRun::judge(std::size_t i, Verdict verdict) {
  Item& item = items_[i];
  if (verdict == Verdict::duplicate) {
    return refutable(path_[item.place]) ? begin_confirming(i) : found(i);
  }
  const bool set = tests_and_sets(item.place);
  if (set && at_root(item) && refused(verdict)) return finish(i, verdict);
  needs(i, item.place) = !set;
  go_on(i);
}

void TreeRun::begin_confirming(std::size_t i) {
  Item& item = items_[i];
  const std::size_t from = item.place == 0 ? kNone : path_[item.place - 1];
  item.phase = Phase::confirm;
  item.stands = from != kNone && !item.claimed && !live(from);
  item.next.clear();
  for (const std::size_t child : shape_->children(path_[item.place])) {
    if (item.claimed || child != from) item.next.push_back(child);
  }
  item.asked.clear();
  confirm(i);
}

void TreeRun::confirm(std::size_t i) {
  Item& item = items_[i];
  // A node that cannot be asked refutes nothing.
  const auto silent = [&](std::size_t node) { return failed(node); };
  if (item.stands || std::ranges::any_of(item.asked, silent) ||
      std::ranges::any_of(item.next, silent)) {
    return found(i);
  }
  item.asked = std::exchange(item.next, {});
  if (!item.asked.empty()) return;
  ++load_at(i).refuted;
  needs(i, item.place) = 1;  // the node knows the bits, but not for how long
  go_on(i);
}

// Goes up one node after a miss.
void TreeRun::go_on(std::size_t i) {
  Item& item = items_[i];
  if (at_root(item)) return decide_fresh(i);
  ++item.place;
  climb(i);
}

void TreeRun::found(std::size_t i) {
  ++load_at(i).hits;
  verdicts_[i] = Verdict::duplicate;
  if (job_.only_test || rules_.kind == TreeKind::sparse) return end(i);
  set_below(i, items_[i].place);
}

void TreeRun::decide_fresh(std::size_t i) {
  verdicts_[i] = Verdict::fresh;
  if (job_.only_test) return end(i);
  if (!items_[i].claimed) return set_root(i);
  items_[i].phase = Phase::commit;
  if (failed(path_.back())) without_root(i);
}

void TreeRun::without_root(std::size_t i) {
  verdicts_[i] = rules_.root_failed;
  if (job_.only_test || verdicts_[i] == Verdict::duplicate) return end(i);
  set_below(i, path_.size() - 1);
}

void TreeRun::set_root(std::size_t i) {
  if (needs(i, path_.size() - 1) == 0 || failed(path_.back())) {
    return set_below(i, path_.size() - 1);
  }
  items_[i].phase = Phase::set_root;
}

// Sets the id in the first `places` nodes of the path that still need it.
void TreeRun::set_below(std::size_t i, std::size_t places) {
  bool reached = false;
  for (std::size_t place = 0; place < path_.size(); ++place) {
    if (place >= places || failed(path_[place])) needs(i, place) = 0;
    reached = reached || needs(i, place) != 0;
  }
  items_[i].phase = Phase::set;
  if (!reached) end(i);
}

void TreeRun::end(std::size_t i) {
  Item& item = items_[i];
  if (!item.claimed || failed(path_.back())) return finish(i, verdicts_[i]);
  item.phase = item.committed ? Phase::forget : Phase::release;
}

void TreeRun::finish(std::size_t i, Verdict verdict) {
  verdicts_[i] = verdict;
  items_[i].phase = Phase::done;
  --left_;
}

void TreeRun::write_messages() {
  mailbox_.clear();
  waits_ = !done();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (item.phase == Phase::done || item.phase == Phase::behind) continue;
    const bool asks_again = item.phase == Phase::claim && item.tested;
    waits_ = waits_ && asks_again;
    item.answered = item.tested = false;
    // Claims are sent first: the root is tested after it has granted the claim.
    if (item.phase == Phase::claim) send(path_.back(), SliceAction::claim, i);
  }
  for (std::size_t i = 0; i < items_.size(); ++i) write(i);
}

void TreeRun::write(std::size_t i) {
  const Item& item = items_[i];
  const std::size_t root = path_.back();
  switch (item.phase) {
    case Phase::climb: {
      const bool set = tests_and_sets(item.place);
      return send(path_[item.place], set ? SliceAction::test_and_set : SliceAction::test, i);
    }
    case Phase::claim:
      return send(root, SliceAction::test, i);
    case Phase::confirm:
      for (const std::size_t node : item.asked) send(node, SliceAction::test, i);
      return;
    case Phase::commit:
      return send(root, SliceAction::commit, i);
    case Phase::set_root:
      return send(root, SliceAction::set, i);
    case Phase::set:
      for (std::size_t place = 0; place < path_.size(); ++place) {
        if (needs(i, place) != 0) send(path_[place], SliceAction::set, i);
      }
      return;
    case Phase::release:
      return send(root, SliceAction::release, i);
    case Phase::forget:
      return send(root, SliceAction::forget, i);
    case Phase::behind:
    case Phase::done:
      return;
  }
}

void TreeRun::send(std::size_t node, SliceAction action, std::size_t item) {
  const std::optional<TimeMs> at_ms =
      job_.at_ms.empty() ? std::nullopt : std::optional(job_.at_ms[item]);
  TreeLoad& load = load_of(node);
  load.messages +=
      mailbox_.put(node, action, {job_.now_ms, job_.owner, later_by(job_.now_ms, rules_.claim_ms)},
                   job_.ids[item], at_ms, item);
  if (action == SliceAction::set) {
    ++load.sets;
  } else if (action == SliceAction::test || action == SliceAction::test_and_set) {
    ++load.tests;
  } else {
    ++load.claims;
  }
}

}  // namespace semel::slices_internal
