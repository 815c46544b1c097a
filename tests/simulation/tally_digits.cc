#include "tests/simulation/tally_digits.h"

#include <algorithm>
#include <utility>

namespace semel::simulation {
namespace {

constexpr std::int64_t kLargeUnit = 1'000'000'000'000'000'000;  // 1000^6
constexpr std::int64_t kLarge[] = {9, 4};

}  // namespace

Digits::Place Digits::next(std::size_t operation, bool negative, bool large) {
  const auto has_room = [&](const Counter& counter) {
    return large ? counter.large.size() < std::size(kLarge) : counter.operations.size() < kPlaces;
  };
  // Small operations go to the newest counter, large ones to the first that has room.
  auto at = large ? std::find_if(counters_.begin(), counters_.end(), has_room)
                  : counters_.end() - (counters_.empty() ? 0 : 1);
  if (at == counters_.end() || !has_room(*at)) at = counters_.insert(counters_.end(), Counter{});
  const std::string counter = name(static_cast<std::size_t>(at - counters_.begin()));
  if (large) {
    at->large.push_back(operation);
    return {counter, kLarge[at->large.size() - 1] * kLargeUnit};
  }
  std::int64_t delta = negative ? -1 : 1;
  for (std::size_t i = 0; i < at->operations.size(); ++i) delta *= kBase;
  at->operations.emplace_back(operation, negative ? -1 : 1);
  return {counter, delta};
}

std::string Digits::any(Random& random) const {
  return name(counters_.empty() ? 0 : random.below(counters_.size()));
}

std::vector<std::string> Digits::counters() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < counters_.size(); ++i) names.push_back(name(i));
  return names;
}

std::optional<std::map<std::size_t, int>> Digits::counts(const std::string& counter,
                                                         int128 value) const {
  const auto number = static_cast<std::size_t>(std::stoull(counter.substr(counter.find('-') + 1)));
  const Counter& of = counters_.at(number);
  std::map<std::size_t, int> counts;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    // Digits range from -499 to 500.
    int digit = static_cast<int>(value % kBase);
    if (digit > kBase / 2) digit -= kBase;
    if (digit < 1 - kBase / 2) digit += kBase;
    value = (value - digit) / kBase;
    if (place < of.operations.size()) {
      const auto [operation, sign] = of.operations[place];
      counts[operation] = digit * sign;
    } else if (digit != 0) {
      return std::nullopt;
    }
  }
  // value = 9 a + 4 b, and 7 * 4 is 1 modulo 9.
  const int b = static_cast<int>((7 * value % 9 + 9) % 9);
  const auto a = static_cast<int>((value - 4 * b) / 9);
  if (a < 0 || (a != 0 && of.large.empty()) || (b != 0 && of.large.size() < 2)) return std::nullopt;
  if (!of.large.empty()) counts[of.large[0]] = a;
  if (of.large.size() > 1) counts[of.large[1]] = b;
  return counts;
}

}  // namespace semel::simulation
