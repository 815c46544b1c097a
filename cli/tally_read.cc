// semel tally get, top and sum: what the counters of a table say.
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

// One run of one of them.
class Reading {
 public:
  explicit Reading(const Settings& settings) : settings_(settings) {}

  Exit get() {
    const auto& range = settings_.range;
    if (!settings_.counters.empty() && (range.first || range.end || range.prefix)) {
      return fail("COUNTER and a range exclude each other; allowed: one of them", Exit::usage);
    }
    if (!open()) return exit_;
    LineWriter out(File::borrow(STDOUT_FILENO), "standard output");
    if (settings_.counters.empty()) {
      scan([&](std::string_view counter, int128 sum) {
        out.append(line_of(counter, sum));
        return !out.error();
      });
    }
    for (const std::string& counter : settings_.counters) {
      const Result<std::optional<std::int64_t>> value = (*table_)->get(counter);
      if (!value || !*value) out.flush();  // so that all comes in order on a terminal
      if (!value) {
        fail("cannot read " + quoted(counter) + ": " + table_->why(value.error()));
      } else if (!*value) {
        fail("there is no counter " + quoted(counter));
      } else {
        out.append(line_of(counter, **value));
      }
    }
    return finish(out);
  }

  Exit top() {
    if (!open()) return exit_;
    std::vector<Ranked> heap;  // the worst of the best first
    scan([&](std::string_view counter, int128 sum) {
      const int128 rank = settings_.smallest ? -sum : sum;
      if (heap.size() == settings_.most) {
        // Names ascend: of equal sums the one that is there comes first.
        if (rank <= heap.front().rank) return true;
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
      }
      heap.push_back({rank, std::string(counter)});
      std::push_heap(heap.begin(), heap.end());
      return true;
    });
    if (exit_ != Exit::success) return exit_;
    std::sort_heap(heap.begin(), heap.end());
    LineWriter out(File::borrow(STDOUT_FILENO), "standard output");
    for (const Ranked& one : heap) {
      out.append(line_of(one.counter, settings_.smallest ? -one.rank : one.rank));
    }
    return finish(out);
  }

  Exit sum() {
    if (!open()) return exit_;
    const Result<tally::RangeSum> sum = table_->sum(names());
    if (!sum) return cannot_read(sum.error());
    return print(settings_.name,
                 "sum\t" + decimal(sum->sum) + "\ncounters\t" + std::to_string(sum->count) + '\n');
  }

 private:
  struct Ranked {
    int128 rank;
    std::string counter;
    // Better: what the heap keeps longest, and the order in which they are written.
    bool operator<(const Ranked& other) const {
      return rank != other.rank ? rank > other.rank : counter < other.counter;
    }
  };

  bool open() {
    range_ = settings_.range.range();
    if (!range_) {
      fail(kEmptyRange, Exit::usage);
      return false;
    }
    TallyProblem problem;
    table_ = TallyTable::open_to_read(settings_.directory, problem);
    if (!table_) fail(problem.text, problem.exit);
    return table_ != nullptr;
  }

  tally::NameRange names() const {
    return {range_->first,
            range_->end ? std::optional<std::string_view>(*range_->end) : std::nullopt};
  }

  void scan(const tally::Counters::Visit& visit) {
    const Result<void> scanned = (*table_)->scan(names(), visit);
    if (!scanned) cannot_read(scanned.error());
  }

  static std::string line_of(std::string_view counter, int128 value) {
    return escaped(counter) + '\t' + decimal(value) + '\n';
  }

  Exit fail(const std::string& text, Exit exit = Exit::failure) {
    complain(settings_.name, text);
    return exit_ = exit;
  }

  Exit cannot_read(const Error& error) {
    return fail("cannot read " + quoted(settings_.directory) + ": " + table_->why(error));
  }

  Exit finish(LineWriter& out) {
    out.flush();
    return out.error() ? fail(cannot("write", out.name(), out.error())) : exit_;
  }

  const Settings& settings_;
  std::optional<KeyRange> range_;
  std::unique_ptr<TallyTable> table_;
  Exit exit_ = Exit::success;
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
      std::string("A line is COUNTER, a tab and its value: of each COUNTER in the order "
                  "given, or without any of all in the range, in the order of their names. "
                  "In names \\xNN stands for a byte and \\\\ for a backslash.") +
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
      std::string("Writes the N largest counters, or 10, from the largest on, a line each: "
                  "the name, a tab and the value. Of equal values the first names come "
                  "first.") +
          kWhileInUse,
      {}};
  auto settings = settings_for(syntax);
  syntax.options = options_of(settings->range);
  append(syntax.options, {{"smallest", 's', flag_value(settings->smallest),
                           "the smallest ones, from the smallest on"}});
  syntax.operands = {count_value("N", settings->most, 1, kMostTop),
                     0,
                     1,
                     {directory_value("DIRECTORY", settings->directory)}};
  syntax.examples = {{"semel tally top DIR 3 --prefix page/", "the three largest of some"}};
  return {"tally top", std::move(syntax), [settings] { return Reading(*settings).top(); }};
}

Command tally_sum_command() {
  Syntax syntax{
      "semel tally sum",
      "Writes the sum of counters, and how many they are",
      std::string("Of all counters, or of a range of names. The sum is exact, also beyond "
                  "64 bits.") +
          kWhileInUse,
      {}};
  auto settings = settings_for(syntax);
  syntax.options = options_of(settings->range);
  syntax.operands = {directory_value("DIRECTORY", settings->directory), 1, 1};
  syntax.examples = {{"semel tally sum DIR --prefix page/", "the sum of some"}};
  return {"tally sum", std::move(syntax), [settings] { return Reading(*settings).sum(); }};
}

}  // namespace semel::cli
