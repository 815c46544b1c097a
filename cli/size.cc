// semel size: works out the memory of a structure, the number of ids that it holds, or its error.
// Two of the three give the third, for every structure that fits.
//
// Contract  Shapes come from the functions that make the filters themselves. A structure without
//           such a function is made small and measured. Its memory is assumed to double with its
//           ids, which is right within a tenth.
//           A structure that cannot answer has no row: its error would be too low, or its memory
//           too small.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "cli/commands.h"
#include "cli/json_object.h"
#include "cli/judge.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/error_rate.h"
#include "semel/core/limits.h"
#include "semel/crdt/series.h"
#include "semel/filter/bloom_math.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/window/client_window.h"
#include "semel/window/internal/endless_set.h"
#include "semel/window/internal/exact_window.h"
#include "semel/window/internal/forgetful_filter.h"
#include "semel/window/internal/sliding_filter.h"

namespace semel::cli {
namespace {

constexpr char kName[] = "semel size";
constexpr std::uint64_t kMostIds = limits::kFilterBits;
constexpr std::uint64_t kMeasuredIds = 4096;  // in an object that is measured, or half as many
constexpr std::uint64_t kClientIds = 1000;    // ids of one client in a window

struct Settings {
  std::optional<std::uint64_t> capacity;
  std::optional<double> rate;
  std::optional<TimeMs> window_ms;
  std::optional<double> error;
  std::optional<std::uint64_t> max_bytes;
  bool json = false;
};

struct Plan {
  std::uint64_t bytes;
  double error;
};

struct Structure {
  std::string name;
  std::string use;
  // Plans for this number of ids at no more than this error; nullopt if that is impossible.
  std::function<std::optional<Plan>(std::uint64_t ids, double error)> plan;
};

struct Row {
  std::string name;
  std::string use;
  std::uint64_t ids;
  Plan plan;

  double bits_per_id() const {
    return 8 * static_cast<double>(plan.bytes) / static_cast<double>(ids);
  }
};

Digest numbered(std::uint64_t number) { return {mix(number), mix(~number)}; }

// Halves the number of ids until few are left, measures the memory for these, and doubles it as
// often. Memory that does not depend on the ids is not doubled.
template <class Measure>
std::uint64_t scaled_up(std::uint64_t ids, Measure measure) {
  int halvings = 0;
  while (divide_up(ids, std::uint64_t{1} << halvings) > kMeasuredIds) ++halvings;
  const std::uint64_t few = divide_up(ids, std::uint64_t{1} << halvings);
  const std::uint64_t bytes = measure(few);
  if (halvings == 0) return bytes;
  const std::uint64_t more = measure(2 * few) - bytes;
  return bytes + ((std::uint64_t{1} << halvings) - 1) * more;
}

// Returns the most bytes that a window takes once ids have come evenly for longer than it lasts.
template <class W, class IdOf>
std::uint64_t most_bytes(W window, TimeMs window_ms, std::uint64_t ids, IdOf id_of) {
  std::uint64_t most = 0;
  for (std::uint64_t n = 0; n < 3 * ids; ++n) {
    window.advance(static_cast<TimeMs>(n * static_cast<std::uint64_t>(window_ms) / ids));
    (void)window.insert(id_of(n));
    if (n >= 2 * ids) most = std::max(most, window.bytes());
  }
  return most;
}

Structure bloom(BloomLayout layout, const std::string& word) {
  return {"bloom-" + word, "BloomFilter, layout " + word,
          [layout](std::uint64_t ids, double error) -> std::optional<Plan> {
            const auto shape = BloomShape::for_goal({.keys = ids, .fpr = error, .layout = layout});
            if (!shape) return std::nullopt;
            return Plan{shape->bits / 8, shape->expected_fpr(ids)};
          }};
}

Structure sifted() {
  return {"sift", "semel sift, which need not know the number of ids",
          [](std::uint64_t ids, double error) -> std::optional<Plan> {
            const auto bytes = GrowBloomSeries::bytes_for(
                {.fpr = error, .first_keys = kFirstKeys / kDefaultSlices},
                divide_up(ids, kDefaultSlices));
            if (!bytes) return std::nullopt;
            // A slice that has no key yet takes no memory.
            return Plan{std::min<std::uint64_t>(ids, kDefaultSlices) * *bytes, error};
          }};
}

Structure cuckoo() {
  return {"cuckoo", "CuckooFilter; ids can be removed",
          [](std::uint64_t ids, double error) -> std::optional<Plan> {
            const auto shape = CuckooShape::for_goal({.keys = ids, .fpr = error});
            if (!shape) return std::nullopt;
            return Plan{divide_up(shape->slots() * shape->fingerprint_bits, 8),
                        shape->expected_fpr(ids)};
          }};
}

Structure exact_set() {
  return {"exact-set", "semel sift --exact, EndlessSet", [](std::uint64_t ids, double) {
            const auto bytes = scaled_up(ids, [](std::uint64_t few) {
              window_internal::EndlessSet set({}, 0);
              for (std::uint64_t n = 0; n < few; ++n) (void)set.insert(numbered(n));
              return set.bytes();
            });
            return std::optional(Plan{bytes, 0});
          }};
}

Structure forgetful(BloomLayout layout, const std::string& word, std::uint32_t lanes) {
  const std::string past = std::to_string(lanes - 1);
  return {"forgetful-" + word + '-' + std::to_string(lanes),
          "ForgetfulFilter, layout " + word + ", past_lanes " + past + ", grows false",
          [layout, lanes](std::uint64_t ids, double error) -> std::optional<Plan> {
            const window_internal::ForgetfulFilter::Goal small{.window_ms = 1000,
                                                               .fpr = 0.1,
                                                               .ids = 1,
                                                               .past_lanes = lanes - 1,
                                                               .layout = layout,
                                                               .grows = false};
            const std::uint64_t lane_ids = divide_up(ids, window_internal::periods_covered(lanes));
            const auto shape =
                window_internal::forgetful_math::shape_for(layout, lanes, lane_ids, error);
            if (!shape) return std::nullopt;
            // All memory but the table is the same for any size.
            const auto filter = window_internal::ForgetfulFilter::make(small, 0);
            const std::uint64_t rest = filter->bytes() - filter->tables().front().shape().bytes();
            return Plan{shape->bytes() + rest, window_internal::forgetful_math::full_rate(
                                                   *shape, static_cast<double>(lane_ids))};
          }};
}

Structure sliding(TimeMs window_ms, std::uint32_t timer_bits) {
  const std::string bits = std::to_string(timer_bits);
  return {"sliding-" + bits, "SlidingFilter, timer_bits " + bits + "; for events that come late",
          [=](std::uint64_t ids, double error) -> std::optional<Plan> {
            const auto shape = window_internal::SlidingShape::for_goal(
                {.window_ms = window_ms, .fpr = error, .ids = ids, .timer_bits = timer_bits});
            if (!shape) return std::nullopt;
            return Plan{shape->filter_bytes(),
                        bloom_math::plain_expected_fpr(shape->cells(), shape->probes, ids)};
          }};
}

Structure exact_window() {
  return {"exact-window", "semel sift --exact --window; ExactWindow, punctual",
          [](std::uint64_t ids, double) {
            const auto bytes = scaled_up(ids, [](std::uint64_t few) {
              constexpr TimeMs kWindowMs = 1 << 20;
              return most_bytes(*window_internal::ExactWindow::make(
                                    {.window_ms = kWindowMs, .ids = few, .punctual = true}, 0),
                                kWindowMs, few, numbered);
            });
            return std::optional(Plan{bytes, 0});
          }};
}

Structure client_window() {
  return {"client-window",
          "ClientWindow, if clients number their ids and have " + std::to_string(kClientIds) +
              " each in a window",
          [](std::uint64_t ids, double) {
            constexpr TimeMs kWindowMs = 1 << 20;
            const ClientWindow window = *ClientWindow::make({.window_ms = kWindowMs}, 0);
            const std::uint64_t each = std::min(ids, kClientIds);
            const std::uint64_t client = most_bytes(window, kWindowMs, each,
                                                    [](std::uint64_t n) {
                                                      return ClientOperation{{1, 1}, n};
                                                    }) -
                                         window.bytes();
            return std::optional(Plan{window.bytes() + divide_up(ids, each) * client, 0});
          }};
}

std::vector<Structure> structures(const std::optional<TimeMs>& window_ms) {
  std::vector<Structure> all;
  if (!window_ms) {
    all = {bloom(BloomLayout::plain, "plain"), bloom(BloomLayout::blocked, "blocked"),
           bloom(BloomLayout::blocked2, "blocked2"), bloom(BloomLayout::blocked3, "blocked3")};
    all.push_back(sifted());
    all.push_back(cuckoo());
    all.push_back(exact_set());
    return all;
  }
  for (const std::uint32_t lanes : {8u, 16u}) {
    all.push_back(forgetful(BloomLayout::plain, "plain", lanes));
    all.push_back(forgetful(BloomLayout::blocked2, "blocked2", lanes));
    all.push_back(forgetful(BloomLayout::blocked3, "blocked3", lanes));
  }
  for (const std::uint32_t bits : {4u, 8u, 16u}) all.push_back(sliding(*window_ms, bits));
  all.push_back(exact_window());
  all.push_back(client_window());
  return all;
}

// Returns the largest number for which fits(ids) holds; nullopt if there is none. REQUIRES: it
// holds for all smaller numbers too.
template <class Fits>
std::optional<std::uint64_t> most_ids(Fits fits) {
  std::uint64_t good = 0, bad = kMostIds + 1;
  for (std::uint64_t step = 1; step < bad; step *= 2) (fits(step) ? good : bad) = step;
  while (bad - good > 1) {
    const std::uint64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good == 0 ? std::nullopt : std::optional(good);
}

// Returns the least error for which fits(error) holds, to a part in a thousand; nullopt if there is
// none.
template <class Fits>
std::optional<double> least_error(Fits fits) {
  if (!fits(kMostErrorRate)) return std::nullopt;
  if (fits(kLeastErrorRate)) return kLeastErrorRate;
  double bad = kLeastErrorRate, good = kMostErrorRate;
  while (good > 1.001 * bad) {
    const double middle = std::sqrt(bad * good);
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

// REQUIRES: two of capacity, error and max_bytes are given.
std::optional<Row> solve(const Structure& structure, const Settings& given) {
  const auto fits = [&](std::uint64_t ids, double error) {
    const std::optional<Plan> plan = structure.plan(ids, error);
    return plan && plan->bytes <= given.max_bytes.value_or(plan->bytes);
  };
  std::optional<std::uint64_t> ids = given.capacity;
  std::optional<double> error = given.error;
  if (!ids) ids = most_ids([&](std::uint64_t n) { return fits(n, *error); });
  if (!error) error = least_error([&](double e) { return fits(*ids, e); });
  if (!ids || !error) return std::nullopt;
  const std::optional<Plan> plan = structure.plan(*ids, *error);
  if (!plan) return std::nullopt;
  return Row{structure.name, structure.use, *ids, *plan};
}

std::string rounded(double number, int digits) {
  std::ostringstream out;
  out << std::setprecision(digits) << number;
  return out.str();
}

std::string fixed(double number) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << number;
  return out.str();
}

std::string json(const Row& row) {
  return JsonObject()
             .text("structure", row.name)
             .add("capacity", row.ids)
             .add("bytes", row.plan.bytes)
             .add("bits_per_id", row.bits_per_id(), 6)
             .add("error", row.plan.error, 6)
             .text("use", row.use)
             .end() +
         '\n';
}

// Aligns numbers to the right and words to the left; the last column is not padded.
std::string table(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells = {
      {"structure", "capacity", "bytes", "bits/id", "error", "use"}};
  for (const Row& row : rows) {
    cells.push_back({row.name, std::to_string(row.ids), std::to_string(row.plan.bytes),
                     fixed(row.bits_per_id()), rounded(row.plan.error, 3), row.use});
  }
  std::ostringstream out;
  const std::size_t last = cells.front().size() - 1;
  for (const auto& line : cells) {
    for (std::size_t column = 0; column < last; ++column) {
      std::size_t width = 0;
      for (const auto& other : cells) width = std::max(width, other[column].size());
      out << (column == 0 ? std::left : std::right) << std::setw(static_cast<int>(width))
          << line[column] << "  ";
    }
    out << line[last] << '\n';
  }
  return out.str();
}

// Refuses options that make no sense together.
Result<void> check_options(const Settings& s) {
  if (s.capacity && s.rate) return exclusive("--capacity", "--rate");
  if (s.rate && !s.window_ms) return usage_error("--rate needs --window; allowed: both");
  if (s.window_ms == TimeMs{0}) return usage_error("--window cannot be '0'; allowed: 1ms or more");
  const int given = (s.capacity || s.rate ? 1 : 0) + (s.error ? 1 : 0) + (s.max_bytes ? 1 : 0);
  if (given != 2) {
    return usage_error("two of --capacity (or --rate), --error and --max-bytes are needed, not " +
                       std::to_string(given) + ": the third is worked out");
  }
  return {};
}

Result<Exit> size(Settings settings) {
  SEMEL_TRY(check_options(settings));
  if (settings.rate) {
    const double ids = std::ceil(*settings.rate * static_cast<double>(*settings.window_ms) / 1000);
    if (!(ids >= 1 && ids <= static_cast<double>(kMostIds))) {
      return usage_error("--rate and --window make " + rounded(ids, 3) +
                         " ids in a window; allowed: 1 to " + std::to_string(kMostIds));
    }
    settings.capacity = static_cast<std::uint64_t>(ids);
  }
  std::vector<Row> rows;
  for (const Structure& structure : structures(settings.window_ms)) {
    if (std::optional<Row> row = solve(structure, settings)) rows.push_back(*std::move(row));
  }
  if (rows.empty()) {
    return Error{Errc::limit,
                 "no structure can do this; more memory, fewer ids or a higher error may help"};
  }
  if (!settings.json) return print(kName, table(rows));
  std::string lines;
  for (const Row& row : rows) lines += json(row);
  return print(kName, lines);
}

}  // namespace

Command size_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{
      kName,
      "Tells how much memory a number of ids takes at an error rate, or the reverse",
      "Give two of the number of ids, the error and the memory: the third is worked out, for every "
      "structure that fits. Without a window these are sets that never forget; with one the number "
      "of ids is that in a window.",
      {{"capacity", 'n', count_value("N", settings->capacity, 1, kMostIds),
        "how many ids to recognise"},
       {"rate", 'r',
        number_value("R", settings->rate, "a number above 0",
                     [](double rate) { return rate > 0 && std::isfinite(rate); }),
        "how many new ids come in a second, in place of --capacity; needs --window"},
       {"window", 'w', duration_value("TIME", settings->window_ms),
        "forget an id after this time: 90s, 10m, 1h"},
       {"error", 'e', error_rate_value(settings->error),
        "the probability, at most, that a new id is taken for a known one"},
       {"max-bytes", 'm', bytes_value("SIZE", settings->max_bytes, 1, std::uint64_t{1} << 60),
        "the most memory that it may take"},
       {"json", 'j', flag_value(settings->json), "a JSON object on a line for each structure"}}};
  syntax.examples = {
      {"semel size --capacity 1M --error 1e-6", "memory for a set of a million"},
      {"semel size --rate 5000 --window 1h --error 1e-3", "memory for a window"},
      {"semel size --max-bytes 1G --error 1e-6", "how many ids fit a gibibyte"},
      {"semel size --max-bytes 64M --capacity 20M --window 10m", "the error that this leaves"}};
  return {"size", std::move(syntax), [settings] { return size(*settings); }};
}

}  // namespace semel::cli
