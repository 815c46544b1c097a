// semel size: works out the memory of a structure, the number of ids that it holds, or its error.
// Two of the three give the third, for every structure that fits.
//
// Contract  Every row is a public class of the library or a command.
//           Shapes come from the functions that make the filters themselves. A structure without
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
#include "semel/window/window.h"

namespace semel::cli {
namespace {

constexpr char kName[] = "semel size";
constexpr std::uint64_t kMostIds = limits::kFilterBits;
constexpr std::uint64_t kMeasuredIds = 4096;  // in an object that is filled, or half as many
// In a window that is made and left empty, or half as many. Its first table takes another share of
// the error if it is small, so this is not.
constexpr std::uint64_t kMadeIds = 1 << 20;
constexpr TimeMs kMeasuredWindowMs = 1 << 20;
constexpr std::uint64_t kClientIds = 1000;  // ids of one client in a window

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

// Halves the number of ids until no more than `most` are left, measures the memory for these, and
// doubles it as often. Memory that does not depend on the ids is not doubled.
template <class Measure>
std::uint64_t scaled_up(std::uint64_t ids, std::uint64_t most, Measure measure) {
  int halvings = 0;
  while (divide_up(ids, std::uint64_t{1} << halvings) > most) ++halvings;
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

Structure endless_filter() {
  return {"forgetful", "Window without an end, structure forgetful; more ids may come",
          [](std::uint64_t ids, double error) -> std::optional<Plan> {
            const auto bytes = GrowBloomSeries::bytes_for({.fpr = error, .first_keys = ids}, ids);
            if (!bytes) return std::nullopt;
            return Plan{*bytes, error};
          }};
}

Structure endless_set() {
  return {"exact", "semel sift --exact; Window without an end, structure exact",
          [](std::uint64_t ids, double) {
            const auto bytes = scaled_up(ids, kMeasuredIds, [](std::uint64_t few) {
              Window set = *Window::make({.structure = Window::Structure::exact, .ids = few}, 0);
              for (std::uint64_t n = 0; n < few; ++n) (void)set.insert(numbered(n));
              return set.bytes();
            });
            return std::optional(Plan{bytes, 0});
          }};
}

// A window has its whole memory from the start as long as no more ids come than it was made for.
Structure filter_window(Window::Structure structure, const std::string& name,
                        const std::string& use, TimeMs window_ms) {
  return {name, use, [=](std::uint64_t ids, double error) -> std::optional<Plan> {
            bool possible = true;
            const auto bytes = scaled_up(ids, kMadeIds, [&](std::uint64_t few) {
              const auto window = Window::make(
                  {.structure = structure, .window_ms = window_ms, .fpr = error, .ids = few}, 0);
              possible = possible && window;
              return window ? window->bytes() : 0;
            });
            if (!possible || bytes > limits::kFilterBits / 8) return std::nullopt;
            return Plan{bytes, error};
          }};
}

Structure exact_window(const std::string& name, const std::string& use, bool punctual) {
  return {name, use, [punctual](std::uint64_t ids, double) {
            const auto bytes = scaled_up(ids, kMeasuredIds, [&](std::uint64_t few) {
              return most_bytes(*Window::make({.structure = Window::Structure::exact,
                                               .window_ms = kMeasuredWindowMs,
                                               .ids = few,
                                               .punctual = punctual},
                                              0),
                                kMeasuredWindowMs, few, numbered);
            });
            return std::optional(Plan{bytes, 0});
          }};
}

Structure client_window() {
  return {"clients",
          "ClientWindow, if clients number their ids and have " + std::to_string(kClientIds) +
              " each in a window",
          [](std::uint64_t ids, double) {
            const ClientWindow window = *ClientWindow::make({.window_ms = kMeasuredWindowMs}, 0);
            const std::uint64_t each = std::min(ids, kClientIds);
            const std::uint64_t client = most_bytes(window, kMeasuredWindowMs, each,
                                                    [](std::uint64_t n) {
                                                      return ClientOperation{{1, 1}, n};
                                                    }) -
                                         window.bytes();
            return std::optional(Plan{window.bytes() + divide_up(ids, each) * client, 0});
          }};
}

std::vector<Structure> structures(const std::optional<TimeMs>& window_ms) {
  if (!window_ms) {
    return {bloom(BloomLayout::plain, "plain"),
            bloom(BloomLayout::blocked, "blocked"),
            bloom(BloomLayout::blocked2, "blocked2"),
            bloom(BloomLayout::blocked3, "blocked3"),
            cuckoo(),
            endless_filter(),
            sifted(),
            endless_set()};
  }
  return {filter_window(Window::Structure::forgetful, "forgetful",
                        "SIFT.RESERVE; Window, structure forgetful", *window_ms),
          filter_window(Window::Structure::timers, "timers",
                        "SIFT.RESERVE TIMERS; Window, structure timers; for events that come late",
                        *window_ms),
          exact_window("exact", "SIFT.RESERVE EXACT; Window, structure exact", false),
          exact_window("exact-punctual", "semel sift --exact --window; Window, exact and punctual",
                       true),
          client_window()};
}

// Returns the largest number for which fits(ids) holds; nullopt if there is none. It must hold for
// all smaller numbers too, or the answer may be too low: a window for 2^18 ids is a little smaller
// than one for 2^18 - 1.
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
