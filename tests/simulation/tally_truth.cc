#include "tests/simulation/tally_truth.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace semel::simulation {

using tally::Operation;

void TallyTruth::take(Dot dot, std::size_t intent, VersionVector observed) {
  log_.insert_or_assign(dot, Taken{intent, std::move(observed)});
  dots_.resize(intents.size());
  dots_[intent].push_back(dot);
}

std::vector<std::size_t> TallyTruth::lose(SiteId site, std::uint64_t last) {
  std::vector<std::size_t> lost;
  for (auto at = log_.upper_bound({site, last}); at != log_.end() && at->first.site == site;) {
    lost.push_back(at->second.intent);
    std::erase(dots_[at->second.intent], at->first);
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

bool TallyTruth::names(Dot dot, std::size_t intent) const {
  const auto at = log_.find(dot);
  return at != log_.end() && at->second.intent == intent;
}

bool TallyTruth::held(std::size_t intent, const VersionVector& held) const {
  return intent < dots_.size() && std::any_of(dots_[intent].begin(), dots_[intent].end(),
                                              [&](Dot dot) { return held.contains(dot); });
}

TallyTruth::Values TallyTruth::values(const VersionVector& held) const {
  const auto undone = [&](Dot dot, const std::string& counter) {
    return std::any_of(log_.begin(), log_.end(), [&](const auto& each) {
      const Intent& by = intents[each.second.intent];
      return by.kind != Operation::Kind::add && by.counter == counter &&
             held.contains(each.first) && each.second.observed.contains(dot);
    });
  };
  Values values;
  for (std::size_t i = 0; i < dots_.size(); ++i) {
    const Intent& intent = intents[i];
    std::vector<Dot> here;
    std::copy_if(dots_[i].begin(), dots_[i].end(), std::back_inserter(here),
                 [&](Dot dot) { return held.contains(dot); });
    if (here.empty()) continue;
    const auto is_undone = [&](Dot dot) { return undone(dot, intent.counter); };
    // An addition is undone with any of its retries; of the others each stands for itself.
    const bool counts = intent.kind == Operation::Kind::add
                            ? std::none_of(here.begin(), here.end(), is_undone)
                            : !std::all_of(here.begin(), here.end(), is_undone);
    if (counts) values[intent.counter] += intent.delta;
  }
  return values;
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
