// semel tally load: a stream of operations into a table. What the options mean together; the work is
// done by tally_load_run.h.
#include <unistd.h>

#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/sift_report.h"
#include "cli/stop_signal.h"
#include "cli/store_options.h"
#include "cli/tally_load_run.h"

namespace semel::cli {
namespace {

constexpr const char* kName = "semel tally load";

const std::vector<std::pair<std::string, Format>> kFormats = {
    {"tsv", Format::tsv}, {"csv", Format::csv}, {"json", Format::json}};

struct Settings {
  std::string directory;
  std::vector<std::string> files;
  Format format = Format::tsv;
  bool header = false;
  std::optional<std::string> delimiter;
  std::optional<std::string> counter;
  std::optional<std::string> delta;
  std::optional<std::string> id;
  std::optional<std::string> client;
  std::optional<std::string> sequence;
  bool no_ids = false;
  bool skip_unreadable = false;
  bool quiet = false;
  bool json = false;
  ShapeOptions shape;
  DurabilityOptions durability{tally::Durability::periodic};
};

Exit refuse(const std::string& text) {
  complain(kName, text);
  return Exit::usage;
}

// What is wrong with the options taken together; empty if nothing.
std::string contradiction(const Settings& s) {
  if (s.quiet && s.json) return "--quiet and --json exclude each other; allowed: one of them";
  if (s.header && s.format == Format::json) {
    return "--header needs columns; allowed: with --format csv or tsv";
  }
  if (s.delimiter && s.format != Format::csv) {
    return "--delimiter is for CSV; allowed: with --format csv";
  }
  if (s.delimiter && (s.delimiter->size() != 1 || s.delimiter->find_first_of("\"\r\n") == 0)) {
    return "--delimiter cannot be " + quoted(*s.delimiter) +
           "; allowed: one byte, other than a quote and a line end";
  }
  if (s.id && (s.client || s.sequence)) {
    return "--id and --client with --sequence exclude each other; allowed: one of them";
  }
  if (s.client.has_value() != s.sequence.has_value()) {
    return s.client ? "--client needs --sequence; allowed: both"
                    : "--sequence needs --client; allowed: both";
  }
  if (s.no_ids && (s.id || s.client)) {
    return "--no-ids and --id or --client exclude each other; allowed: one of them";
  }
  return "";
}

// The fields of counter, delta and id; a refusal instead, if one is none.
std::string fields_of(const Settings& s, const RecordSyntax& syntax, Questions& out) {
  const bool json = s.format == Format::json;
  std::vector<std::pair<const char*, std::string>> named = {
      {"--counter", s.counter.value_or(json ? "counter" : "1")},
      {"--delta", s.delta.value_or(json ? "delta" : "2")}};
  if (s.client) {
    named.insert(named.end(), {{"--client", *s.client}, {"--sequence", *s.sequence}});
  } else if (!s.no_ids) {
    named.emplace_back("--id", s.id.value_or(json ? "id" : "3"));
  }
  for (const auto& [option, name] : named) {
    auto field = parse_field(syntax, name);
    if (!field) {
      return std::string(option) + " cannot be " + quoted(name) +
             (json ? "; allowed: a path such as user.id or /user/id"
                   : "; allowed: the number of a column from 1 on, or a name with --header");
    }
    out.key.push_back(*std::move(field));
  }
  if (s.header) return "";
  std::string missing;
  if (find_columns(syntax, out, std::nullopt, missing)) return "";
  return "column " + quoted(missing) + " is a name; allowed: with --header, or a number";
}

// A load that comes too late to be recognised looks like any other, and counts twice.
void warn_of_age(const std::string& directory, const TallyTable& table) {
  const Result<bool> forgotten = table.has_forgotten_all();
  if (!forgotten || !*forgotten) return;  // what cannot be read is told by the load itself
  complain(kName, "warning: " + quoted(directory) + " remembers no id of the last " +
                      duration_text(table->info().recogniser.window_ms) +
                      ", its window: records that were loaded before may count again");
}

Exit load(Settings settings) {
  if (const std::string wrong = contradiction(settings); !wrong.empty()) return refuse(wrong);
  if (settings.files.empty()) settings.files.emplace_back("-");

  TallyLoadPlan plan;
  plan.input.inputs = settings.files;
  plan.input.command = kName + (' ' + settings.directory);
  plan.input.syntax = {settings.format, settings.delimiter ? settings.delimiter->front() : ','};
  plan.input.has_header = settings.header;
  if (const std::string wrong = fields_of(settings, plan.input.syntax, plan.input.questions);
      !wrong.empty()) {
    return refuse(wrong);
  }
  plan.ids = settings.no_ids ? IdForm::none : settings.client ? IdForm::numbered : IdForm::opaque;
  plan.skip_unreadable = settings.skip_unreadable;
  plan.progress = !settings.quiet && !settings.json && ::isatty(STDERR_FILENO) == 1;

  TallyProblem problem;
  const auto table =
      TallyTable::open_to_write(settings.directory, settings.shape, settings.durability, problem);
  if (!table) {
    complain(kName, problem.text);
    return problem.exit;
  }
  if (!settings.quiet && plan.ids != IdForm::none) warn_of_age(settings.directory, *table);
  TallyLoadReport report;
  const TallyLoadEnd end = run_tally_load(plan, *table, report);
  Exit exit = end.sound && end.complete ? Exit::success : Exit::failure;
  const std::string unclosed = table->close();
  if (end.sound && !unclosed.empty()) {
    complain(kName, unclosed);
    exit = Exit::failure;
  }
  if (!settings.quiet) {
    (void)write_all(STDERR_FILENO, settings.json ? report.json() : report.summary());
  }
  if (end.signal != 0) die_of(end.signal);
  if (exit == Exit::success && report.refused() + report.stale > 0) exit = Exit::refused;
  return exit;
}

Option field_option(const char* name, char letter, std::optional<std::string>& to,
                    std::string help) {
  return {name, letter,
          value_of("FIELD", "a field", to,
                   [](std::string_view text) { return std::optional(std::string(text)); }),
          std::move(help)};
}

}  // namespace

Command tally_load_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{
      "semel tally load",
      "Adds to counters what a stream of records says, each id once",
      "Reads the FILEs, or standard input without any; - is standard input. A record is a counter, "
      "a "
      "delta and an id, with tabs between them; in TSV \\xNN stands for a byte and \\\\ for a "
      "backslash. The table in DIRECTORY is made if it is not there.\n"
      "What was interrupted is run again: what was counted before, within the window, is "
      "recognised "
      "by its id. A summary on standard error tells how many records were applied, were "
      "duplicates, "
      "or were not counted, with the reason and the line of the first ten, and for how long a "
      "retry "
      "is recognised. A warning tells if all ids in the table have left the window.\n"
      "Exits with 0, with 1 if a file, a record or the table could not be read or written, with 2 "
      "if "
      "an option is wrong, with 3 if a record was not counted: stale, or refused.",
      {{"format", 'f', choice_value("FORMAT", settings->format, kFormats),
        "what the input is: tsv, csv or json, one value a line (default tsv)"},
       {"header", 'H', flag_value(settings->header),
        "the first record of each file names its columns, the same ones in the same order"},
       {"delimiter", 'D',
        value_of("C", "one byte", settings->delimiter,
                 [](std::string_view text) { return std::optional(std::string(text)); }),
        "what stands between the columns of CSV (default ,)"},
       field_option("counter", 'C', settings->counter,
                    "the name of the counter: a column by number or name, a JSON field by path "
                    "(default 1, or counter)"),
       field_option("delta", 'a', settings->delta, "what to add (default 2, or delta)"),
       field_option("id", 'i', settings->id, "the id of the operation (default 3, or id)"),
       field_option("client", 'c', settings->client,
                    "who numbers its operations; in place of --id, with --sequence"),
       field_option("sequence", 's', settings->sequence,
                    "the number of the operation of its client"),
       {"no-ids", 'N', flag_value(settings->no_ids),
        "records have no ids, and each of them counts, each time it is loaded"},
       {"on-error", 'E',
        choice_value("ACTION", settings->skip_unreadable,
                     std::vector<std::pair<std::string, bool>>{{"stop", false}, {"skip", true}}),
        "a record that cannot be read: stop there, or skip it (default stop)"}}};
  append(syntax.options, options_of(settings->shape));
  append(syntax.options, options_of(settings->durability, "periodic"));
  append(syntax.options,
         {{"quiet", 'q', flag_value(settings->quiet), "no summary; errors are still reported"},
          {"json", 'j', flag_value(settings->json), "the summary as a JSON object on one line"}});
  syntax.operands = {paths_value("FILE", settings->files),
                     0,
                     SIZE_MAX,
                     {directory_value("DIRECTORY", settings->directory)}};
  syntax.examples = {
      {"printf 'likes\\t1\\tann-1\\n' | semel tally load DIR", "one operation"},
      {"semel tally load DIR -f csv -H --counter page --delta n --id request hits.csv",
       "columns by name"},
      {"semel tally load DIR -f json --client user --sequence n -w 1d events.json",
       "clients that number their operations"}};
  return {"tally load", std::move(syntax), [settings] { return load(*settings); }};
}

}  // namespace semel::cli
