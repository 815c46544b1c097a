// SiftReport: the counts of a run of `semel sift`, and how far they can be trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/json_object.h"
#include "cli/judge.h"
#include "semel/core/clock.h"

namespace semel::cli {

struct SiftReport {
  std::uint64_t lines = 0;       // more precisely: records
  std::uint64_t first = 0;       // kept
  std::uint64_t duplicates = 0;  // dropped, some of them wrongly
  std::uint64_t unreadable = 0;  // neither: without a key, or too old to be judged
  bool exact = false;
  double error_bound = 0;  // a new key is dropped with at most this probability, at any time
  Trust trust;             // as it is now: the error was lower before
  std::optional<TimeMs> window_ms;  // none: nothing is forgotten
  TimeMs longest_ms = 0;            // with a window: how long a key may be recognised at most
  std::string details;              // as Judge has them
  JsonObject json_details;
  double seconds = 0;

  // Returns the expected number of new lines that were dropped, each with the probability `error`.
  // Never more than were dropped at all.
  double wrongly_dropped(double error) const;

  std::string counts() const;                       // a line for each: a name and a number
  std::string summary() const;                      // for people
  std::string json() const;                         // one object on one line
  std::string progress(const Trust& recent) const;  // shorter than a line of a terminal
};

// Returns 1,234,567 for 1234567.
std::string grouped(std::uint64_t number);
// Returns, for example, 68.2 MiB.
std::string in_units(std::uint64_t bytes);
// Returns, for example, 1h or 90s, as options are given.
std::string duration_text(TimeMs ms);

}  // namespace semel::cli
