// Weather: the kind of run that a seed is: its worlds, and how much goes wrong.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "semel/core/clock.h"
#include "semel/tally/store/tally_store.h"
#include "tests/simulation/tally_faults.h"

namespace semel::simulation {

// Features: worlds that a run may have, in addition to what happens in every run. A seed chooses
// some.
enum class Feature : std::uint8_t {
  retired_copies,  // a site starts from a copy of a member that is retired, and may know it
  crash_points,  // crashes right after publish() and right after an arrival, one soon after another
  standbys,      // a site that only receives, and is never told the time, takes over
  short_windows,  // ids leave the window during the run; clients retry within it
  caps,           // the memory for ids is full
  out_of_order,   // clients send their numbers in any order
  twins,          // stores restored from backups, two tables with one id, strangers (tally_twins.h)
  batches,        // additions come several in a call, some of them twice
  overflow,       // values near 2^63
  io_errors,      // writes and syncs of a store fail
};
inline constexpr std::array<std::string_view, 10> kFeatureNames = {
    "retired-copies", "crash-points", "standbys", "short-windows", "caps",
    "out-of-order",   "twins",        "batches",  "overflow",      "io-errors"};

class Features {
 public:
  static Features all() { return Features(std::bitset<kFeatureNames.size()>().set()); }
  static Features none() { return Features({}); }

  bool has(Feature feature) const { return bits_[static_cast<std::size_t>(feature)]; }
  Features& set(Feature feature, bool on = true) {
    bits_.set(static_cast<std::size_t>(feature), on);
    return *this;
  }
  bool operator==(const Features&) const = default;

 private:
  explicit Features(std::bitset<kFeatureNames.size()> bits) : bits_(bits) {}
  std::bitset<kFeatureNames.size()> bits_;
};

struct TallyPlan {
  std::uint64_t seed = 1;
  int sites = 3;
  TallyFault fault = TallyFault::none;
  Features features = Features::all();  // those that the seed may choose
  Features always = Features::none();   // those that it always has
};

struct Weather {
  Features features = Features::none();  // that it chose
  double lost = 0, doubled = 0;
  TimeMs delay_ms = 1;  // of a message, at most
  TimeMs gossip_ms = 100;
  double publishes = 0.8;  // before it gossips
  TimeMs tick_ms = 500;
  double partial = 0;  // messages with some of the entries only
  double syncs = 0;    // in place of messages
  double same_site = 0.5;
  double hasty = 0;       // a client asks two sites at once
  double late = 0;        // a client that was answered asks again
  TimeMs late_ms = 8000;  // at most this much later
  double changes = 0;     // resets and removals
  double negative = 0;    // deltas
  double large = 0;       // deltas of which no two fit one counter
  double numbered = 0.5;
  double without_id = 0;
  bool digits = true;  // every operation has a delta of its own (tally_digits.h)
  int clients = 1, counters = 1, operations = 1;
  int most_in_batch = 1;
  int crashes = 0, cuts = 0, steps = 0, admissions = 0, retirements = 0, io_errors = 0;
  double power_fails = 0.7;
  double crash_after_publish = 0, crash_after_arrival = 0;
  TimeMs longest_down_ms = 3000;
  TimeMs window_ms = 600'000;  // for which ids are promised to be recognised
  int acts = 1;
  double reused = 0;  // ids of the first act that come again in the second
};

// Returns the worlds that every seed with this fault has, because they show the fault.
Features features_for(TallyFault fault);

// Both are functions of the plan.
Weather weather_of(const TallyPlan& plan);
tally::TallyStore::Settings settings_of(const TallyPlan& plan, const Weather& weather);

}  // namespace semel::simulation
