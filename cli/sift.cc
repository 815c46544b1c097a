// semel sift: the first of each key, in input order and byte for byte. What the options mean together;
// the work is done by sift_run.h.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/judge.h"
#include "cli/line_writer.h"
#include "cli/remote_judge.h"
#include "cli/sift_report.h"
#include "cli/sift_run.h"
#include "cli/sift_state.h"
#include "cli/stop_signal.h"
#include "cli/tree_plan.h"
#include "cli/windows.h"
#include "client/url.h"
#include "semel/core/error_rate.h"
#include "semel/hash/hasher.h"

namespace semel::cli {
namespace {

constexpr const char* kName = "semel sift";
constexpr double kDefaultError = 1e-6;
constexpr TimeMs kDefaultCheckpointMs = 10'000;
constexpr std::uint64_t kMostThreads = 256;
constexpr std::uint64_t kDefaultThreads = 8;  // at most
constexpr std::uint64_t kMostSlices = 1024;
constexpr std::uint32_t kDefaultSpread = 4;
constexpr std::uint64_t kMostReplicas = 100;
constexpr TimeMs kShortestClaimMs = 1000;

enum class Layout : std::uint8_t { horizontal, vertical, diced, diced_vh };

const std::vector<std::pair<std::string, Format>> kFormats = {
    {"lines", Format::lines}, {"csv", Format::csv}, {"tsv", Format::tsv}, {"json", Format::json}};
const std::vector<std::pair<std::string, Layout>> kLayouts = {{"horizontal", Layout::horizontal},
                                                              {"vertical", Layout::vertical},
                                                              {"diced", Layout::diced},
                                                              {"diced-vh", Layout::diced_vh}};

const std::vector<std::pair<std::string, Delivery>> kDeliveries = {
    {"at-least-once", Delivery::at_least_once}, {"at-most-once", Delivery::at_most_once}};

struct Settings {
  std::vector<std::string> files;
  std::optional<std::string> key;
  std::optional<std::string> delimiter;
  std::optional<std::string> time_field;
  std::optional<std::string> state;
  std::optional<std::string> duplicates_to;
  std::optional<std::string> tree;
  std::optional<client::Url> at;
  std::optional<std::string> password_file;
  std::optional<std::string> stream;
  std::optional<std::uint64_t> replicas;
  std::optional<Delivery> delivery;
  std::optional<TimeMs> claim_ms;
  std::optional<TimeMs> window_ms;
  std::optional<TimeMs> checkpoint_ms;
  std::optional<double> error;
  std::optional<std::uint64_t> threads;
  std::optional<std::uint64_t> slices;
  std::optional<std::uint64_t> spread;
  std::uint64_t seed = 0;
  std::optional<Layout> layout;
  Format format = Format::lines;
  OnError on_error = OnError::stop;
  bool header = false;
  bool exact = false;
  bool count = false;
  bool quiet = false;
  bool json = false;

  std::uint32_t slice_count() const {
    return static_cast<std::uint32_t>(slices.value_or(kDefaultSlices));
  }
};

template <class Enum>
std::string word_of(const std::vector<std::pair<std::string, Enum>>& words, Enum value) {
  return std::find_if(words.begin(), words.end(), [&](auto& word) { return word.second == value; })
      ->first;
}

Exit refuse(const std::string& text) {
  complain(kName, text);
  return Exit::usage;
}

// What is wrong with the options taken together; empty if nothing.
std::string contradiction(const Settings& s) {
  const bool table = s.format == Format::csv || s.format == Format::tsv;
  if (s.exact && s.error) return "--error and --exact exclude each other; allowed: one of them";
  if (s.quiet && s.json) return "--quiet and --json exclude each other; allowed: one of them";
  if (s.format == Format::lines && (s.key || s.time_field)) {
    return std::string(s.key ? "--key" : "--time-field") +
           " needs fields; allowed: with --format csv, tsv or json";
  }
  if (s.header && !table) return "--header needs columns; allowed: with --format csv or tsv";
  if (s.delimiter && s.format != Format::csv) {
    return "--delimiter is for CSV; allowed: with --format csv";
  }
  if (s.delimiter && (s.delimiter->size() != 1 || s.delimiter->find_first_of("\"\r\n") == 0)) {
    return "--delimiter cannot be " + quoted(*s.delimiter) +
           "; allowed: one byte, other than a quote and a line end";
  }
  if (s.time_field && !s.window_ms) return "--time-field needs --window; allowed: both";
  if (s.window_ms == TimeMs{0}) return "--window cannot be '0'; allowed: 1ms or more";
  if (s.checkpoint_ms && !s.state) return "--checkpoint needs --state; allowed: both";
  if (s.spread && s.layout.value_or(Layout::horizontal) == Layout::horizontal) {
    return "--spread is for slices that share a key; allowed: with --layout vertical or diced";
  }
  if (s.tree && s.format == Format::lines) {
    return "--tree needs fields; allowed: with --format csv, tsv or json";
  }
  if (s.tree && (s.layout || s.slices || s.spread)) {
    return "--tree and --layout, --slices or --spread exclude each other; allowed: slices in the "
           "tree";
  }
  return "";
}

// The same of what is at a server: all of it, or with a tree its levels from the root on.
std::string remote_contradiction(const Settings& s, bool tree) {
  const bool remote = s.at || tree;
  const char* const given = s.stream          ? "--stream"
                            : s.password_file ? "--password-file"
                            : s.replicas      ? "--replicas"
                            : s.delivery      ? "--delivery"
                            : s.claim_ms      ? "--claim"
                                              : nullptr;
  if (!remote) {
    if (given == nullptr) return "";
    return std::string(given) + " is for memory at a server; allowed: with --at, or with a tree";
  }
  if (s.at && s.tree) {
    return "--at and --tree exclude each other; allowed: at URL in the lines of the tree";
  }
  if (!s.stream) return "memory at a server needs a name; allowed: --stream NAME";
  if (s.stream->empty() || s.stream->find_first_of("{}") != std::string::npos) {
    return "--stream cannot be " + quoted(*s.stream) + "; allowed: a name without braces";
  }
  if (!s.window_ms) return "memory at a server needs --window; allowed: both";
  if (s.time_field) {
    return "--time-field and memory at a server exclude each other: its windows follow its clock";
  }
  if (s.seed != 0) {
    return "--seed and memory at a server exclude each other: all producers need the same digests";
  }
  if (s.at && s.state) {
    return "--state and --at exclude each other: what is known is at the server";
  }
  if (s.at && (s.spread || s.layout.value_or(Layout::horizontal) != Layout::horizontal)) {
    return "--at has horizontal slices; allowed: neither --layout nor --spread";
  }
  if (s.claim_ms && *s.claim_ms < kShortestClaimMs) {
    return "--claim cannot be " + quoted(duration_text(*s.claim_ms)) + "; allowed: 1s or more";
  }
  return "";
}

// What is asked of every record; a refusal instead, if a field is not one.
std::string questions_of(const Settings& settings, const RecordSyntax& syntax, Questions& out) {
  const char* const allowed =
      syntax.format == Format::json
          ? "; allowed: paths such as user.id or /user/id"
          : "; allowed: numbers of columns from 1 on, or names with --header";
  if (settings.key) {
    out.key = parse_fields(syntax, *settings.key);
    if (out.key.empty()) return "--key cannot be " + quoted(*settings.key) + allowed;
  }
  if (settings.time_field) {
    out.time = parse_field(syntax, *settings.time_field);
    if (!out.time) return "--time-field cannot be " + quoted(*settings.time_field) + allowed;
  }
  if (settings.header) return "";
  std::string missing;
  if (find_columns(syntax, out, std::nullopt, missing)) return "";
  return "column " + quoted(missing) + " is a name; allowed: with --header, or a number";
}

// Exit::success, or the reason is reported.
Exit read_tree(const std::string& path, const RecordSyntax& syntax, TreePlan& tree) {
  std::error_code error;
  const File file = File::open_to_read(path, error);
  std::string text;
  if (!error) error = read_all(file.fd(), text);
  if (error) {
    complain(kName, cannot("read", quoted(path), error));
    return Exit::failure;
  }
  const std::string wrong = parse_tree(text, syntax, tree);
  return wrong.empty() ? Exit::success : refuse(quoted(path) + ' ' + wrong);
}

// All that a state depends on.
StateOptions state_options(const Settings& s, double error, const std::optional<TreePlan>& tree) {
  const auto number = [](double x) {
    std::ostringstream out;
    out.precision(std::numeric_limits<double>::digits10);
    out << x;
    return out.str();
  };
  return {{"--format", word_of(kFormats, s.format)},
          {"--key", s.key.value_or("")},
          {"--delimiter", s.delimiter.value_or("")},
          {"--window", s.window_ms ? duration_text(*s.window_ms) : ""},
          {"--time-field", s.time_field.value_or("")},
          {"--exact", s.exact ? "yes" : ""},
          {"--error", s.exact ? "" : number(error)},
          {"--seed", std::to_string(s.seed)},
          {"--layout", word_of(kLayouts, s.layout.value_or(Layout::horizontal))},
          {"--slices", std::to_string(s.slice_count())},
          {"--spread", s.spread ? std::to_string(*s.spread) : ""},
          {"--tree", tree ? tree->text() : ""}};
}

// The password for servers whose URL has none. Exit::success, or the reason is reported.
Exit find_password(const Settings& settings, std::string& password) {
  if (!settings.password_file) {
    for (const char* const name : {"SEMEL_PASSWORD", "REDISCLI_AUTH"}) {
      const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads yet
      if (value != nullptr && password.empty()) password = value;
    }
    return Exit::success;
  }
  std::error_code error;
  const File file = File::open_to_read(*settings.password_file, error);
  if (!error) error = read_all(file.fd(), password);
  if (error) {
    complain(kName, cannot("read", quoted(*settings.password_file), error));
    return Exit::failure;
  }
  password.resize(std::min(password.find_first_of("\r\n"), password.size()));
  if (!password.empty()) return Exit::success;
  return refuse(
      "--password-file cannot be " + quoted(*settings.password_file) +
      ", which begins with an empty line; allowed: a file with the password in its first line");
}

RemoteSettings remote_settings(const Settings& s, double error, const std::string& password) {
  RemoteSettings remote;
  remote.password = password;
  remote.stream = *s.stream;
  remote.shape = {*s.window_ms, s.exact, error, s.tree ? kFirstIds : kFirstIds / s.slice_count()};
  if (s.replicas) remote.replicas = static_cast<std::uint32_t>(*s.replicas);
  remote.delivery = s.delivery.value_or(Delivery::at_least_once);
  remote.claim_ms = s.claim_ms.value_or(kDefaultClaimMs);
  return remote;
}

Result<std::unique_ptr<Judge>> judge_of(const Settings& settings, const Memory& memory,
                                        const std::optional<TreePlan>& tree,
                                        const std::string& password, std::string& problem) {
  const std::uint32_t slices = settings.slice_count();
  if (settings.at) {
    return make_remote_judge(*settings.at, slices,
                             remote_settings(settings, memory.error, password), problem);
  }
  if (tree) {
    std::optional<RemoteSettings> remote;
    if (tree->remote()) remote = remote_settings(settings, memory.error, password);
    return make_tree_judge(memory, *tree, remote ? &*remote : nullptr, problem);
  }
  const Layout layout = settings.layout.value_or(Layout::horizontal);
  if (layout == Layout::horizontal) return make_judge(memory, slices);
  const auto spread =
      static_cast<std::uint32_t>(settings.spread.value_or(std::min(kDefaultSpread, slices)));
  if (layout == Layout::vertical) {
    return make_sliced_judge(memory, {SliceLayout::vertical, slices, 1, spread});
  }
  // As square as it can be.
  std::uint32_t groups = 1;
  for (std::uint32_t i = 2; std::uint64_t{i} * i <= slices; ++i) {
    if (slices % i == 0) groups = i;
  }
  return make_sliced_judge(memory, {layout == Layout::diced ? SliceLayout::h_v : SliceLayout::v_h,
                                    groups, slices / groups, spread});
}

// Returns how long a key may be recognised at most. A tree that copies what it recognises has it
// from then on.
TimeMs longest_recognised(const Settings& settings, const std::optional<TreePlan>& tree) {
  const TimeMs window_ms = *settings.window_ms;
  const auto in_one = [&](bool remote) {
    return settings.exact
               ? ExactWindow::longest_ms({.window_ms = window_ms, .punctual = !remote})
               : ForgetfulFilter::longest_ms({.window_ms = window_ms, .fpr = kDefaultError});
  };
  if (!tree) return in_one(settings.at.has_value());
  TimeMs sum_ms = 0;
  TimeMs most_ms = 0;
  for (const TreePlan::Level& level : tree->levels) {
    const TimeMs level_ms = in_one(!level.at.empty());
    sum_ms = later_by(sum_ms, level_ms);
    most_ms = std::max(most_ms, level_ms);
  }
  return tree->kind == TreeKind::sparse ? most_ms : sum_ms;
}

// The name of the input that is this file; none if none is.
std::optional<std::string> input_that_is(const Settings& settings, const FileId& file) {
  for (const std::string& input : settings.files) {
    const bool standard = input == "-";
    if (file == (standard ? file_id(STDIN_FILENO) : file_id(input))) {
      return standard ? "standard input" : quoted(input);
    }
  }
  return std::nullopt;
}

// True if writing to the file would change what is read, or mix with what else is written.
bool in_use(const Settings& settings, const FileId& file) {
  return file == file_id(STDOUT_FILENO) || input_that_is(settings, file);
}

// What is written to a file that is read would be read again, and so on; empty if it is not.
std::string circle(const Settings& settings) {
  const auto out = settings.count ? std::nullopt : file_id(STDOUT_FILENO);
  const auto input = out ? input_that_is(settings, *out) : std::nullopt;
  if (!input) return "";
  return "standard output is the same file as " + *input + "; allowed: another file, or a pipe";
}

std::string refused_file(const char* option, const std::string& name) {
  return std::string(option) + " cannot be " + name +
         ", which is also read or written; allowed: a file of its own";
}

// A file that is to be written and has another use; empty if there is none. Looked at before any is
// made.
std::string collision(const Settings& settings) {
  const auto used = [&](const std::optional<std::string>& path) {
    const auto id = path ? file_id(*path) : std::nullopt;
    return id && in_use(settings, *id);
  };
  if (used(settings.duplicates_to)) {
    return refused_file("--duplicates-to", quoted(*settings.duplicates_to));
  }
  const bool one = settings.state && settings.duplicates_to &&
                   name_one_file(*settings.state, *settings.duplicates_to);
  return one || used(settings.state) ? refused_file("--state", quoted(*settings.state)) : "";
}

// The file for the duplicates, emptied; on failure none, and the reason is reported.
std::optional<LineWriter> open_duplicates(const Settings& settings, Exit& exit) {
  const std::string name = quoted(*settings.duplicates_to);
  std::error_code error;
  File file = File::open_to_write(*settings.duplicates_to, error);
  if (const auto id = file_id(file.fd()); id && in_use(settings, *id)) {
    complain(kName, refused_file("--duplicates-to", name));
    exit = Exit::usage;
    return std::nullopt;
  }
  if (!error) error = empty(file.fd());
  if (error) {
    complain(kName, cannot("write", name, error));
    exit = Exit::failure;
    return std::nullopt;
  }
  return LineWriter(std::move(file), name);
}

// Opens, locks and reads the state. Exit::success, or the reason is reported.
Exit open_state(const Settings& settings, const StateOptions& options, StateFile& state,
                Judge& judge) {
  if (const std::string problem = state.open(*settings.state); !problem.empty()) {
    complain(kName, problem);
    return Exit::failure;
  }
  if (in_use(settings, state.id()) ||
      (settings.duplicates_to && file_id(*settings.duplicates_to) == state.id())) {
    complain(kName, refused_file("--state", quoted(*settings.state)));
    return Exit::usage;
  }
  const StateProblem problem = state.load(options, judge);
  if (problem.text.empty()) return Exit::success;
  complain(kName, problem.text);
  return problem.options ? Exit::usage : Exit::failure;
}

Exit sift(Settings settings) {
  if (const std::string wrong = contradiction(settings); !wrong.empty()) return refuse(wrong);
  if (settings.files.empty()) settings.files.emplace_back("-");
  if (const std::string wrong = circle(settings); !wrong.empty()) return refuse(wrong);
  if (const std::string wrong = collision(settings); !wrong.empty()) return refuse(wrong);

  SiftPlan plan;
  plan.input.inputs = settings.files;
  plan.input.command = kName;
  plan.input.syntax = {settings.format, settings.delimiter ? settings.delimiter->front() : ','};
  plan.input.has_header = settings.header;
  std::optional<TreePlan> tree;
  if (settings.tree) {
    const Exit exit = read_tree(*settings.tree, plan.input.syntax, tree.emplace());
    if (exit != Exit::success) return exit;
    for (std::size_t i = 1; i < tree->levels.size(); ++i) {
      plan.input.questions.places.push_back(tree->levels[i].key);
    }
    if (settings.error &&
        !is_error_rate(*settings.error / static_cast<double>(tree->levels.size()))) {
      return refuse("--error is divided among the levels of the tree; allowed for each: " +
                    std::string(kErrorRatesAllowed));
    }
  }
  if (const std::string wrong = remote_contradiction(settings, tree && tree->remote());
      !wrong.empty()) {
    return refuse(wrong);
  }
  if (const std::string wrong = questions_of(settings, plan.input.syntax, plan.input.questions);
      !wrong.empty()) {
    return refuse(wrong);
  }
  plan.on_error = settings.on_error;
  plan.window_ms = settings.window_ms;
  plan.seed = settings.seed;
  plan.ids = settings.at.has_value();
  plan.threads = settings.threads.value_or(
      std::clamp<std::uint64_t>(std::thread::hardware_concurrency(), 1, kDefaultThreads));
  plan.checkpoint_ms = settings.checkpoint_ms.value_or(kDefaultCheckpointMs);
  plan.progress = !settings.quiet && !settings.json && ::isatty(STDERR_FILENO) == 1 &&
                  ::isatty(STDOUT_FILENO) == 0;

  const double error = settings.error.value_or(kDefaultError);
  const Memory memory{
      .window_ms = settings.window_ms,
      .exact = settings.exact,
      .error = error,
      .hash = Hasher::fast(settings.seed).id(),
      // Times in records begin with the first one.
      .now_ms = settings.time_field ? std::numeric_limits<TimeMs>::min() : SystemClock().now_ms()};
  std::string problem;
  std::string password;
  if (settings.at || (tree && tree->remote())) {
    const Exit exit = find_password(settings, password);
    if (exit != Exit::success) return exit;
  }
  auto judge = judge_of(settings, memory, tree, password, problem);
  if (!judge) {
    complain(kName, problem.empty() ? std::string("cannot make the filters: ") + judge.error().what
                                    : problem);
    return judge.error().code == Errc::invalid ? Exit::usage : Exit::failure;
  }

  StateFile state;
  const StateOptions options = state_options(settings, error, tree);
  if (settings.state) {
    const Exit exit = open_state(settings, options, state, **judge);
    if (exit != Exit::success) return exit;
  }
  SiftOutputs outputs;
  if (!settings.count) outputs.first.emplace(File::borrow(STDOUT_FILENO), "standard output");
  if (settings.duplicates_to) {
    Exit exit = Exit::success;
    outputs.duplicates = open_duplicates(settings, exit);
    if (!outputs.duplicates) return exit;
  }

  SiftReport report;
  const SiftEnd end =
      run_sift(plan, **judge, outputs, settings.state ? &state : nullptr, options, report);
  if (!end.sound) return Exit::failure;

  report.exact = settings.exact;
  report.window_ms = settings.window_ms;
  if (settings.window_ms) report.longest_ms = longest_recognised(settings, tree);
  report.trust = (*judge)->trust();
  report.details = (*judge)->details();
  report.json_details = (*judge)->json_details();
  // n keys make n^2 / 2 pairs, each of equal digests with probability 2^-128.
  if (settings.exact) report.trust.error_now = static_cast<double>(report.first) * 0x1p-129;
  report.error_bound = settings.exact ? report.trust.error_now : error;
  if (!settings.quiet) {
    (void)write_all(STDERR_FILENO, settings.json ? report.json() : report.summary());
  }
  if (settings.count && print(kName, report.counts()) != Exit::success) return Exit::failure;
  if (end.signal != 0) die_of(end.signal);
  return end.complete ? Exit::success : Exit::failure;
}

// A password in it is never repeated, whatever is wrong with the rest.
Value url_value(std::optional<client::Url>& to) {
  Value value = value_of("URL",
                         "redis://[user[:password]@]host[:port][,host[:port]...][/database] or "
                         "redis+unix://[user[:password]@]/path, without TLS",
                         to, [](std::string_view text) {
                           const auto url = client::parse_url(text);
                           return url ? std::optional(*url) : std::nullopt;
                         });
  value.secret = true;
  return value;
}

}  // namespace

Command sift_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{
      "semel sift",
      "Writes the first of each line or record and drops the later ones, in input order",
      "Reads the FILEs, or standard input without any; - is standard input. A line is all bytes "
      "before a newline; a last line may lack it.\n"
      "A key that came before, within the window if there is one, is always dropped. A new key is "
      "wrongly dropped with a probability of at most E, however many there are. A summary on "
      "standard error says how many that may have been; a terminal also shows the progress.\n"
      "Exits with 0, with 1 if a file or a line could not be read or written, with 2 if an option "
      "is "
      "wrong.",
      {{"format", 'f', choice_value("FORMAT", settings->format, kFormats),
        "what the input is: lines, csv, tsv or json, one value a line (default lines)"},
       {"key", 'k',
        value_of("FIELDS", "fields with commas between them", settings->key,
                 [](std::string_view text) { return std::optional(std::string(text)); }),
        "what makes two records equal: columns by number or name, JSON fields by path, with commas "
        "between them (default: all of the record)"},
       {"header", 'H', flag_value(settings->header),
        "the first record of each file names its columns, the same ones in the same order; that of "
        "the first file is written"},
       {"delimiter", 'D',
        value_of("C", "one byte", settings->delimiter,
                 [](std::string_view text) { return std::optional(std::string(text)); }),
        "what stands between the columns of CSV (default ,)"},
       {"window", 'w', duration_value("TIME", settings->window_ms),
        "recognise a key for this long after it was written, then forget it: with --exact at once, "
        "otherwise before as long again has passed (default: for ever)"},
       {"time-field", 'T',
        value_of("FIELD", "a field", settings->time_field,
                 [](std::string_view text) { return std::optional(std::string(text)); }),
        "take the time from this field, not from the clock: seconds, milli-, micro- or nanoseconds "
        "since 1970, or ISO 8601"},
       {"error", 'e', error_rate_value(settings->error),
        "the probability, at most, that a new key is wrongly dropped (default 1e-6)"},
       {"exact", 'x', flag_value(settings->exact),
        "keep a digest of 128 bits of each key instead, 21 to 43 bytes each, 36 to 45 with a "
        "window: no new key is dropped unless its digest equals another, of which 1.5e-25 are "
        "expected in ten million keys that "
        "nobody chose to collide"},
       {"state", 'S', path_value("FILE", settings->state),
        "go on from FILE, and leave there what is known at the end, after Ctrl-C or SIGHUP too"},
       {"checkpoint", 'C', duration_value("TIME", settings->checkpoint_ms),
        "save the state this often, or less often if saving takes a tenth of the time (default "
        "10s)"},
       {"duplicates-to", 'd', path_value("FILE", settings->duplicates_to),
        "write what is dropped to FILE, in input order"},
       {"count", 'c', flag_value(settings->count), "write the counts instead of the lines"},
       {"on-error", 'E',
        choice_value(
            "ACTION", settings->on_error,
            std::vector<std::pair<std::string, OnError>>{
                {"stop", OnError::stop}, {"skip", OnError::skip}, {"pass", OnError::pass}}),
        "a record without its key, or too old for the window: stop there, skip it, or pass it on "
        "(default stop)"},
       {"threads", 't', count_value("N", settings->threads, 1, kMostThreads),
        "how many to use; the output does not depend on it (default: one for each processor, at "
        "most "
        "8)"},
       {"layout", 'L', choice_value("LAYOUT", settings->layout, kLayouts),
        "how keys are spread over slices: horizontal (each in one), vertical (each in several), "
        "diced (several of one group) or diced-vh (default horizontal)"},
       {"slices", 'n', count_value("N", settings->slices, 1, kMostSlices),
        "how many parts the filter has (default 16)"},
       {"spread", 'p', count_value("N", settings->spread, 1, Placement::kMostSpread),
        "how many slices know a key, unless they are horizontal (default 4)"},
       {"tree", 'r', path_value("FILE", settings->tree),
        "sift through a tree of filters, from the edge to the root, whose levels FILE names"},
       {"at", 'a', url_value(settings->at),
        "keep the memory at a server with the module semel.so, or spread over the primaries of a "
        "Redis Cluster, for any number of producers at once"},
       {"password-file", 'P', path_value("FILE", settings->password_file),
        "the password for URLs without one is the first line of FILE (default: what SEMEL_PASSWORD "
        "or "
        "REDISCLI_AUTH in the environment holds)"},
       {"stream", 'N',
        value_of("NAME", "a name", settings->stream,
                 [](std::string_view text) { return std::optional(std::string(text)); }),
        "what the stream is called there: producers of one stream share its memory"},
       {"delivery", 'l', choice_value("MODE", settings->delivery, kDeliveries),
        "what a crash does to a record on its way: at-least-once may write it again, at-most-once "
        "may lose it (default at-least-once)"},
       {"claim", 'm', duration_value("TIME", settings->claim_ms),
        "how long other producers wait for a record on its way, if this one stands still (default "
        "1m)"},
       {"replicas", 'R', count_value("N", settings->replicas, 0, kMostReplicas),
        "how many replicas have to know an answer before it counts (default 1 if every primary has "
        "a replica)"},
       {"seed", 's', count_value("N", settings->seed, 0, UINT64_MAX),
        "of the digests; with another seed other lines are wrongly dropped (default 0)"},
       {"quiet", 'q', flag_value(settings->quiet), "no summary; errors are still reported"},
       {"json", 'j', flag_value(settings->json), "the summary as a JSON object on one line"}}};
  syntax.operands = {paths_value("FILE", settings->files), 0, SIZE_MAX};
  syntax.examples = {
      {"semel sift access.log >once.log", "each line once"},
      {"tail -f events | semel sift -q --window 1h", "new events as they come"},
      {"semel sift -f json -k user.id,order --state seen.state orders.json", "day by day"},
      {"semel sift -f csv -H -k id -w 1d -T time clicks.csv", "by the time in the records"},
      {"semel sift --exact --count *.log", "how many different lines there are"},
      {"semel sift -d repeated.txt ids.txt >first.txt", "both halves of the stream"},
      {"semel sift -a redis://10.0.0.1 -N orders -w 1d", "with other producers of the stream"}};
  return {"sift", std::move(syntax), [settings] { return sift(*settings); }};
}

}  // namespace semel::cli
