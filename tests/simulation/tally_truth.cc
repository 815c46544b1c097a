#include "tests/simulation/tally_truth.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace semel::simulation {

using tally::internal::Operation;

void TallyTruth::take(Dot dot, std::size_t intent, VersionVector observed) {
  const auto at = log_.insert_or_assign(dot, Taken{intent, std::move(observed)}).first;
  resets_.erase(dot);
  if (intents[intent].kind != Operation::Kind::add) resets_.emplace(dot, &at->second);
  dots_.resize(intents.size());
  dots_[intent].push_back(dot);
}

std::vector<std::size_t> TallyTruth::lose(SiteId site, std::uint64_t last) {
  std::vector<std::size_t> lost;
  for (auto at = log_.upper_bound({site, last}); at != log_.end() && at->first.site == site;) {
    lost.push_back(at->second.intent);
    std::erase(dots_[at->second.intent], at->first);
    resets_.erase(at->first);
    at = log_.erase(at);
  }
  return lost;
}

std::uint64_t TallyTruth::last_of(SiteId site) const {
  const auto after = log_.upper_bound({site, Dot::kLastCounter});
  if (after == log_.begin()) return 0;
  const Dot last = std::prev(after)->first;
  return last.site == site ? last.counter : 0;
}

std::optional<std::size_t> TallyTruth::intent_of(Dot dot) const {
  const auto at = log_.find(dot);
  return at == log_.end() ? std::nullopt : std::optional(at->second.intent);
}

bool TallyTruth::held(std::size_t intent, const VersionVector& held) const {
  return intent < dots_.size() && std::any_of(dots_[intent].begin(), dots_[intent].end(),
                                              [&](Dot dot) { return held.contains(dot); });
}

bool TallyTruth::between(SiteId site, const VersionVector& held,
                         const VersionVector& folded) const {
  return std::any_of(dots_.begin(), dots_.end(), [&](const std::vector<Dot>& dots) {
    const bool own = std::any_of(dots.begin(), dots.end(),
                                 [&](Dot dot) { return dot.site == site && folded.contains(dot); });
    return own && std::any_of(dots.begin(), dots.end(),
                              [&](Dot dot) { return held.contains(dot) && !folded.contains(dot); });
  });
}

TallyTruth::Resets TallyTruth::resets(const VersionVector& held) const {
  Resets resets;
  for (const auto& [dot, taken] : resets_) {
    if (held.contains(dot)) resets[intents[taken->intent].counter].push_back(&taken->observed);
  }
  return resets;
}

std::optional<bool> TallyTruth::counts(std::size_t intent, const VersionVector& held,
                                       const Resets& resets) const {
  std::vector<Dot> here;
  std::copy_if(dots_[intent].begin(), dots_[intent].end(), std::back_inserter(here),
               [&](Dot dot) { return held.contains(dot); });
  if (here.empty()) return std::nullopt;
  const auto by = resets.find(intents[intent].counter);
  const auto is_undone = [&](Dot dot) {
    return by != resets.end() &&
           std::any_of(by->second.begin(), by->second.end(),
                       [&](const VersionVector* observed) { return observed->contains(dot); });
  };
  // An addition is undone if any of its retries is. Any other operation is undone only if all of
  // them are.
  return intents[intent].kind == Operation::Kind::add
             ? std::none_of(here.begin(), here.end(), is_undone)
             : !std::all_of(here.begin(), here.end(), is_undone);
}

TallyTruth::Values TallyTruth::values(const VersionVector& held) const {
  const Resets undoing = resets(held);
  Values values;
  for (std::size_t i = 0; i < dots_.size(); ++i) {
    if (counts(i, held, undoing).value_or(false)) values[intents[i].counter] += intents[i].delta;
  }
  return values;
}

std::optional<int128> TallyTruth::value(const std::string& counter,
                                        const VersionVector& held) const {
  const Resets undoing = resets(held);
  std::optional<int128> value;
  for (std::size_t i = 0; i < dots_.size(); ++i) {
    if (intents[i].counter != counter || !counts(i, held, undoing).value_or(false)) continue;
    value = value.value_or(0) + intents[i].delta;
  }
  return value;
}

TallyTruth::Bounds TallyTruth::bounds(const std::string& counter, SiteId site) const {
  Bounds bounds;
  for (const Intent& intent : intents) {
    if (intent.counter != counter || !intent.asked) continue;
    const bool counts = intent.acknowledged_by.contains(site);
    if (counts || intent.delta < 0) bounds.least += intent.delta;
    if (counts || intent.delta > 0) bounds.most += intent.delta;
  }
  return bounds;
}

std::uint64_t TallyTruth::repeated() const {
  std::uint64_t repeated = 0;
  for (const std::vector<Dot>& dots : dots_) repeated += dots.empty() ? 0 : dots.size() - 1;
  return repeated;
}

}  // namespace semel::simulation
