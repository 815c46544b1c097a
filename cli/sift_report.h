// SiftReport: what a run of `semel sift` did and how far it is to be trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/judge.h"
#include "semel/core/clock.h"

namespace semel::cli {

struct SiftReport {
  std::uint64_t lines = 0;       // records, to be precise
  std::uint64_t first = 0;       // kept
  std::uint64_t duplicates = 0;  // dropped, or wrongly taken for such
  std::uint64_t unreadable = 0;  // neither: without a key, or too old to be judged
  bool exact = false;
  double error_bound = 0;  // a new key is dropped with at most this probability, at any time
  Trust trust;             // as it is now: the error was lower before
  std::optional<TimeMs> window_ms;  // none: nothing is forgotten
  TimeMs longest_ms = 0;            // with a window: how long a key may be recognised at most
  std::string details;              // as Judge has them
  std::string json_details;
  double seconds = 0;

  // The mean number of new lines dropped, if each is dropped with the probability `error`; never
  // more than what was dropped at all.
  double wrongly_dropped(double error) const;

  std::string counts() const;                       // a line for each: a name and a number
  std::string summary() const;                      // for people
  std::string json() const;                         // one object on one line
  std::string progress(const Trust& recent) const;  // less than a line of a terminal
};

// 1234567 as 1,234,567.
std::string grouped(std::uint64_t number);
// 68.2 MiB
std::string in_units(std::uint64_t bytes);
// 1h, 90s: as options are given.
std::string duration_text(TimeMs ms);

}  // namespace semel::cli
