// semel tally load: applies a stream of operations to a table. This file decides what the options
// mean together; tally_load_run.h does the work.
#include <unistd.h>

#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/input_options.h"
#include "cli/sift_report.h"
#include "cli/stop_signal.h"
#include "cli/store_options.h"
#include "cli/tally_load_run.h"

namespace semel::cli {
namespace {

constexpr const char* kName = "semel tally load";

const FormatWords kFormats = {{"tsv", Format::tsv}, {"csv", Format::csv}, {"json", Format::json}};

struct Settings {
  std::string directory;
  InputOptions input{Format::tsv};
  SummaryOptions summary;
  std::optional<std::string> counter;
  std::optional<std::string> delta;
  std::optional<std::string> id;
  std::optional<std::string> client;
  std::optional<std::string> sequence;
  bool no_id = false;
  bool skip_unreadable = false;
  ShapeOptions shape;
  DurabilityOptions durability{tally::Durability::periodic};
};

// Refuses options that contradict each other.
Result<void> check_options(const Settings& s) {
  SEMEL_TRY(s.summary.check());
  SEMEL_TRY(s.input.check());
  SEMEL_TRY(check_id_options(s.id.has_value(), s.client.has_value(), s.sequence.has_value()));
  if (s.no_id && (s.id || s.client)) return exclusive("--no-id", "--id or --client");
  return {};
}

// Returns the fields of counter, delta and id.
Result<Questions> questions_of(const Settings& s, const RecordSyntax& syntax) {
  Questions questions;
  const bool json = s.input.format == Format::json;
  std::vector<std::pair<const char*, std::string>> named = {
      {"--counter", s.counter.value_or(json ? "counter" : "1")},
      {"--delta", s.delta.value_or(json ? "delta" : "2")}};
  if (s.client) {
    named.insert(named.end(), {{"--client", *s.client}, {"--sequence", *s.sequence}});
  } else if (!s.no_id) {
    named.emplace_back("--id", s.id.value_or(json ? "id" : "3"));
  }
  for (const auto& [option, name] : named) {
    auto field = parse_field(syntax, name);
    if (!field) {
      return usage_error(
          std::string(option) + " cannot be " + quoted(name) +
          (json ? "; allowed: a path such as user.id or /user/id"
                : "; allowed: the number of a column from 1 on, or a name with --header"));
    }
    questions.key.push_back(*std::move(field));
  }
  if (!s.input.header) SEMEL_TRY(find_columns(syntax, questions, std::nullopt));
  return questions;
}

// Warns before a repeated load that comes too late to be recognised: it would count twice.
void warn_of_age(const std::string& directory, const TallyTable& table) {
  const Result<bool> forgotten = table.has_forgotten_all();
  if (!forgotten || !*forgotten) return;  // the load itself reports what cannot be read
  complain(kName, "warning: " + quoted(directory) + " remembers no id of the last " +
                      duration_text(table->info().recognition.window_ms) +
                      ", its window: records that were loaded before may count again");
}

Result<Exit> load(Settings settings) {
  SEMEL_TRY(check_options(settings));
  if (settings.input.files.empty()) settings.input.files.emplace_back("-");

  TallyLoadPlan plan;
  plan.input = settings.input.plan(kName + (' ' + settings.directory));
  plan.input.questions = SEMEL_TRY(questions_of(settings, plan.input.syntax));
  plan.ids = settings.no_id ? IdForm::none : settings.client ? IdForm::numbered : IdForm::opaque;
  plan.skip_unreadable = settings.skip_unreadable;
  plan.progress = !settings.summary.quiet && !settings.summary.json && ::isatty(STDERR_FILENO) == 1;

  const auto table =
      SEMEL_TRY(TallyTable::open_to_write(settings.directory, settings.shape, settings.durability));
  if (!settings.summary.quiet && plan.ids != IdForm::none) warn_of_age(settings.directory, *table);
  TallyLoadReport report;
  const TallyLoadEnd end = run_tally_load(plan, *table, report);
  Exit exit = end.sound && end.complete ? Exit::success : Exit::failure;
  const Result<void> closed = table->close();
  if (end.sound && !closed) {
    complain(kName, closed.error().message());
    exit = Exit::failure;
  }
  if (!settings.summary.quiet) {
    (void)write_all(STDERR_FILENO, settings.summary.json ? report.json() : report.summary());
  }
  if (end.signal != 0) die_of(end.signal);
  if (exit == Exit::success && report.refused() + report.stale > 0) exit = Exit::refused;
  return exit;
}

Option field_option(const char* name, char letter, std::optional<std::string>& to,
                    std::string help) {
  return {name, letter, text_value("FIELD", "a field", to), std::move(help)};
}

}  // namespace

Command tally_load_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{
      "semel tally load",
      "Adds to counters what a stream of records says, each id once",
      "Reads the FILEs, or standard input if there are none; - is standard input. A record is a "
      "counter, a delta and an id, with tabs between them; in TSV \\xNN stands for a byte and "
      "\\\\ for a backslash. The table in DIRECTORY is made if it is not there.\n"
      "A load that was interrupted can be run again: operations that were counted within the "
      "window are recognised by their ids. A summary on standard error tells how many records "
      "were applied, were duplicates or were not counted, and how long a retry is recognised. The "
      "first ten records that are not counted are reported with their lines and reasons. A "
      "warning says if all ids in the table have left the window.\n"
      "Exits with 0, with 1 if a file, a record or the table could not be read or written, with 2 "
      "if an option is wrong, with 3 if a record was not counted: stale, or refused.",
      {format_option(settings->input, kFormats),
       header_option(settings->input),
       delimiter_option(settings->input),
       field_option("counter", 'C', settings->counter,
                    "the name of the counter: a column by number or name, a JSON field by path "
                    "(default 1, or counter)"),
       field_option("delta", 'a', settings->delta, "what to add (default 2, or delta)"),
       field_option("id", 'i', settings->id, "the id of the operation (default 3, or id)"),
       field_option("client", 'c', settings->client,
                    "the client that numbers its operations; in place of --id, with --sequence"),
       field_option("sequence", 's', settings->sequence,
                    "the number of the operation of its client"),
       {"no-id", 'N', flag_value(settings->no_id),
        "records have no ids, and each one counts each time it is loaded"},
       {"on-error", 'E',
        choice_value("ACTION", settings->skip_unreadable,
                     std::vector<std::pair<std::string, bool>>{{"stop", false}, {"skip", true}}),
        "what to do with a record that cannot be read: stop, or skip it (default stop)"}}};
  append(syntax.options, options_of(settings->shape));
  append(syntax.options, options_of(settings->durability, "periodic"));
  append(syntax.options, options_of(settings->summary));
  syntax.operands = {paths_value("FILE", settings->input.files),
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
