#include "tests/simulation/tally_weather.h"

#include <algorithm>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/random.h"

namespace semel::simulation {

using tally::Durability;
using tally::Recognition;
using tally::TallyStore;

namespace {

constexpr TimeMs kShortestWindowMs = 200;  // of TallyFault::short_window

double sometimes(Random& random, double most) {
  return random.below(2) == 0 ? 0 : most * random.unit();
}

Features chosen(const TallyPlan& plan, Random& random) {
  const Features wanted = features_for(plan.fault);
  Features features = Features::none();
  for (std::size_t i = 0; i < kFeatureNames.size(); ++i) {
    const auto feature = static_cast<Feature>(i);
    const bool rare = feature == Feature::twins || feature == Feature::caps;
    const bool drawn = random.below(rare ? 10 : 4) == 0;
    const bool chosen = drawn && plan.features.has(feature);
    features.set(feature, chosen || wanted.has(feature) || plan.always.has(feature));
  }
  if (plan.fault != TallyFault::none && !wanted.has(Feature::twins)) {
    features.set(Feature::twins, false);
  }
  return features;
}

// Draws the faults that every run has.
void draw_common(Weather& weather, Random& random) {
  weather.lost = sometimes(random, 0.4);
  weather.doubled = sometimes(random, 0.3);
  weather.delay_ms = TimeMs{1} << random.below(13);
  weather.gossip_ms = TimeMs{60} << random.below(7);
  weather.partial = sometimes(random, 0.6);
  weather.syncs = random.below(16) == 0 ? 0.3 : 0;
  weather.same_site = random.unit();
  weather.hasty = sometimes(random, 0.5);
  weather.late = sometimes(random, 0.5);
  weather.changes = sometimes(random, 0.4);
  weather.negative = random.below(3) == 0 ? 0.5 : 0;
  weather.numbered = random.unit();
  weather.without_id = sometimes(random, 0.1);
  weather.digits = random.below(4) != 0;
  weather.clients = 1 + static_cast<int>(random.below(4));
  weather.counters = 1 + static_cast<int>(random.below(4));
  weather.operations = 10 + static_cast<int>(random.below(40));
  weather.crashes = static_cast<int>(random.below(7));
  weather.cuts = static_cast<int>(random.below(4));
  weather.steps = static_cast<int>(random.below(3));
  weather.admissions = random.below(4) == 0 ? 1 + static_cast<int>(random.below(2)) : 0;
  weather.retirements = random.below(4) == 0 ? 1 + static_cast<int>(random.below(2)) : 0;
  weather.power_fails = random.unit();
  weather.acts = random.below(5) == 0 ? 2 : 1;
  weather.reused = sometimes(random, 0.5);
}

void draw_features(Weather& weather, Random& random) {
  const Features& features = weather.features;
  if (features.has(Feature::retired_copies)) {
    weather.admissions = std::max(weather.admissions, 1);
    weather.retirements = std::max(weather.retirements, 1);
  }
  if (features.has(Feature::crash_points)) {
    weather.crash_after_publish = 0.1 * random.unit();
    weather.crash_after_arrival = 0.1 * random.unit();
    weather.longest_down_ms = 1 + static_cast<TimeMs>(random.below(300));
    weather.hasty = std::max(weather.hasty, 0.5);
    weather.power_fails = 0.5;
  }
  if (features.has(Feature::short_windows) || features.has(Feature::standbys)) {
    weather.window_ms = TimeMs{2000} << random.below(3);
    weather.late = std::max(weather.late, 0.5);
    weather.late_ms = weather.window_ms + weather.window_ms / 4;
    weather.tick_ms = TimeMs{100} << random.below(5);
    weather.publishes = random.below(4) == 0 ? 0.1 : 0.8;
  }
  if (features.has(Feature::caps)) {
    weather.operations = 200 + static_cast<int>(random.below(300));
    weather.most_in_batch = 16;
  }
  if (features.has(Feature::out_of_order)) {
    weather.clients = 1;
    weather.numbered = std::max(weather.numbered, 0.8);
  }
  if (features.has(Feature::batches)) {
    weather.most_in_batch = std::max(weather.most_in_batch, 2 << random.below(3));
  }
  if (features.has(Feature::overflow)) {
    weather.digits = true;
    weather.large = 0.3;
  }
  if (features.has(Feature::io_errors)) weather.io_errors = 1 + static_cast<int>(random.below(4));
}

}  // namespace

Features features_for(TallyFault fault) {
  Features features = Features::none();
  switch (fault) {
    case TallyFault::half_window:
      return features.set(Feature::short_windows);
    case TallyFault::journal_dropped:
      return features.set(Feature::short_windows).set(Feature::crash_points);
    case TallyFault::acknowledged_while_full:
      return features.set(Feature::caps).set(Feature::batches);
    case TallyFault::folded_not_kept:
      return features.set(Feature::crash_points);
    case TallyFault::retired_copied:
      return features.set(Feature::retired_copies);
    case TallyFault::arrivals_without_time:
      return features.set(Feature::standbys);
    case TallyFault::recall_within_cap:
      return features.set(Feature::caps).set(Feature::short_windows);
    case TallyFault::out_of_order_forgotten:
      return features.set(Feature::out_of_order).set(Feature::crash_points);
    case TallyFault::doubles_unnoticed:
      return features.set(Feature::twins);
    case TallyFault::none:
    case TallyFault::id_before_effect:
    case TallyFault::no_second_rule:
    case TallyFault::short_window:
      break;
  }
  return features;
}

Weather weather_of(const TallyPlan& plan) {
  const std::uint64_t seed = mix(plan.seed) + static_cast<std::uint64_t>(plan.sites);
  Random choice(mix(seed));
  Random random(mix(seed + 1));
  Weather weather;
  weather.features = chosen(plan, choice);
  draw_common(weather, random);
  draw_features(weather, choice);
  // A planted fault shows best without other faults.
  if (plan.fault == TallyFault::no_second_rule) weather.syncs = 0;
  if (plan.fault == TallyFault::acknowledged_while_full) weather.syncs = 0;
  return weather;
}

TallyStore::Settings settings_of(const TallyPlan& plan, const Weather& weather) {
  Random random(mix(plan.seed + 2) + static_cast<std::uint64_t>(plan.sites));
  Recognition goal;
  goal.kind = static_cast<Recognition::Kind>(random.below(3));
  goal.window_ms = weather.window_ms;
  if (plan.fault == TallyFault::short_window) goal.window_ms = kShortestWindowMs;
  if (plan.fault == TallyFault::half_window) goal.window_ms = weather.window_ms / 2;
  goal.fpr = 1e-9;
  goal.ids = 64;
  if (weather.features.has(Feature::caps)) {
    goal.max_bytes = Recognition::kLeastBytes + 1024 * random.below(8);
  }
  if (weather.features.has(Feature::out_of_order)) goal.kind = Recognition::Kind::clients;
  TallyStore::Settings settings;
  settings.recognition = goal;
  settings.durability = static_cast<Durability>(random.below(3));
  settings.period_ms = TimeMs{100} << random.below(5);
  if (random.below(4) == 0) settings.max_unfolded = 4 + random.below(12);
  return settings;
}

}  // namespace semel::simulation
