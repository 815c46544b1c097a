#include "semel/slices/sliced_filter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "semel/core/assert.h"
#include "semel/slices/internal/slice_math.h"
#include "semel/slices/internal/slice_run.h"

namespace semel {

SliceLoad LoadReport::total() const {
  SliceLoad sum;
  for (const SliceLoad& slice : slices) {
    sum.messages += slice.messages;
    sum.lookups += slice.lookups;
    sum.sets += slice.sets;
    sum.claims += slice.claims;
  }
  return sum;
}

double LoadReport::fairness() const {
  double sum = 0, squares = 0;
  for (const SliceLoad& slice : slices) {
    const auto lookups = static_cast<double>(slice.lookups);
    sum += lookups;
    squares += lookups * lookups;
  }
  return sum == 0 ? 1 : sum * sum / (static_cast<double>(slices.size()) * squares);
}

double LoadReport::maximum_share() const {
  const std::uint64_t all = total().lookups;
  std::uint64_t most = 0;
  for (const SliceLoad& slice : slices) most = std::max(most, slice.lookups);
  return all == 0 ? 0 : static_cast<double>(most) / static_cast<double>(all);
}

Result<SlicedFilter> SlicedFilter::make(const Placement& placement, std::vector<Slice*> slices,
                                        Options options) {
  if (slices.size() != placement.slices() ||
      std::find(slices.begin(), slices.end(), nullptr) != slices.end()) {
    return Error{Errc::invalid, "sliced filter: every slice of the placement is needed"};
  }
  if (options.rules.needed > placement.spread()) {
    return Error{Errc::invalid, "sliced filter: `needed` is above the spread"};
  }
  if (options.rules.claim_ms < 0)
    return Error{Errc::invalid, "sliced filter: claim_ms is negative"};
  if (options.rules.producers == Producers::many && !options.pause) {
    return Error{Errc::invalid, "sliced filter: many producers need a pause"};
  }
  return SlicedFilter(placement, std::move(slices), std::move(options));
}

SlicedFilter::SlicedFilter(const Placement& placement, std::vector<Slice*> slices, Options options)
    : placement_(placement),
      slices_(std::move(slices)),
      options_(std::move(options)),
      states_(slices_.size(), SliceState::live),
      load_{std::vector<SliceLoad>(slices_.size())} {}

void SlicedFilter::test(std::span<const Digest> ids, std::span<Verdict> verdicts, TimeMs now_ms) {
  run(SliceAction::test, ids, {}, verdicts, now_ms);
}

void SlicedFilter::set(std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                       std::span<Verdict> verdicts, TimeMs now_ms) {
  run(SliceAction::set, ids, at_ms, verdicts, now_ms);
}

void SlicedFilter::test_and_set(std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                                std::span<Verdict> verdicts, TimeMs now_ms) {
  run(SliceAction::test_and_set, ids, at_ms, verdicts, now_ms);
}

void SlicedFilter::set_state(std::size_t slice, SliceState state) {
  SEMEL_ASSERT(slice < states_.size());
  states_[slice] = state;
}

void SlicedFilter::run(SliceAction action, std::span<const Digest> ids,
                       std::span<const TimeMs> at_ms, std::span<Verdict> verdicts, TimeMs now_ms) {
  SEMEL_ASSERT(ids.size() == verdicts.size());
  slices_internal::SliceRun run(placement_, options_.rules, states_,
                                {.action = action,
                                 .ids = {ids.begin(), ids.end()},
                                 .at_ms = {at_ms.begin(), at_ms.end()},
                                 .now_ms = now_ms,
                                 .owner = options_.first_owner + runs_++});
  while (!run.done()) {
    if (run.waits()) now_ms = std::max(now_ms, options_.pause());
    for (const SliceMessage& message : run.messages()) count(message);
    deliver(run.messages(), slices_);
    run.step(now_ms);
  }
  std::ranges::copy(run.verdicts(), verdicts.begin());
  states_.assign(run.states().begin(), run.states().end());
}

void SlicedFilter::count(const SliceMessage& message) {
  SliceLoad& load = load_.slices[message.slice];
  const std::uint64_t keys = message.call.keys.size();
  ++load.messages;
  switch (message.call.action) {
    case SliceAction::test:
    case SliceAction::test_and_set:
      load.lookups += keys;
      break;
    case SliceAction::set:
      load.sets += keys;
      break;
    case SliceAction::claim:
    case SliceAction::commit:
    case SliceAction::release:
    case SliceAction::forget:
      load.claims += keys;
  }
}

double SlicedFilter::false_positive_rate() const {
  const Placement::Shape& shape = placement_.shape();
  std::vector<std::optional<double>> rates;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const bool live = states_[i] == SliceState::live;
    rates.push_back(live ? std::optional(slices_[i]->false_positive_rate()) : std::nullopt);
  }
  const std::uint32_t needed = options_.rules.needed;
  if (shape.layout == SliceLayout::v_h) {
    return slices_internal::slice_math::v_h_false_positives(rates, shape.parts, shape.spread,
                                                            needed);
  }
  // Functions choose slices independently: among all slices, or among the group of the id.
  const std::size_t groups = shape.layout == SliceLayout::h_v ? shape.slices : 1;
  const std::size_t each = rates.size() / groups;
  double sum = 0;
  for (std::size_t group = 0; group < groups; ++group) {
    double set = 0, failed = 0;
    for (const std::optional<double>& rate : std::span(rates).subspan(group * each, each)) {
      (rate ? set : failed) += rate.value_or(1) / static_cast<double>(each);
    }
    sum += slices_internal::slice_math::false_positives({.set = set, .failed = failed},
                                                        shape.spread, needed);
  }
  return sum / static_cast<double>(groups);
}

std::uint64_t SlicedFilter::bytes() const {
  std::uint64_t sum = 0;
  for (const Slice* slice : slices_) sum += slice->bytes();
  return sum;
}

}  // namespace semel
