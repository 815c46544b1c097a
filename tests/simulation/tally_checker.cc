#include "tests/simulation/tally_checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/ledger.h"

namespace semel::simulation {
namespace {

std::optional<int128> widened(std::optional<std::int64_t> value) {
  return value ? std::optional<int128>(*value) : std::nullopt;
}

int128 magnitude(int128 value) { return value < 0 ? -value : value; }

}  // namespace

std::string text_of(int128 value) {
  std::string text;
  const bool negative = value < 0;
  do {
    const int digit = static_cast<int>(value % 10);
    text.push_back(static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    value /= 10;
  } while (value != 0);
  if (negative) text.push_back('-');
  return {text.rbegin(), text.rend()};
}

bool TallyChecker::fits(int128 value) { return tally::internal::to_int64(value).has_value(); }

void TallyChecker::answer(const TallySite& site, const VersionVector& held,
                          const std::string& counter, std::optional<std::int64_t> told) const {
  const std::optional<int128> expected = truth_.value(counter, held);
  if (expected && !fits(*expected)) {
    require(!told.has_value(), "an answer tells a value that is beyond 64 bits");
    return;
  }
  compare(site, counter, widened(told), expected);
}

void TallyChecker::values(TallySite& site) const {
  const TallyTruth::Values expected = truth_.values(site.held());
  std::set<std::string> counters;
  for (const Intent& intent : truth_.intents) counters.insert(intent.counter);
  for (const std::string& counter : counters) {
    const auto wanted = expected.find(counter);
    const bool there = wanted != expected.end();
    const Result<std::optional<std::int64_t>> value = site.table().get(counter);
    if (there && !fits(wanted->second)) {
      require(!value && value.error().code == Errc::limit,
              "a value that is beyond 64 bits is told");
      continue;
    }
    require(value, "get");
    compare(site, counter, widened(*value), there ? std::optional(wanted->second) : std::nullopt);
  }
}

void TallyChecker::rest(TallySite& site, const VersionVector& held, bool sums) const {
  const TallyTruth::Values expected = truth_.values(held);
  TallyTruth::Values scanned;
  require(site.table().scan({},
                            [&](std::string_view name, int128 value) {
                              scanned.emplace(name, value);
                              return true;
                            }),
          "scan");
  for (const auto& [counter, value] : expected) {
    const auto at = scanned.find(counter);
    compare(site, counter, at == scanned.end() ? std::nullopt : std::optional(at->second), value);
  }
  require(scanned == expected, "a scan shows other values");
  if (sums) {
    const Result<tally::RangeSum> sum = site.table().sum({});
    require(sum, "sum");
    tally::RangeSum all;
    for (const auto& [name, value] : expected) {
      ++all.count;
      all.sum += value;
    }
    require(*sum == all, "a sum is not that of the values");
  }
  for (const auto& [key, value] : site.entries(true)) {
    require(!tally::internal::dot_of_key(key), "an operation is kept for ever");
  }
}

// Names the operations that make the difference, if the digits identify them.
std::string TallyChecker::difference(const std::string& counter, int128 is, int128 is_to_be) const {
  if (!weather_.digits) return {};
  const auto counted = digits_.counts(counter, is);
  const auto wanted = digits_.counts(counter, is_to_be);
  if (!counted || !wanted) return "; no operations add up to this";
  std::string text;
  for (const auto& [operation, times] : *counted) {
    if (times == wanted->at(operation)) continue;
    text.append("; operation ").append(std::to_string(operation));
    text.append(" counts ").append(std::to_string(times)).append(" times");
  }
  return text;
}

void TallyChecker::compare(const TallySite& site, const std::string& counter,
                           std::optional<int128> is, std::optional<int128> is_to_be) const {
  const int128 value = is.value_or(0);
  const int128 wanted = is_to_be.value_or(0);
  const std::string where =
      "site " + std::to_string(site.id()) + " says " + text_of(value) + " of " + counter;
  if (value != wanted) {
    const std::string which = difference(counter, value, wanted);
    const bool doubled = which.empty() ? magnitude(value) > magnitude(wanted)
                                       : which.find(" 0 times") == std::string::npos;
    require(false, where + ", and it is " + text_of(wanted) + which,
            doubled ? Violation::Kind::doubled : Violation::Kind::lost);
  }
  require(is.has_value() == is_to_be.has_value(),
          where + (is_to_be ? ": not there" : ": still there"));
  if (weather_.changes > 0) return;
  const TallyTruth::Bounds bounds = truth_.bounds(counter, site.id());
  require(value >= bounds.least && value <= bounds.most, where + ": beyond what was attempted");
}

}  // namespace semel::simulation
