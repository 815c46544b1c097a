// semel sift: writes the first of each key, in input order and byte for byte. This file says what
// the options mean together; sift_run.h does the work.
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
#include "cli/input_options.h"
#include "cli/judge.h"
#include "cli/line_writer.h"
#include "cli/remote_judge.h"
#include "cli/sift_report.h"
#include "cli/sift_run.h"
#include "cli/sift_state.h"
#include "cli/stop_signal.h"
#include "cli/store_options.h"
#include "cli/tree_plan.h"
#include "client/url.h"
#include "semel/core/internal/error_rate.h"
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

const FormatWords kFormats = {
    {"lines", Format::lines}, {"csv", Format::csv}, {"tsv", Format::tsv}, {"json", Format::json}};
const std::vector<std::pair<std::string, Layout>> kLayouts = {{"horizontal", Layout::horizontal},
                                                              {"vertical", Layout::vertical},
                                                              {"diced", Layout::diced},
                                                              {"diced-vh", Layout::diced_vh}};

const std::vector<std::pair<std::string, Delivery>> kDeliveries = {
    {"at-least-once", Delivery::at_least_once}, {"at-most-once", Delivery::at_most_once}};

struct Settings {
  InputOptions input{Format::lines};
  SummaryOptions summary;
  std::optional<std::string> key;
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
  OnError on_error = OnError::stop;
  bool exact = false;
  bool count = false;

  std::uint32_t slice_count() const {
    return static_cast<std::uint32_t>(slices.value_or(kDefaultSlices));
  }
};

// Refuses options that contradict each other.
Result<void> check_options(const Settings& s) {
  if (s.exact && s.error) return exclusive("--error", "--exact");
  SEMEL_TRY(s.summary.check());
  const bool fields = s.input.format != Format::lines;
  if (!fields && (s.key || s.time_field)) {
    return usage_error(std::string(s.key ? "--key" : "--time-field") +
                       " needs fields; allowed: with --format csv, tsv or json");
  }
  SEMEL_TRY(s.input.check());
  if (s.time_field && !s.window_ms)
    return usage_error("--time-field needs --window; allowed: both");
  if (s.window_ms == TimeMs{0}) return usage_error("--window cannot be '0'; allowed: 1ms or more");
  if (s.checkpoint_ms && !s.state) return usage_error("--checkpoint needs --state; allowed: both");
  if (s.spread && s.layout.value_or(Layout::horizontal) == Layout::horizontal) {
    return usage_error(
        "--spread is for slices that share a key; allowed: with --layout vertical or diced");
  }
  if (s.tree && !fields) {
    return usage_error("--tree needs fields; allowed: with --format csv, tsv or json");
  }
  if (s.tree && (s.layout || s.slices || s.spread)) {
    return usage_error(
        "--tree and --layout, --slices or --spread exclude each other; allowed: slices in the "
        "tree");
  }
  return {};
}

// Refuses options that contradict memory at a server. `tree`: the root of a tree is at a server.
Result<void> check_remote_options(const Settings& s, bool tree) {
  const bool remote = s.at || tree;
  const char* const given = s.stream          ? "--stream"
                            : s.password_file ? "--password-file"
                            : s.replicas      ? "--replicas"
                            : s.delivery      ? "--delivery"
                            : s.claim_ms      ? "--claim"
                                              : nullptr;
  if (!remote) {
    if (given == nullptr) return {};
    return usage_error(std::string(given) +
                       " is for memory at a server; allowed: with --at, or with a tree");
  }
  if (s.at && s.tree) {
    return usage_error(
        "--at and --tree exclude each other; allowed: at URL in the lines of the tree");
  }
  if (!s.stream) return usage_error("memory at a server needs a name; allowed: --stream NAME");
  if (s.stream->empty() || s.stream->find_first_of("{}") != std::string::npos) {
    return usage_error("--stream cannot be " + quoted(*s.stream) +
                       "; allowed: a name without braces");
  }
  if (!s.window_ms) return usage_error("memory at a server needs --window; allowed: both");
  if (s.time_field) {
    return usage_error(
        "--time-field and memory at a server exclude each other: its windows follow its clock");
  }
  if (s.seed != 0) {
    return usage_error(
        "--seed and memory at a server exclude each other: all producers need the same digests");
  }
  if (s.at && s.state) {
    return usage_error("--state and --at exclude each other: what is known is at the server");
  }
  if (s.at && (s.spread || s.layout.value_or(Layout::horizontal) != Layout::horizontal)) {
    return usage_error("--at has horizontal slices; allowed: neither --layout nor --spread");
  }
  if (s.claim_ms && *s.claim_ms < kShortestClaimMs) {
    return usage_error("--claim cannot be " + quoted(duration_text(*s.claim_ms)) +
                       "; allowed: 1s or more");
  }
  return {};
}

// Returns the questions that every record answers.
Result<Questions> questions_of(const Settings& settings, const RecordSyntax& syntax,
                               const std::optional<TreePlan>& tree) {
  const char* const allowed =
      syntax.format == Format::json
          ? "; allowed: paths such as user.id or /user/id"
          : "; allowed: numbers of columns from 1 on, or names with --header";
  Questions questions;
  for (std::size_t i = 1; tree && i < tree->levels.size(); ++i) {
    questions.places.push_back(tree->levels[i].key);
  }
  if (settings.key) {
    questions.key = parse_fields(syntax, *settings.key);
    if (questions.key.empty())
      return usage_error("--key cannot be " + quoted(*settings.key) + allowed);
  }
  if (settings.time_field) {
    questions.time = parse_field(syntax, *settings.time_field);
    if (!questions.time) {
      return usage_error("--time-field cannot be " + quoted(*settings.time_field) + allowed);
    }
  }
  if (!settings.input.header) SEMEL_TRY(find_columns(syntax, questions, std::nullopt));
  return questions;
}

Result<TreePlan> read_tree(const Settings& settings, const RecordSyntax& syntax) {
  const std::string text = SEMEL_TRY(read_file(*settings.tree));
  const auto parsed = parse_tree(text, syntax);
  if (!parsed) return usage_error(quoted(*settings.tree) + ' ' + parsed.error().message());
  const TreePlan& tree = *parsed;
  const auto levels = static_cast<double>(tree.levels.size());
  if (settings.error && !is_error_rate(*settings.error / levels)) {
    return usage_error("--error is divided among the levels of the tree; allowed for each: " +
                       std::string(kErrorRatesAllowed));
  }
  return tree;
}

// Returns all options that a state depends on.
StateOptions state_options(const Settings& s, double error, const std::optional<TreePlan>& tree) {
  const auto number = [](double x) {
    std::ostringstream out;
    out.precision(std::numeric_limits<double>::digits10);
    out << x;
    return out.str();
  };
  return {{"--format", word_of(kFormats, s.input.format)},
          {"--key", s.key.value_or("")},
          {"--delimiter", s.input.delimiter.value_or("")},
          {"--window", s.window_ms ? duration_text(*s.window_ms) : ""},
          {"--time-field", s.time_field.value_or("")},
          {"--exact", s.exact ? kFlag : ""},
          {"--error", s.exact ? "" : number(error)},
          {"--seed", std::to_string(s.seed)},
          {"--layout", word_of(kLayouts, s.layout.value_or(Layout::horizontal))},
          {"--slices", std::to_string(s.slice_count())},
          {"--spread", s.spread ? std::to_string(*s.spread) : ""},
          {"--tree", tree ? tree->text() : ""}};
}

// Returns the password for servers whose URL has none; empty if there is no password.
Result<std::string> find_password(const Settings& settings) {
  if (!settings.password_file) {
    std::string password;
    for (const char* const name : {"SEMEL_PASSWORD", "REDISCLI_AUTH"}) {
      const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads yet
      if (value != nullptr && password.empty()) password = value;
    }
    return password;
  }
  std::string password = SEMEL_TRY(read_file(*settings.password_file));
  password.resize(std::min(password.find_first_of("\r\n"), password.size()));
  if (!password.empty()) return password;
  return usage_error(
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

// Returns the shape of slices that are not horizontal.
Placement::Shape shape_of(const Settings& settings) {
  const std::uint32_t slices = settings.slice_count();
  const auto spread =
      static_cast<std::uint32_t>(settings.spread.value_or(std::min(kDefaultSpread, slices)));
  if (*settings.layout == Layout::vertical) return {SliceLayout::vertical, slices, 1, spread};
  // The groups are as square as they can be.
  std::uint32_t groups = 1;
  for (std::uint32_t i = 2; std::uint64_t{i} * i <= slices; ++i) {
    if (slices % i == 0) groups = i;
  }
  return {*settings.layout == Layout::diced ? SliceLayout::h_v : SliceLayout::v_h, groups,
          slices / groups, spread};
}

Result<std::unique_ptr<Judge>> judge_here(const Settings& settings, const Memory& memory,
                                          const std::optional<TreePlan>& tree) {
  auto judge = tree ? make_tree_judge(memory, *tree, nullptr)
               : settings.layout.value_or(Layout::horizontal) == Layout::horizontal
                   ? make_parallel_judge(memory, settings.slice_count())
                   : make_sliced_judge(memory, shape_of(settings));
  if (!judge) return judge.error().about("cannot make the filters");
  return judge;
}

Result<std::unique_ptr<Judge>> judge_of(const Settings& settings, const Memory& memory,
                                        const std::optional<TreePlan>& tree) {
  if (!settings.at && !(tree && tree->remote())) return judge_here(settings, memory, tree);
  const std::string password = SEMEL_TRY(find_password(settings));
  const RemoteSettings remote = remote_settings(settings, memory.error, password);
  if (settings.at) return make_remote_judge(*settings.at, settings.slice_count(), remote);
  return make_tree_judge(memory, *tree, &remote);
}

// Returns the longest time for which a key may be recognised. A tree that copies a recognised key
// keeps it from then on.
TimeMs longest_recognised(const Settings& settings, const std::optional<TreePlan>& tree) {
  const TimeMs window_ms = *settings.window_ms;
  const auto in_one = [&](bool remote) {
    return Window::longest_ms(
        {.structure = settings.exact ? Window::Structure::exact : Window::Structure::forgetful,
         .window_ms = window_ms,
         .fpr = settings.exact ? 0 : kDefaultError,
         .punctual = settings.exact && !remote});
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

// Returns the name of the input that is this file; nullopt if none is.
std::optional<std::string> input_that_is(const Settings& settings, const FileId& file) {
  for (const std::string& input : settings.input.files) {
    const bool standard = input == "-";
    if (file == (standard ? file_id(STDIN_FILENO) : file_id(input))) {
      return input_name(input);
    }
  }
  return std::nullopt;
}

// Returns true if writing to the file would change an input, or mix with another output.
bool in_use(const Settings& settings, const FileId& file) {
  return file == file_id(STDOUT_FILENO) || input_that_is(settings, file);
}

Error refused_file(const char* option, const std::string& path) {
  return usage_error(std::string(option) + " cannot be " + quoted(path) +
                     ", which is also read or written; allowed: a file of its own");
}

// Refuses files that are read or written twice. Called before any file is made.
Result<void> check_files(const Settings& settings) {
  // A file that is read and written at once would be read again and again.
  const auto out = settings.count ? std::nullopt : file_id(STDOUT_FILENO);
  if (const auto input = out ? input_that_is(settings, *out) : std::nullopt) {
    return usage_error("standard output is the same file as " + *input +
                       "; allowed: another file, or a pipe");
  }
  const auto used = [&](const std::optional<std::string>& path) {
    const auto id = path ? file_id(*path) : std::nullopt;
    return id && in_use(settings, *id);
  };
  if (used(settings.duplicates_to)) return refused_file("--duplicates-to", *settings.duplicates_to);
  const bool one = settings.state && settings.duplicates_to &&
                   name_one_file(*settings.state, *settings.duplicates_to);
  if (one || used(settings.state)) return refused_file("--state", *settings.state);
  return {};
}

// Opens the outputs, and empties the file for the duplicates.
Result<SiftOutputs> open_outputs(const Settings& settings) {
  SiftOutputs outputs;
  if (!settings.count) outputs.first.emplace(File::borrow(STDOUT_FILENO), "standard output");
  if (!settings.duplicates_to) return outputs;
  const std::string name = quoted(*settings.duplicates_to);
  std::error_code error;
  File file = File::open_to_write(*settings.duplicates_to, error);
  if (const auto id = file_id(file.fd()); id && in_use(settings, *id)) {
    return refused_file("--duplicates-to", *settings.duplicates_to);
  }
  if (!error) error = empty(file.fd());
  if (error) return io_error("write", name, error);
  outputs.duplicates.emplace(std::move(file), name);
  return outputs;
}

// Opens, locks and reads the state.
Result<void> open_state(const Settings& settings, const StateOptions& options, StateFile& state,
                        Judge& judge) {
  SEMEL_TRY(state.open(*settings.state));
  if (in_use(settings, state.id()) ||
      (settings.duplicates_to && file_id(*settings.duplicates_to) == state.id())) {
    return refused_file("--state", *settings.state);
  }
  return state.load(options, judge);
}

SiftPlan plan_of(const Settings& settings) {
  SiftPlan plan;
  plan.input = settings.input.plan(kName);
  plan.on_error = settings.on_error;
  plan.window_ms = settings.window_ms;
  plan.seed = settings.seed;
  plan.ids = settings.at.has_value();
  plan.threads = settings.threads.value_or(
      std::clamp<std::uint64_t>(std::thread::hardware_concurrency(), 1, kDefaultThreads));
  plan.checkpoint_ms = settings.checkpoint_ms.value_or(kDefaultCheckpointMs);
  plan.progress = !settings.summary.quiet && !settings.summary.json &&
                  ::isatty(STDERR_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 0;
  return plan;
}

Memory memory_of(const Settings& settings) {
  return {
      .window_ms = settings.window_ms,
      .exact = settings.exact,
      .error = settings.error.value_or(kDefaultError),
      .hash = Hasher::fast(settings.seed).id(),
      // Times in records begin with the first one.
      .now_ms = settings.time_field ? std::numeric_limits<TimeMs>::min() : SystemClock().now_ms()};
}

// Fills in the figures that the run has not counted.
void complete(SiftReport& report, const Settings& settings, const std::optional<TreePlan>& tree,
              const Judge& judge) {
  report.exact = settings.exact;
  report.window_ms = settings.window_ms;
  if (settings.window_ms) report.longest_ms = longest_recognised(settings, tree);
  report.trust = judge.trust();
  report.details = judge.details();
  report.json_details = judge.json_details();
  // n keys make n^2 / 2 pairs, each of equal digests with probability 2^-128.
  if (settings.exact) report.trust.error_now = static_cast<double>(report.first) * 0x1p-129;
  report.error_bound =
      settings.exact ? report.trust.error_now : settings.error.value_or(kDefaultError);
}

Result<Exit> sift(Settings settings) {
  SEMEL_TRY(check_options(settings));
  if (settings.input.files.empty()) settings.input.files.emplace_back("-");
  SEMEL_TRY(check_files(settings));
  SiftPlan plan = plan_of(settings);
  std::optional<TreePlan> tree;
  if (settings.tree) tree = SEMEL_TRY(read_tree(settings, plan.input.syntax));
  SEMEL_TRY(check_remote_options(settings, tree && tree->remote()));
  plan.input.questions = SEMEL_TRY(questions_of(settings, plan.input.syntax, tree));

  const Memory memory = memory_of(settings);
  const std::unique_ptr<Judge> judge = SEMEL_TRY(judge_of(settings, memory, tree));
  StateFile state;
  const StateOptions options = state_options(settings, memory.error, tree);
  if (settings.state) SEMEL_TRY(open_state(settings, options, state, *judge));
  SiftOutputs outputs = SEMEL_TRY(open_outputs(settings));

  SiftReport report;
  const SiftEnd end =
      run_sift(plan, *judge, outputs, settings.state ? &state : nullptr, options, report);
  if (!end.sound) return Exit::failure;
  complete(report, settings, tree, *judge);
  if (!settings.summary.quiet) {
    (void)write_all(STDERR_FILENO, settings.summary.json ? report.json() : report.summary());
  }
  if (settings.count && print(kName, report.counts()) != Exit::success) return Exit::failure;
  if (end.signal != 0) die_of(end.signal);
  return end.complete ? Exit::success : Exit::failure;
}

// Reads a URL. No message repeats the password in it, whatever is wrong with the rest.
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
      "Reads the FILEs, or standard input if there are none; - is standard input. A line is all "
      "bytes before a newline; the last line may lack it.\n"
      "A key that came before, within the window if there is one, is always dropped. A new key is "
      "wrongly dropped with a probability of at most E, however many there are. A summary on "
      "standard error says how many that may have been; a terminal also shows the progress.\n"
      "Exits with 0, with 1 if a file or a line could not be read or written, with 2 if an option "
      "is wrong.",
      {format_option(settings->input, kFormats),
       {"key", 'k', text_value("FIELDS", "fields with commas between them", settings->key),
        "the fields that make two records equal: columns by number or name, JSON fields by path, "
        "with commas between them (default: the whole record)"},
       header_option(settings->input, "; the header of the first file is written"),
       delimiter_option(settings->input),
       {"window", 'w', duration_value("TIME", settings->window_ms),
        "recognise a key for this long after it was written, then forget it: at once with --exact, "
        "otherwise before as much time has passed again (default: never forget)"},
       {"time-field", 'T', text_value("FIELD", "a field", settings->time_field),
        "take the time from this field, not from the clock: seconds, milli-, micro- or nanoseconds "
        "since 1970, or ISO 8601"},
       {"error", 'e', error_rate_value(settings->error),
        "the probability, at most, that a new key is wrongly dropped (default 1e-6)"},
       {"exact", 'x', flag_value(settings->exact),
        "keep a digest of 128 bits of each key instead: 21 to 43 bytes each, 33 to 63 with a "
        "window. A new key is dropped only if its digest equals another; 1.5e-25 are expected in "
        "ten million keys that nobody chose to collide"},
       {"state", 'S', path_value("FILE", settings->state),
        "go on from the state in FILE, and save it there at the end, also after Ctrl-C or SIGHUP"},
       {"checkpoint", 'C', duration_value("TIME", settings->checkpoint_ms),
        "save the state this often, or less often if saving would take a tenth of the time "
        "(default 10s)"},
       {"duplicates-to", 'd', path_value("FILE", settings->duplicates_to),
        "write the records that are dropped to FILE, in input order"},
       {"count", 'c', flag_value(settings->count), "write counts instead of the lines"},
       {"on-error", 'E',
        choice_value(
            "ACTION", settings->on_error,
            std::vector<std::pair<std::string, OnError>>{
                {"stop", OnError::stop}, {"skip", OnError::skip}, {"pass", OnError::pass}}),
        "what to do with a record without its key, or too old for the window: stop, skip it, or "
        "pass it on (default stop)"},
       {"threads", 't', count_value("N", settings->threads, 1, kMostThreads),
        "how many threads to use; the output does not depend on it (default: one for each "
        "processor, at most 8)"},
       {"layout", 'L', choice_value("LAYOUT", settings->layout, kLayouts),
        "how keys are spread over slices: horizontal (each in one), vertical (each in several), "
        "diced (several of one group) or diced-vh (default horizontal)"},
       {"slices", 'n', count_value("N", settings->slices, 1, kMostSlices),
        "how many slices the filter has (default 16)"},
       {"spread", 'p', count_value("N", settings->spread, 1, Placement::kMostSpread),
        "how many slices know a key, unless they are horizontal (default 4)"},
       {"tree", 'r', path_value("FILE", settings->tree),
        "sift through a tree of filters, from the edge to the root, whose levels FILE names"},
       {"at", 'a', url_value(settings->at),
        "keep the memory at a server with the module semel.so, or spread over the primaries of a "
        "Redis Cluster, for any number of producers at once"},
       {"password-file", 'P', path_value("FILE", settings->password_file),
        "the password for URLs without one is the first line of FILE (default: the value of "
        "SEMEL_PASSWORD or REDISCLI_AUTH in the environment)"},
       {"stream", 'N', text_value("NAME", "a name", settings->stream),
        "the name of the stream at the server: producers of one stream share its memory"},
       {"delivery", 'l', choice_value("MODE", settings->delivery, kDeliveries),
        "after a crash, a record on its way may be written again (at-least-once) or be lost "
        "(at-most-once) (default at-least-once)"},
       {"claim", 'm', duration_value("TIME", settings->claim_ms),
        "how long other producers wait for a record on its way if this one stands still (default "
        "1m)"},
       {"replicas", 'R', count_value("N", settings->replicas, 0, kMostReplicas),
        "how many replicas have to know an answer before it counts (default 1 if every primary has "
        "a replica)"},
       {"seed", 's', count_value("N", settings->seed, 0, UINT64_MAX),
        "the seed of the digests: with another one, other lines are wrongly dropped (default 0)"}}};
  append(syntax.options, options_of(settings->summary));
  syntax.operands = {paths_value("FILE", settings->input.files), 0, SIZE_MAX};
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
