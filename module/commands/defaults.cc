#include "module/commands/defaults.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "module/commands/arguments.h"
#include "module/host/value_limit.h"
#include "semel/bits/huge_pages.h"
#include "semel/core/error_rate.h"

namespace semel::module {

Defaults defaults;

namespace {

using host::Setting;
using host::SettingKind;

Setting duration(const char* name, TimeMs& value, const char* summary) {
  return {name, SettingKind::changeable, std::to_string(value), summary,
          [&value](std::string_view text) {
            const std::optional<TimeMs> parsed = parse_duration(text);
            if (!parsed || *parsed < 1) {
              return "allowed: milliseconds, 1 or more, or 30s, 10m, 2h, 7d";
            }
            value = *parsed;
            return static_cast<const char*>(nullptr);
          }};
}

Setting error_rate(const char* name, const char* written, double& value, const char* summary) {
  return {name, SettingKind::changeable, written, summary, [&value](std::string_view text) {
            static const std::string kAllowed = std::string("allowed: ") + kErrorRatesAllowed;
            const std::optional<double> parsed = parse_number(text);
            if (!parsed || !is_error_rate(*parsed)) return kAllowed.c_str();
            value = *parsed;
            return static_cast<const char*>(nullptr);
          }};
}

Setting count(const char* name, std::uint64_t least, std::uint64_t most, const char* allowed,
              std::uint64_t& value, const char* summary) {
  return {name, SettingKind::changeable, std::to_string(value), summary,
          [&value, least, most, allowed](std::string_view text) {
            const std::optional<std::uint64_t> parsed = parse_count(text);
            if (!parsed || *parsed < least || *parsed > most) return allowed;
            value = *parsed;
            return static_cast<const char*>(nullptr);
          }};
}

Setting prefix(const char* name, std::string& value, const char* summary) {
  return {name, SettingKind::at_load, value, summary, [&value](std::string_view text) {
            const bool good = !text.empty() && text.size() <= 32 &&
                              std::all_of(text.begin(), text.end(), [](unsigned char c) {
                                return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                                       (c >= '0' && c <= '9') || c == '_' || c == '-';
                              });
            if (!good) return "allowed: off, or up to 32 letters, digits, - and _";
            value = is_word(text, "OFF") ? std::string() : std::string(text);
            return static_cast<const char*>(nullptr);
          }};
}

Setting max_value_bytes() {
  return {
      "max-value-bytes", SettingKind::changeable, "auto",
      "the most memory that a client may have one key take; `auto`: half of maxmemory, or of the "
      "machine or its container if there is none; 0: no limit",
      [](std::string_view text) {
        const std::optional<std::uint64_t> bytes = parse_count(text);
        if (!bytes && !is_word(text, "AUTO")) return "allowed: auto, 0 (no limit) or bytes";
        host::set_value_limit(bytes);
        return static_cast<const char*>(nullptr);
      }};
}

// The server hands in the default as well.
Setting huge_pages() {
  return {
      "huge-pages", SettingKind::at_load, "no",
      "at load alone: `yes` backs large tables with huge pages, which is faster; a table that is "
      "nearly empty then takes up to 2 MiB of memory for each line in use, and so does a fork",
      [](std::string_view text) {
        const bool yes = is_word(text, "YES");
        if (!yes && !is_word(text, "NO")) return "allowed: yes or no";
        allow_huge_pages(yes);
        return static_cast<const char*>(nullptr);
      }};
}

std::vector<Setting> make_settings() {
  constexpr std::uint64_t kMostIds = std::uint64_t{1} << 38;
  constexpr const char* kIds = "allowed: 1 to 274877906944";
  Defaults& d = defaults;
  return {
      duration("tally-window", d.tally_window_ms,
               "how long a table recognises an operation, in ms"),
      error_rate("tally-error", "1e-6", d.tally_error, "of new operations taken for retries"),
      count("tally-capacity", 1, kMostIds, kIds, d.tally_capacity,
            "operations expected in a window; more may come"),
      duration("sift-window", d.sift_window_ms, "how long a sift recognises an id, in ms"),
      error_rate("sift-error", "1e-6", d.sift_error, "of new ids taken for seen ones"),
      count("sift-capacity", 1, kMostIds, kIds, d.sift_capacity,
            "ids expected in a window; more may come"),
      error_rate("bf-error-rate", "0.01", d.bf_error_rate, "of a Bloom filter"),
      count("bf-initial-size", 1, kMostIds, kIds, d.bf_initial_size,
            "items for which a Bloom filter has room at first"),
      count("bf-expansion", 0, 32768, "allowed: 0 (does not scale) to 32768", d.bf_expansion,
            "by how much a Bloom filter grows; 0: not at all"),
      count("cf-initial-size", 2, kMostIds, "allowed: 2 to 274877906944", d.cf_initial_size,
            "items for which a cuckoo filter has room at first"),
      count("cf-bucket-size", 1, 255, "allowed: 1 to 255", d.cf_bucket_size,
            "told by CF.INFO, and of no consequence"),
      count("cf-max-iterations", 1, 65535, "allowed: 1 to 65535", d.cf_max_iterations,
            "told by CF.INFO, and of no consequence"),
      count("cf-expansion", 0, 32768, "allowed: 0 (does not scale) to 32768", d.cf_expansion,
            "by how much a cuckoo filter grows; 0: not at all"),
      error_rate("cf-error", "0.001", d.cf_error, "of a cuckoo filter"),
      max_value_bytes(),
      huge_pages(),
      prefix("bf-prefix", d.bf_prefix, "at load alone: the name of this family, or `off`"),
      prefix("cf-prefix", d.cf_prefix, "at load alone: the name of this family, or `off`"),
  };
}

}  // namespace

std::span<host::Setting> settings() {
  static std::vector<Setting> all = make_settings();
  return all;
}

}  // namespace semel::module
