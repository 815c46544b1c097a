// SiftReport: what a run of `semel sift` did and how far it is to be trusted.
#pragma once

#include <cstdint>
#include <string>

namespace semel::cli {

struct SiftReport {
  std::uint64_t lines = 0;
  std::uint64_t first = 0;  // kept; the other lines are duplicates, or were taken for such
  bool exact = false;
  double error_bound = 0;  // a new line is dropped with at most this probability, at any time
  double error_now = 0;    // with this one, by the bits now set; it was lower before
  std::uint64_t filters = 0;
  std::uint64_t bytes = 0;  // that recognise the lines
  double seconds = 0;

  std::uint64_t duplicates() const { return lines - first; }
  // The mean number of new lines dropped, if each is dropped with the probability `error`; never
  // more than what was dropped at all.
  double wrongly_dropped(double error) const;

  std::string counts() const;   // three lines, a name and a number each
  std::string summary() const;  // for people
  std::string json() const;     // one object on one line
};

}  // namespace semel::cli
