#include "cli/sift_report.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>
#include <utility>

namespace semel::cli {

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string in_units(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {" bytes", " KiB", " MiB", " GiB", " TiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  std::ostringstream out;
  out << std::fixed << std::setprecision(unit == 0 ? 0 : 1) << amount << kUnits.at(unit);
  return out.str();
}

std::string duration_text(TimeMs ms) {
  constexpr std::array<std::pair<TimeMs, const char*>, 5> kUnits = {
      {{604'800'000, "w"}, {86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1000, "s"}}};
  for (const auto& [unit, name] : kUnits) {
    if (ms >= unit && ms % unit == 0) return std::to_string(ms / unit) + name;
  }
  return std::to_string(ms) + "ms";
}

namespace {

// Returns two significant digits, for a number that is only expected.
std::string rough(double number) {
  std::ostringstream out;
  out << std::setprecision(2) << number;
  return out.str();
}

// Returns, for example, 12.3M.
std::string short_count(double number) {
  constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  for (; number >= 1000 && unit + 1 < kUnits.size(); ++unit) number /= 1000;
  std::ostringstream out;
  out << std::fixed << std::setprecision(unit == 0 ? 0 : 1) << number << kUnits.at(unit);
  return out.str();
}

std::uint64_t lines_per_second(const SiftReport& report) {
  if (report.seconds <= 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(report.lines) / report.seconds);
}

}  // namespace

// Among n new lines, n * error are dropped and n * (1 - error) = first are kept.
double SiftReport::wrongly_dropped(double error) const {
  const double expected = static_cast<double>(first) * error / (1 - error);
  return std::min(expected, static_cast<double>(duplicates));
}

std::string SiftReport::counts() const {
  std::ostringstream out;
  out << "lines " << lines << "\nfirst " << first << "\nduplicates " << duplicates << '\n';
  if (unreadable > 0) out << "unreadable " << unreadable << '\n';
  return out.str();
}

std::string SiftReport::summary() const {
  std::ostringstream out;
  out << "lines            " << grouped(lines) << "\nfirst            " << grouped(first)
      << "\nduplicates       " << grouped(duplicates) << '\n';
  if (unreadable > 0) out << "unreadable       " << grouped(unreadable) << '\n';
  if (window_ms) {
    out << "window           " << duration_text(*window_ms)
        << (longest_ms == *window_ms ? ", to the millisecond"
                                     : " at least, " + duration_text(longest_ms) + " at most")
        << '\n';
  }
  if (exact) {
    out << "wrongly dropped  " << rough(wrongly_dropped(trust.error_now))
        << " expected, by equal digests\n";
  } else {
    out << "wrongly dropped  at most " << rough(wrongly_dropped(error_bound))
        << " expected, by the bound of " << error_bound
        << "\n                 "
        // The error of filters that never forget only grows.
        << (window_ms ? "" : "at most ") << rough(wrongly_dropped(trust.error_now))
        << (window_ms ? " expected if all met" : " expected, by")
        << " the filters as they are now, " << rough(trust.error_now) << '\n';
  }
  out << "memory           " << in_units(trust.bytes) << " of " << (exact ? "digests" : "filters")
      << " in " << trust.windows << ' ' << trust.kind << (trust.windows == 1 ? "\n" : "s\n")
      << details;
  out << "time             " << std::fixed << std::setprecision(3) << seconds << " s, "
      << grouped(lines_per_second(*this)) << " lines a second\n";
  return out.str();
}

std::string SiftReport::json() const {
  return JsonObject()
             .add("lines", lines)
             .add("first", first)
             .add("duplicates", duplicates)
             .add("unreadable", unreadable)
             .text("mode", exact ? "exact" : "filter")
             .add("window_ms", window_ms)
             .add("longest_ms", window_ms ? std::optional(longest_ms) : std::nullopt)
             .add("error_bound", error_bound)
             .add("error_now", trust.error_now)
             .add("wrongly_dropped_bound", wrongly_dropped(error_bound))
             .add("wrongly_dropped_now", wrongly_dropped(trust.error_now))
             .add("memory_bytes", trust.bytes)
             .add(std::string(trust.kind) + 's', trust.windows)
             .add("seconds", seconds)
             .add("lines_per_second", lines_per_second(*this))
             .add(json_details)
             .end() +
         '\n';
}

std::string SiftReport::progress(const Trust& recent) const {
  const double share =
      lines == 0 ? 0 : static_cast<double>(duplicates) / static_cast<double>(lines);
  std::ostringstream out;
  out << short_count(static_cast<double>(lines)) << " lines, "
      << short_count(static_cast<double>(lines_per_second(*this))) << " a second, " << std::fixed
      << std::setprecision(1) << 100 * share << " % duplicates, error " << rough(recent.error_now)
      << ", " << in_units(recent.bytes);
  return out.str();
}

}  // namespace semel::cli
