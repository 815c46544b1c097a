#include "module/commands/defaults.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "module/commands/arguments.h"
#include "module/host/command.h"
#include "module/host/value_limit.h"
#include "semel/bits/internal/huge_pages.h"
#include "semel/core/internal/error_rate.h"
#include "semel/core/internal/parse.h"

namespace semel::module {

Defaults defaults;

namespace {

using host::Setting;
using host::SettingKind;

Result<void> not_allowed(const char* allowed) {
  return Error{Errc::invalid, "allowed", std::string(allowed)};
}

Setting duration(const char* name, TimeMs& value, const char* summary) {
  return {name, SettingKind::changeable, std::to_string(value), summary,
          [&value](std::string_view text) {
            const std::optional<TimeMs> parsed = parse_duration_ms(text);
            if (!parsed || *parsed < 1) {
              return not_allowed("milliseconds, 1 or more, or 30s, 10m, 2h, 7d");
            }
            value = *parsed;
            return Result<void>();
          }};
}

Setting error_rate(const char* name, const char* written, double& value, const char* summary) {
  return {name, SettingKind::changeable, written, summary, [&value](std::string_view text) {
            const std::optional<double> parsed = parse_number(text);
            if (!parsed || !is_error_rate(*parsed)) return not_allowed(kErrorRatesAllowed);
            value = *parsed;
            return Result<void>();
          }};
}

Setting count(const char* name, std::uint64_t least, std::uint64_t most, const char* allowed,
              std::uint64_t& value, const char* summary) {
  return {name, SettingKind::changeable, std::to_string(value), summary,
          [&value, least, most, allowed](std::string_view text) {
            const std::optional<std::uint64_t> parsed = parse_unsigned(text);
            if (!parsed || *parsed < least || *parsed > most) return not_allowed(allowed);
            value = *parsed;
            return Result<void>();
          }};
}

Setting prefix(const char* name, std::optional<std::string>& value, const char* summary) {
  return {name, SettingKind::at_load, "auto", summary, [&value](std::string_view text) {
            const bool good = !text.empty() && text.size() <= 32 &&
                              std::all_of(text.begin(), text.end(), [](unsigned char c) {
                                return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                                       (c >= '0' && c <= '9') || c == '_' || c == '-';
                              });
            if (!good) return not_allowed("auto, off, or up to 32 letters, digits, - and _");
            value.reset();
            if (!is_word(text, "AUTO")) value = is_word(text, "OFF") ? "" : std::string(text);
            return Result<void>();
          }};
}

Setting max_value_bytes() {
  return {
      "max-value-bytes", SettingKind::changeable, "auto",
      "the most memory that one key may take on behalf of a client; `auto`: half of maxmemory, or "
      "half of the memory of the machine or its container if that is less or there is no "
      "maxmemory; 0: no limit",
      [](std::string_view text) {
        const std::optional<std::uint64_t> bytes = parse_memory(text);
        if (!bytes && !is_word(text, "AUTO")) {
          return not_allowed("auto, 0 (no limit), or bytes such as 1000000 or 64mb");
        }
        host::set_value_limit(bytes);
        return Result<void>();
      }};
}

Setting max_arguments() {
  constexpr const char* kDefault = "131072";  // ids, which take 0.1 s
  host::set_most_arguments(*parse_unsigned(kDefault));
  return {"max-arguments", SettingKind::changeable, kDefault,
          "the most arguments of one call, including its name, because no other client is served "
          "during a call; 0: no limit",
          [](std::string_view text) {
            const std::optional<std::uint64_t> most = parse_unsigned(text);
            if (!most) return not_allowed("0 (no limit) or a number of arguments");
            host::set_most_arguments(*most);
            return Result<void>();
          }};
}

Setting huge_pages() {
  return {
      "huge-pages", SettingKind::at_load, "no",
      "only at load: `yes` backs large tables with huge pages, which is faster; a nearly empty "
      "table then takes up to 2 MiB of memory for each line in use, and a fork as much for each "
      "line that changes",
      [](std::string_view text) {
        const bool yes = is_word(text, "YES");
        if (!yes && !is_word(text, "NO")) return not_allowed("yes or no");
        allow_huge_pages(yes);
        return Result<void>();
      }};
}

std::vector<Setting> make_settings() {
  constexpr std::uint64_t kMostIds = std::uint64_t{1} << 38;
  constexpr const char* kIds = "1 to 274877906944";
  Defaults& d = defaults;
  return {
      duration("tally-window", d.tally_window_ms,
               "how long a table recognises an operation, in ms"),
      error_rate("tally-error", "1e-6", d.tally_error,
                 "the share of new operations that are taken for retries"),
      count("tally-capacity", 1, kMostIds, kIds, d.tally_capacity,
            "operations expected in a window; there may be more"),
      duration("sift-window", d.sift_window_ms, "how long a sift recognises an id, in ms"),
      error_rate("sift-error", "1e-6", d.sift_error,
                 "the share of new ids that are taken for seen ones"),
      count("sift-capacity", 1, kMostIds, kIds, d.sift_capacity,
            "ids expected in a window; there may be more"),
      error_rate("bf-error-rate", "0.01", d.bf_error_rate, "the error rate of a Bloom filter"),
      count("bf-initial-size", 1, kMostIds, kIds, d.bf_initial_size,
            "items that a new Bloom filter has room for"),
      count("bf-expansion-factor", 0, 32768, "0 (does not scale) to 32768", d.bf_expansion,
            "how many times as large as the last one a new part of a Bloom filter is: see "
            "BF.RESERVE; 0: a filter does not grow"),
      count("cf-initial-size", 2, kMostIds, "2 to 274877906944", d.cf_initial_size,
            "items that a new cuckoo filter has room for"),
      count("cf-bucket-size", 1, 255, "1 to 255", d.cf_bucket_size,
            "shown by CF.INFO; a capacity below twice this number is refused"),
      count("cf-max-iterations", 1, 65535, "1 to 65535", d.cf_max_iterations,
            "shown by CF.INFO, without effect"),
      count("cf-expansion-factor", 0, 32768, "0 (does not scale) to 32768", d.cf_expansion,
            "the same for cuckoo filters: see CF.RESERVE; 0: a filter does not grow"),
      error_rate("cf-error", "0.001", d.cf_error, "the error rate of a cuckoo filter"),
      max_value_bytes(),
      max_arguments(),
      huge_pages(),
      prefix(
          "bf-prefix", d.bf_prefix,
          "only at load: the word before the dot in the names of the commands `BF.*`; `off`: "
          "these commands are left out; `auto`: `BF`, or `off` if the server has commands `BF.*` "
          "already"),
      prefix("cf-prefix", d.cf_prefix, "only at load: the same for the commands `CF.*`"),
  };
}

constexpr const char* kOwnSecret = "every filter draws a secret of its own";
constexpr const char* kNoMaxExpansions =
    "a cuckoo filter may grow until it reaches `max-value-bytes`";

}  // namespace

std::span<host::Setting> settings() {
  static std::vector<Setting> all = make_settings();
  return all;
}

std::span<host::Alias> aliases() {
  static std::vector<host::Alias> all = {
      // RedisBloom 2
      {"ERROR_RATE", "bf-error-rate", nullptr},
      {"INITIAL_SIZE", "bf-initial-size", nullptr},
      {"CF_MAX_EXPANSIONS", nullptr, kNoMaxExpansions},
      // RedisBloom 8
      {"bf-error-rate", "bf-error-rate", nullptr, true},
      {"bf-initial-size", "bf-initial-size", nullptr, true},
      {"bf-expansion-factor", "bf-expansion-factor", nullptr, true},
      {"cf-initial-size", "cf-initial-size", nullptr, true},
      {"cf-bucket-size", "cf-bucket-size", nullptr, true},
      {"cf-max-iterations", "cf-max-iterations", nullptr, true},
      {"cf-expansion-factor", "cf-expansion-factor", nullptr, true},
      {"cf-max-expansions", nullptr, kNoMaxExpansions, true, "32"},
      {"bf-hash-seed", nullptr, kOwnSecret, true},
      // valkey-bloom
      {"bloom-capacity", "bf-initial-size", nullptr},
      {"bloom-expansion", "bf-expansion-factor", nullptr},
      {"bloom-fp-rate", "bf-error-rate", nullptr},
      {"bloom-memory-usage-limit", "max-value-bytes",
       "it is the limit for every key of this module, not only for Bloom filters"},
      {"bloom-tightening-ratio", nullptr,
       "a filter divides its error between its parts in its own way"},
      {"bloom-use-random-seed", nullptr, kOwnSecret},
      {"bloom-defrag-enabled", nullptr, "the server's `activedefrag` decides"},
  };
  return all;
}

}  // namespace semel::module
