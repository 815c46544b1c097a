#include "semel/slices/internal/slice_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "semel/core/assert.h"

namespace semel::slices_internal {
namespace {

// Returns the verdict of all slices on an id that was set. It is a refusal if one slice refused the
// id, and fresh if the id was new to one.
Verdict together(Verdict a, Verdict b) {
  for (const Verdict verdict : {Verdict::full, Verdict::stale, Verdict::fresh}) {
    if (a == verdict || b == verdict) return verdict;
  }
  return Verdict::duplicate;
}

}  // namespace

SliceRun::SliceRun(const Placement& placement, const SliceRules& rules,
                   std::vector<SliceState> states, SliceJob job)
    : placement_(placement),
      rules_(rules),
      states_(std::move(states)),
      job_(std::move(job)),
      items_(job_.ids.size()),
      known_(job_.ids.size() * placement.spread()),
      verdicts_(job_.ids.size()),
      left_(job_.ids.size()) {
  SEMEL_ASSERT(states_.size() == placement_.slices());
  SEMEL_ASSERT(rules_.needed <= placement_.spread());
  SEMEL_ASSERT(rules_.claim_ms >= 0 && !is_claim(job_.action));
  SEMEL_ASSERT(job_.at_ms.empty() || job_.at_ms.size() == job_.ids.size());
  place();
  if (job_.action == SliceAction::test_and_set && placement_.spread() > 1) {
    const std::vector<std::size_t> before = repetitions(job_.ids);
    for (std::size_t item = 0; item < items_.size(); ++item) items_[item].before = before[item];
  }
  for (std::size_t item = 0; item < items_.size(); ++item) advance(item);
  write_messages();
}

std::span<const Verdict> SliceRun::verdicts() const {
  SEMEL_ASSERT(done());
  return verdicts_;
}

void SliceRun::step(TimeMs now_ms) {
  SEMEL_ASSERT(!done());
  job_.now_ms = now_ms;
  read_answers();
  for (std::size_t item = 0; item < items_.size(); ++item) advance(item);
  write_messages();
}

std::span<const SliceProbe> SliceRun::probes_of(std::size_t item) const {
  return std::span(probes_).subspan(item * placement_.spread(), placement_.spread());
}

std::span<SliceRun::Known> SliceRun::known_of(std::size_t item) {
  return std::span(known_).subspan(item * placement_.spread(), placement_.spread());
}

bool SliceRun::claims() const {
  return rules_.producers == Producers::many && placement_.spread() > 1 &&
         job_.action == SliceAction::test_and_set;
}

// Probes are in the order of the functions, except that all probes of a slice come with its first.
void SliceRun::place() {
  probes_.reserve(known_.size());
  for (const Digest& id : job_.ids) {
    const std::size_t first = probes_.size();
    for (std::uint32_t function = 0; function < placement_.spread(); ++function) {
      const SliceProbe probe = placement_.probe(id, function);
      const auto from = probes_.begin() + static_cast<std::ptrdiff_t>(first);
      const auto same = std::find_if(probes_.rbegin(), std::make_reverse_iterator(from),
                                     [&](const SliceProbe& p) { return p.slice == probe.slice; });
      probes_.insert(same == std::make_reverse_iterator(from) ? probes_.end() : same.base(), probe);
    }
  }
}

void SliceRun::read_answers() {
  mailbox_.read([&](std::size_t slice) { states_[slice] = SliceState::failed; },
                [&](std::size_t, SliceAction action, const Route& route, Verdict verdict) {
                  if (action == SliceAction::test) {
                    known_[route.probe] = verdict == Verdict::duplicate ? Known::yes : Known::no;
                  } else {
                    read(items_[route.item], verdict, action);
                  }
                },
                [&](const Route& route, ClaimAnswer answer) {
                  items_[route.item].claim = answer;
                  items_[route.item].answered = true;
                });
}

void SliceRun::read(Item& item, Verdict verdict, SliceAction action) {
  const bool several = action == SliceAction::set && item.answered;
  item.answer = several ? together(item.answer, verdict) : verdict;
  item.answered = true;
}

// Continues an item once all questions about it are answered.
void SliceRun::advance(std::size_t i) {
  Item& item = items_[i];
  switch (item.phase) {
    case Phase::behind: {
      if (item.before == kNone) return begin(i);
      if (items_[item.before].phase != Phase::done) return;
      const Verdict before = verdicts_[item.before];
      const bool refused = before == Verdict::full || before == Verdict::stale;
      return refused ? begin(i) : finish(i, Verdict::duplicate);
    }
    case Phase::claim:
      if (!item.answered) return begin(i);
      if (item.claim == ClaimAnswer::fresh) return judge(i);
      if (item.claim == ClaimAnswer::seen) return finish(i, Verdict::duplicate);
      // Another owner holds it. An answer from home before the claim is granted means nothing.
      std::ranges::fill(known_of(i), Known::unasked);
      return;
    case Phase::test:
      return judge(i);
    case Phase::test_and_set:
      return finish(i, item.answered ? item.answer : verdict_without_slices());
    case Phase::commit:
      // A repeated commit finds the id seen.
      if (!item.answered || (item.claim != ClaimAnswer::done && item.claim != ClaimAnswer::seen)) {
        return begin(i);
      }
      verdicts_[i] = Verdict::fresh;
      return set(i);
    case Phase::set: {
      const bool only_set = job_.action == SliceAction::set;
      if (only_set && !item.answered) return finish(i, verdict_without_slices());
      if (item.answered && (only_set || item.answer != Verdict::duplicate)) {
        verdicts_[i] = item.answer;
      }
      if (item.home == kNone || !live(item.home)) return finish(i, verdicts_[i]);
      item.phase = Phase::forget;
      return;
    }
    case Phase::release:
    case Phase::forget:
      return finish(i, verdicts_[i]);
    case Phase::done:
      return;
  }
}

void SliceRun::begin(std::size_t i) {
  Item& item = items_[i];
  std::ranges::fill(known_of(i), Known::unasked);
  if (job_.action == SliceAction::set) return set(i);
  if (job_.action == SliceAction::test_and_set && placement_.spread() == 1) {
    if (!live(probes_of(i)[0].slice)) return decide(i, rules_.needed == 0);
    item.phase = Phase::test_and_set;
    return;
  }
  item.home = kNone;
  if (claims()) {
    for (const SliceProbe& probe : probes_of(i)) {
      if (!live(probe.slice)) continue;
      item.home = probe.slice;
      item.phase = Phase::claim;
      return;
    }
  }
  judge(i);
}

// Decides an item if possible. One 'no' is enough; a 'yes' needs the answers of all slices.
void SliceRun::judge(std::size_t i) {
  const std::span<const SliceProbe> probes = probes_of(i);
  const std::span<const Known> known = known_of(i);
  std::uint32_t yes = 0;
  bool asks = false;
  for (std::size_t p = 0; p < probes.size(); ++p) {
    if (known[p] == Known::no) return decide(i, false);
    if (known[p] == Known::yes) ++yes;
    asks = asks || (known[p] == Known::unasked && live(probes[p].slice));
  }
  if (!asks) return decide(i, yes >= rules_.needed);
  items_[i].phase = Phase::test;
}

void SliceRun::decide(std::size_t i, bool duplicate) {
  Item& item = items_[i];
  verdicts_[i] = duplicate ? Verdict::duplicate : Verdict::fresh;
  if (job_.action == SliceAction::test) return finish(i, verdicts_[i]);
  const bool claimed = item.home != kNone && live(item.home);
  if (duplicate && !claimed) return finish(i, verdicts_[i]);
  if (claimed) {
    item.phase = duplicate ? Phase::release : Phase::commit;
  } else if (item.home == kNone) {
    set(i);
  } else {
    begin(i);  // home failed, and the claim with it
  }
}

void SliceRun::set(std::size_t i) {
  items_[i].phase = Phase::set;
  const bool reached = std::ranges::any_of(probes_of(i), [&](const SliceProbe& probe) {
    return states_[probe.slice] != SliceState::failed;
  });
  if (reached) return;
  items_[i].answered = false;
  advance(i);
}

void SliceRun::finish(std::size_t i, Verdict verdict) {
  verdicts_[i] = verdict;
  items_[i].phase = Phase::done;
  --left_;
}

// Decides an id for which no slice could be asked: x = 0 slices know it.
Verdict SliceRun::verdict_without_slices() const {
  return rules_.needed == 0 ? Verdict::duplicate : Verdict::fresh;
}

void SliceRun::write_messages() {
  mailbox_.clear();
  waits_ = !done();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (item.phase == Phase::done || item.phase == Phase::behind) continue;
    const bool asks_again = item.phase == Phase::claim && item.answered;
    waits_ = waits_ && asks_again;
    item.answered = false;
    // Claims are sent first: a home is tested after it has granted the claim.
    if (item.phase == Phase::claim) write_claim(i, SliceAction::claim);
  }
  for (std::size_t i = 0; i < items_.size(); ++i) write(i);
}

void SliceRun::write(std::size_t i) {
  const Item& item = items_[i];
  const std::size_t first = i * placement_.spread();
  switch (item.phase) {
    case Phase::claim:
    case Phase::test:
      return write_tests(i);
    case Phase::test_and_set:
      return send(probes_[first].slice, SliceAction::test_and_set, probes_[first].key, i, first);
    case Phase::set:
      for (std::size_t p = first; p < first + placement_.spread(); ++p) {
        if (states_[probes_[p].slice] == SliceState::failed) continue;
        send(probes_[p].slice, SliceAction::set, probes_[p].key, i, p);
      }
      return;
    case Phase::commit:
      return write_claim(i, SliceAction::commit);
    case Phase::release:
      return write_claim(i, SliceAction::release);
    case Phase::forget:
      return write_claim(i, SliceAction::forget);
    case Phase::behind:
    case Phase::done:
      return;
  }
}

void SliceRun::write_tests(std::size_t i) {
  const Item& item = items_[i];
  std::size_t only = item.phase == Phase::claim ? item.home : kNone;
  const std::size_t first = i * placement_.spread();
  for (std::size_t p = first; p < first + placement_.spread(); ++p) {
    const std::size_t slice = probes_[p].slice;
    if (known_[p] != Known::unasked || !live(slice)) continue;
    if (only != kNone && slice != only) continue;
    if (rules_.probing == Probing::pipelined) only = slice;
    send(slice, SliceAction::test, probes_[p].key, i, p);
  }
}

void SliceRun::write_claim(std::size_t i, SliceAction action) {
  send(items_[i].home, action, job_.ids[i], i, kNone);
}

void SliceRun::send(std::size_t slice, SliceAction action, Digest key, std::size_t item,
                    std::size_t probe) {
  const std::optional<TimeMs> at_ms =
      job_.at_ms.empty() ? std::nullopt : std::optional(job_.at_ms[item]);
  mailbox_.put(slice, action, {job_.now_ms, job_.owner, later_by(job_.now_ms, rules_.claim_ms)},
               key, at_ms, {item, probe});
}

}  // namespace semel::slices_internal
