// Measuring a rate, with a tolerance that is computed and not guessed.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace semel {

// Returns five standard deviations of a count of `trials` at `rate`. Chance exceeds them once in
// 1.7 million.
inline double five_deviations(double trials, double rate) {
  return 5 * std::sqrt(trials * rate * (1 - rate));
}

// The mean of samples and the standard error of that mean, from the samples themselves.
struct Mean {
  double value = 0;
  double error = 0;
};

inline Mean mean_of(const std::vector<double>& samples) {
  const auto n = static_cast<double>(samples.size());
  double sum = 0, squares = 0;
  for (const double sample : samples) sum += sample;
  for (const double sample : samples) squares += (sample - sum / n) * (sample - sum / n);
  return {sum / n, std::sqrt(squares / (n - 1) / n)};
}

}  // namespace semel
