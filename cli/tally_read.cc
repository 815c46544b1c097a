// semel tally get, top and sum: read the counters of a table.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "cli/commands.h"
#include "cli/escaped.h"
#include "cli/files.h"
#include "cli/line_writer.h"
#include "cli/store_options.h"
#include "cli/tally_table.h"

namespace semel::cli {
namespace {

constexpr std::uint64_t kMostTop = 100'000'000;

struct Settings {
  std::string name;  // of the subcommand
  std::string directory;
  RangeOptions range;
  std::vector<std::string> counters;
  std::uint64_t most = 10;
  bool smallest = false;
};

// Runs one of the three.
class Reading {
 public:
  explicit Reading(const Settings& settings) : settings_(settings) {}

  Result<Exit> get() {
    const auto& range = settings_.range;
    if (!settings_.counters.empty() && (range.first || range.end || range.prefix)) {
      return exclusive("COUNTER", "a range");
    }
    SEMEL_TRY(open());
    LineWriter out(File::borrow(STDOUT_FILENO), "standard output");
    if (settings_.counters.empty()) {
      const auto scanned = scan([&](std::string_view counter, int128 sum) {
        out.append(line_of(counter, sum));
        return !out.error();
      });
      SEMEL_TRY(finish(out));
      SEMEL_TRY(scanned);
      return Exit::success;
    }
    Exit exit = Exit::success;
    for (const std::string& counter : settings_.counters) {
      const Result<std::int64_t> value = value_of(counter);
      if (value) {
        out.append(line_of(counter, *value));
        continue;
      }
      out.flush();  // so that all comes in order on a terminal
      complain(settings_.name, value.error().message());
      exit = Exit::failure;
    }
    SEMEL_TRY(finish(out));
    return exit;
  }

  Result<Exit> top() {
    SEMEL_TRY(open());
    std::vector<Ranked> heap;  // the best counters, the worst of them on top
    SEMEL_TRY(scan([&](std::string_view counter, int128 sum) {
      const int128 rank = settings_.smallest ? -sum : sum;
      if (heap.size() == settings_.most) {
        // Names ascend, so a counter in the heap comes before a later one with an equal sum.
        if (rank <= heap.front().rank) return true;
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
      }
      heap.push_back({rank, std::string(counter)});
      std::push_heap(heap.begin(), heap.end());
      return true;
    }));
    std::sort_heap(heap.begin(), heap.end());
    LineWriter out(File::borrow(STDOUT_FILENO), "standard output");
    for (const Ranked& one : heap) {
      out.append(line_of(one.counter, settings_.smallest ? -one.rank : one.rank));
    }
    SEMEL_TRY(finish(out));
    return Exit::success;
  }

  Result<Exit> sum() {
    SEMEL_TRY(open());
    const Result<tally::RangeSum> sum = table_->sum(names());
    if (!sum) return cannot_read(settings_.directory, sum.error());
    return print(settings_.name,
                 "sum\t" + decimal(sum->sum) + "\ncounters\t" + std::to_string(sum->count) + '\n');
  }

 private:
  struct Ranked {
    int128 rank;
    std::string counter;
    // Returns true if this one is better: it stays longer in the heap, and is written first.
    bool operator<(const Ranked& other) const {
      return rank != other.rank ? rank > other.rank : counter < other.counter;
    }
  };

  Result<void> open() {
    range_ = settings_.range.range();
    if (!range_) return usage_error(kEmptyRange);
    table_ = SEMEL_TRY(TallyTable::open_to_read(settings_.directory));
    return {};
  }

  tally::NameRange names() const {
    return {range_->first,
            range_->end ? std::optional<std::string_view>(*range_->end) : std::nullopt};
  }

  Result<void> scan(const tally::VisitCounter& visit) {
    const Result<void> scanned = (*table_)->scan(names(), visit);
    if (!scanned) return cannot_read(settings_.directory, scanned.error());
    return {};
  }

  Result<std::int64_t> value_of(const std::string& counter) const {
    const Result<std::optional<std::int64_t>> value = (*table_)->get(counter);
    if (!value) return cannot_read(counter, value.error());
    if (!*value) return Error{Errc::outside, "there is no counter " + quoted(counter)};
    return **value;
  }

  static std::string line_of(std::string_view counter, int128 value) {
    return escaped(counter) + '\t' + decimal(value) + '\n';
  }

  Error cannot_read(const std::string& name, const Error& error) const {
    return table_->cannot("read " + quoted(name), error);
  }

  static Result<void> finish(LineWriter& out) {
    out.flush();
    if (out.error()) return io_error("write", out.name(), out.error());
    return {};
  }

  const Settings& settings_;
  std::optional<KeyRange> range_;
  std::unique_ptr<TallyTable> table_;
};

std::shared_ptr<Settings> settings_for(const Syntax& syntax) {
  auto settings = std::make_shared<Settings>();
  settings->name = syntax.name;
  return settings;
}

constexpr const char* kWhileInUse =
    " The table is read as of this moment, also while another process writes to it.";

}  // namespace

Command tally_get_command() {
  Syntax syntax{
      "semel tally get",
      "Writes the values of counters",
      std::string("A line is COUNTER, a tab and its value. The COUNTERs that are given come in "
                  "that order. If none is given, all in the range come, in the order of their "
                  "names. In names \\xNN stands for a byte and \\\\ for a backslash.") +
          kWhileInUse +
          "\nExits with 0, with 1 if a COUNTER is not there or the table could not be "
          "read, with 2 if an option is wrong.",
      {}};
  auto settings = settings_for(syntax);
  syntax.options = options_of(settings->range);
  Value counters{"COUNTER", kCounterAllowed, [settings](std::string_view text) {
                   auto counter = parse_counter(text);
                   if (counter) settings->counters.push_back(*counter);
                   return counter.has_value();
                 }};
  syntax.operands = {
      std::move(counters), 0, SIZE_MAX, {directory_value("DIRECTORY", settings->directory)}};
  syntax.examples = {{"semel tally get DIR visits likes", "two counters"},
                     {"semel tally get DIR --prefix stock/", "all whose names begin so"}};
  return {"tally get", std::move(syntax), [settings] { return Reading(*settings).get(); }};
}

Command tally_top_command() {
  Syntax syntax{
      "semel tally top",
      "Writes the largest counters",
      std::string("Writes the N largest counters (default 10), the largest first. A line is the "
                  "name, a tab and the value. Counters with equal values come in the order of "
                  "their names.") +
          kWhileInUse,
      {}};
  auto settings = settings_for(syntax);
  syntax.options = options_of(settings->range);
  append(syntax.options, {{"smallest", 's', flag_value(settings->smallest),
                           "write the smallest counters, the smallest first"}});
  syntax.operands = {count_value("N", settings->most, 1, kMostTop),
                     0,
                     1,
                     {directory_value("DIRECTORY", settings->directory)}};
  syntax.examples = {{"semel tally top DIR 3 --prefix page/", "the three largest of some"}};
  return {"tally top", std::move(syntax), [settings] { return Reading(*settings).top(); }};
}

Command tally_sum_command() {
  Syntax syntax{"semel tally sum",
                "Writes the sum of counters, and their number",
                std::string("Sums all counters, or a range of names. The sum is exact, also "
                            "beyond 64 bits.") +
                    kWhileInUse,
                {}};
  auto settings = settings_for(syntax);
  syntax.options = options_of(settings->range);
  syntax.operands = {directory_value("DIRECTORY", settings->directory), 1, 1};
  syntax.examples = {{"semel tally sum DIR --prefix page/", "the sum of some"}};
  return {"tally sum", std::move(syntax), [settings] { return Reading(*settings).sum(); }};
}

}  // namespace semel::cli
