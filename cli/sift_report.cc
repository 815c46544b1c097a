#include "cli/sift_report.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <limits>
#include <sstream>

namespace semel::cli {
namespace {

// 1234567 as 1,234,567.
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

// Two digits that count, for what is only expected.
std::string rough(double number) {
  std::ostringstream out;
  out << std::setprecision(2) << number;
  return out.str();
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

std::uint64_t lines_per_second(const SiftReport& report) {
  if (report.seconds <= 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(report.lines) / report.seconds);
}

}  // namespace

// Of n new lines n * error are dropped and n * (1 - error) = first are kept.
double SiftReport::wrongly_dropped(double error) const {
  const double expected = static_cast<double>(first) * error / (1 - error);
  return std::min(expected, static_cast<double>(duplicates()));
}

std::string SiftReport::counts() const {
  std::ostringstream out;
  out << "lines " << lines << "\nfirst " << first << "\nduplicates " << duplicates() << '\n';
  return out.str();
}

std::string SiftReport::summary() const {
  std::ostringstream out;
  out << "lines            " << grouped(lines) << "\nfirst            " << grouped(first)
      << "\nduplicates       " << grouped(duplicates()) << '\n';
  if (exact) {
    out << "wrongly dropped  " << rough(wrongly_dropped(error_now))
        << " expected, by equal digests\nmemory           " << in_units(bytes) << " of digests\n";
  } else {
    out << "wrongly dropped  at most " << rough(wrongly_dropped(error_bound))
        << " expected, by the bound of " << error_bound << "\n                 at most "
        << rough(wrongly_dropped(error_now)) << " expected, by the filters as they are now, "
        << rough(error_now) << "\nmemory           " << in_units(bytes) << " in " << filters
        << (filters == 1 ? " filter\n" : " filters\n");
  }
  out << "time             " << std::fixed << std::setprecision(3) << seconds << " s, "
      << grouped(lines_per_second(*this)) << " lines a second\n";
  return out.str();
}

std::string SiftReport::json() const {
  std::ostringstream out;
  out << std::setprecision(std::numeric_limits<double>::digits10) << "{\"lines\":" << lines
      << ",\"first\":" << first << ",\"duplicates\":" << duplicates() << ",\"mode\":\""
      << (exact ? "exact" : "filter") << "\",\"error_bound\":" << error_bound
      << ",\"error_now\":" << error_now
      << ",\"wrongly_dropped_bound\":" << wrongly_dropped(error_bound)
      << ",\"wrongly_dropped_now\":" << wrongly_dropped(error_now) << ",\"memory_bytes\":" << bytes
      << ",\"filters\":" << filters << ",\"seconds\":" << seconds
      << ",\"lines_per_second\":" << lines_per_second(*this) << "}\n";
  return out.str();
}

}  // namespace semel::cli
