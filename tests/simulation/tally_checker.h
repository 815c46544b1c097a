// TallyChecker: computes the values that a site must have, from all facts of a simulated run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "semel/crdt/version_vector.h"
#include "tests/simulation/tally_digits.h"
#include "tests/simulation/tally_site.h"
#include "tests/simulation/tally_truth.h"
#include "tests/simulation/tally_weather.h"

namespace semel::simulation {

class TallyChecker {
 public:
  // REQUIRES: all of them outlive this.
  TallyChecker(const TallyTruth& truth, const Digits& digits, const Weather& weather)
      : truth_(truth), digits_(digits), weather_(weather) {}

  // Checks the value in a site's answer; the site held `held`.
  void answer(const TallySite& site, const VersionVector& held, const std::string& counter,
              std::optional<std::int64_t> told) const;
  // Checks that each value follows from the operations that the site holds.
  void values(TallySite& site) const;
  // Checks a site at rest: its other answers, and the entries that it keeps. With `sums`, sums too.
  void rest(TallySite& site, const VersionVector& held, bool sums) const;

  // Returns true if a value fits an answer.
  static bool fits(int128 value);

 private:
  void compare(const TallySite& site, const std::string& counter, std::optional<int128> is,
               std::optional<int128> is_to_be) const;
  std::string difference(const std::string& counter, int128 is, int128 is_to_be) const;

  const TallyTruth& truth_;
  const Digits& digits_;
  const Weather& weather_;
};

std::string text_of(int128 value);

}  // namespace semel::simulation
