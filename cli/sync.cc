// semel sync, semel diff and semel plan compare two directories for three purposes.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <random>

#include "cli/commands.h"
#include "cli/differences.h"
#include "cli/directory.h"
#include "cli/escaped.h"
#include "cli/files.h"
#include "cli/peer_process.h"
#include "cli/stop_signal.h"
#include "cli/store_options.h"
#include "cli/sync_pipe.h"
#include "cli/sync_report.h"
#include "cli/sync_run.h"
#include "semel/sync/responder.h"

namespace semel::cli {
namespace {

// Between two directories on one machine, sending a frame costs no more than copying its bytes.
constexpr SyncLink kLocalLink{.round_trip_seconds = 1e-5, .bytes_per_second = 1e9};

const std::vector<std::pair<std::string, SyncRule>> kRules = {
    {"join", SyncRule::join},
    {"newest", SyncRule::newest},
    {"source", SyncRule::source},
    {"destination", SyncRule::destination}};
const std::vector<std::pair<std::string, SyncWay>> kWays = {{"walk", SyncWay::walk},
                                                            {"sketch", SyncWay::sketch},
                                                            {"list", SyncWay::list},
                                                            {"copy", SyncWay::copy}};

struct Settings {
  std::string name;  // of the subcommand
  SyncPurpose purpose = SyncPurpose::repair;
  Exit failure = Exit::failure;

  std::vector<std::string> directories;
  std::optional<std::string> via;
  RangeOptions range;
  IndexOptions index;
  std::string column_family = kDefaultColumnFamily;
  DirectoryPlaces places_a = {};
  DirectoryPlaces places_b = {.suffix = "-b"};
  std::optional<SyncWay> way;
  std::optional<TimeMs> latency_ms;
  std::optional<std::uint64_t> bandwidth;
  std::optional<std::uint64_t> stretch;
  TimeMs timeout_ms = kDefaultTimeoutMs;
  bool secondary = false;
  bool json = false;
  bool progress = false;
  bool quiet = false;

  // For sync only.
  std::optional<std::string> resume_from;
  SyncRule rule = SyncRule::join;
  bool remove_extra = false;
  bool reverse = false;
  bool dry_run = false;
  bool no_checkpoint = false;

  // For diff only.
  bool zero = false;
  bool count = false;

  bool writes() const { return purpose == SyncPurpose::repair && !dry_run; }
};

Exit refuse(const Settings& settings, const std::string& text) {
  complain(settings.name, text);
  return Exit::usage;
}

Exit fail(const Settings& settings, const std::string& text) {
  complain(settings.name, text);
  return settings.failure;
}

// Refuses options that contradict each other.
Result<void> check_options(const Settings& s) {
  if (s.directories.size() == 1 && !s.via) {
    return usage_error("the second DIRECTORY is missing; allowed: two of them, or one and --via");
  }
  if (s.directories.size() == 2 && s.via) {
    return usage_error(
        "--via stands for the second DIRECTORY; allowed: two of them, or one and --via");
  }
  if (s.via && (s.places_b.wal_dir || !s.places_b.db_paths.empty())) {
    return usage_error(
        "--wal-dir-b and --db-path-b are for a second DIRECTORY; allowed with --via: --wal-dir "
        "and --db-path of 'semel serve-sync'");
  }
  if (!s.via && same_directory(s.directories[0], s.directories[1])) {
    return usage_error(quoted(s.directories[0]) + " and " + quoted(s.directories[1]) +
                       " are one directory; allowed: two of them");
  }
  if (s.quiet && (s.json || s.progress)) {
    return exclusive("--quiet", s.json ? "--json" : "--progress");
  }
  if (s.zero && (s.json || s.count)) {
    return exclusive("--zero", s.json ? "--json" : "--count");
  }
  if (s.remove_extra && s.rule != SyncRule::source) {
    return usage_error("--delete needs a source; allowed: with --rule source");
  }
  if (s.reverse && s.rule != SyncRule::source && s.rule != SyncRule::destination) {
    return usage_error("--reverse needs a source; allowed: with --rule source or destination");
  }
  return {};
}

SyncSettings sync_settings(const Settings& s, KeyRange range) {
  SyncSettings out;
  out.purpose = s.dry_run ? SyncPurpose::diff : s.purpose;
  out.range = std::move(range);
  out.resolver.rule = s.rule;
  out.resolver.role = s.reverse ? SyncRole::responder_is_source : SyncRole::initiator_is_source;
  out.resolver.remove_extra = s.remove_extra;
  if (!s.via) out.link = kLocalLink;
  if (s.latency_ms) out.link.round_trip_seconds = static_cast<double>(*s.latency_ms) / 1000;
  if (s.bandwidth) out.link.bytes_per_second = static_cast<double>(*s.bandwidth);
  out.way = s.way;
  out.limits.frame_bytes = static_cast<std::uint32_t>(s.index.frame_bytes);
  if (s.stretch) out.limits.stretch_records = *s.stretch;
  // A plan keeps nothing in memory.
  if (s.purpose == SyncPurpose::plan) out.limits.stretch_records = UINT64_MAX;
  std::random_device device;
  out.seed = std::uint64_t{device()} << 32 | device();
  return out;
}

ProgressForm progress_form(const Settings& s) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (s.progress) return terminal ? ProgressForm::terminal : ProgressForm::lines;
  // Other lines on the terminal would tear the progress line.
  const bool alone = s.purpose != SyncPurpose::diff || ::isatty(STDOUT_FILENO) == 0;
  return terminal && alone && !s.quiet && !s.json ? ProgressForm::terminal : ProgressForm::none;
}

// The two ends of a sync.
class Ends {
 public:
  explicit Ends(const Settings& settings) : settings_(settings) {}

  // Opens both ends before it reads the first: a second end that cannot be opened is reported at
  // once, and a peer can read its own directory meanwhile.
  Result<void> open() {
    const Secret secret = SEMEL_TRY(read_secret(settings_.index.key_file));
    const Access access = settings_.writes()    ? Access::write
                          : settings_.secondary ? Access::read_along
                                                : Access::read;
    a_ = SEMEL_TRY(Directory::open(settings_.directories[0], access, settings_.column_family,
                                   settings_.places_a));
    if (settings_.via) {
      SEMEL_TRY(start_peer());
    } else {
      b_ = SEMEL_TRY(Directory::open(settings_.directories[1], access, settings_.column_family,
                                     settings_.places_b));
    }
    for (Directory* directory : {a_.get(), b_.get()}) {
      if (!directory) continue;
      const auto burst = static_cast<std::uint32_t>(settings_.index.burst_bytes);
      SEMEL_TRY(directory->build_index(secret, burst));
      if (settings_.index.scrub) {
        SEMEL_TRY(directory->scrub_index(settings_.name, settings_.quiet || settings_.json));
      }
    }
    return {};
  }

  SyncEnd run(SyncSettings sync, Differences* differences) {
    if (!stop_) stop_.emplace();
    const ProgressForm progress = progress_form(settings_);
    if (b_) {
      Responder responder(b_->index(),
                          {KeyRange::all(), !settings_.writes(), sync.resolver, sync.limits});
      LocalPeer peer(responder);
      SyncEnd end = run_sync(a_->index(), std::move(sync), peer, *stop_, progress, differences);
      if (end.stopped()) signal_ = stop_->received();
      stop_.reset();  // from here on a signal kills
      return end;
    }
    SyncEnd end = run_sync(a_->index(), std::move(sync), *pipe_, *stop_, progress, differences);
    if (end.stopped()) signal_ = stop_->received();
    return end;
  }

  // Saves the indexes, closes the directories and ends the command. Reports problems; returns false
  // if there were any.
  bool close(bool complete) {
    bool sound = true;
    if (pipe_) pipe_->send_end();  // the peer closes its directory meanwhile
    for (Directory* directory : {a_.get(), b_.get()}) {
      if (!directory) continue;
      Result<void> saved;
      if (settings_.writes() && !settings_.no_checkpoint) saved = directory->save_index();
      if (const Result<void> closed = directory->close(); saved) saved = closed;
      if (saved) continue;
      complain(settings_.name, saved.error().message());
      sound = false;
    }
    return (!process_ || end_peer(complete)) && sound;
  }

  // Reports each directory that has failed.
  void tell_problems() const {
    for (const Directory* directory : {a_.get(), b_.get()}) {
      if (directory == nullptr) continue;
      const Result<void> health = directory->health();
      if (!health) complain(settings_.name, health.error().message());
    }
  }

  int signal() const { return signal_; }  // the signal that stopped the run, or 0
  // Returns true if the index of a directory was wrong.
  bool rotten() const { return a_->rotten() || (b_ && b_->rotten()); }

 private:
  // Starts the command, and from then on speaks with its other end.
  Result<void> start_peer() {
    stop_.emplace();
    std::error_code error;
    process_ = PeerProcess::start(*settings_.via, error);
    if (!process_) return Error{Errc::io, cannot("start", quoted(*settings_.via), error)};
    pipe_ = std::make_unique<SyncPipe>(
        SyncPipe::Settings{process_->from(), process_->to(), PipeRole::asks,
                           static_cast<std::uint32_t>(settings_.index.frame_bytes),
                           settings_.timeout_ms},
        *stop_, [this](const Error& why, int signal) { abandon(why, signal); });
    return {};
  }

  // Ends this process although it is busy, and the command with it.
  [[noreturn]] void abandon(const Error& error, int signal) {
    if (signal == 0) complain(settings_.name, error.message());
    (void)process_->terminate();
    if (signal != 0) die_of(signal);
    std::_Exit(static_cast<int>(settings_.failure));
  }

  // Waits until the peer has closed its directory, if the sync is complete, and ends the command.
  // Reports problems; returns false if there were any.
  bool end_peer(bool complete) {
    const Result<bool> waited = complete ? pipe_->wait_for_end() : Result<bool>(false);
    const bool ended = waited && *waited;
    if (!waited) complain(settings_.name, waited.error().message());
    if (complete && waited && !ended) signal_ = stop_->received();
    if (waited && !ended) pipe_->linger();
    pipe_.reset();
    const Result<void> over =
        ended ? process_->finish(std::chrono::milliseconds(settings_.timeout_ms), *stop_)
              : process_->terminate();
    if (!over) complain(settings_.name, quoted(*settings_.via) + ' ' + over.error().message());
    return ended && over;
  }

  const Settings& settings_;
  std::unique_ptr<Directory> a_;
  std::unique_ptr<Directory> b_;          // or
  std::optional<StopSignal> stop_;        // while there is somebody to tell
  std::unique_ptr<PeerProcess> process_;  // the way to it
  std::unique_ptr<SyncPipe> pipe_;        // through that
  int signal_ = 0;
};

// Returns the text in quotes for a shell. A key is untrusted and may hold a quote, which the option
// takes as \x27.
std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char one : text) word += one == '\'' ? "\\x27" : std::string(1, one);
  return word + '\'';
}

// Tells the user how to go on with the part that is not done.
void tell_where_to_resume(const Settings& settings, const std::string& resume_from,
                          const KeyRange& range) {
  if (settings.purpose == SyncPurpose::plan) return;
  complain(settings.name, resume_from <= range.first ? "no part of the range is done"
                                                     : "to continue, add --resume-from " +
                                                           shell_word(escaped(resume_from)));
}

std::string counts(const Differences& differences) {
  return "only_a " + std::to_string(differences.only_a()) + "\nonly_b " +
         std::to_string(differences.only_b()) + "\nchanged " +
         std::to_string(differences.changed()) + '\n';
}

Exit print_report(const Settings& settings, const SyncEnd& end, const Differences& differences) {
  if (settings.purpose == SyncPurpose::plan) {
    const PlanSummary summary{*end.report};
    return print(settings.name, settings.json ? summary.json() : summary.text());
  }
  if (settings.count && !settings.json &&
      print(settings.name, counts(differences)) != Exit::success) {
    return Exit::failure;
  }
  const SyncSummary summary{*end.report, end.seconds, settings.writes()};
  if (settings.json) return print(settings.name, summary.json());
  if (!settings.quiet) (void)write_all(STDERR_FILENO, summary.text());
  return Exit::success;
}

Exit compare(const Settings& settings) {
  if (const Result<void> sound = check_options(settings); !sound) {
    return refuse(settings, sound.error().message());
  }
  std::optional<KeyRange> range = settings.range.range();
  if (range && settings.resume_from) {
    range = intersection(*range, KeyRange{*settings.resume_from, std::nullopt});
  }
  if (!range || range->empty()) return refuse(settings, kEmptyRange);
  // A dead peer is an error to report, and must not end the process.
  if (settings.via) (void)std::signal(SIGPIPE, SIG_IGN);

  Ends ends(settings);
  if (const Result<void> opened = ends.open(); !opened) {
    return fail(settings, opened.error().message());
  }
  Differences differences(settings.count  ? Differences::Form::none
                          : settings.json ? Differences::Form::json
                          : settings.zero ? Differences::Form::zero
                                          : Differences::Form::lines,
                          STDOUT_FILENO);
  const SyncEnd end = ends.run(sync_settings(settings, *range),
                               settings.purpose == SyncPurpose::diff ? &differences : nullptr);
  const bool unread = differences.error() == std::errc::broken_pipe;
  if (!end.report && !unread) {
    ends.tell_problems();
    complain(settings.name, end.report.error().message());
  }
  const bool closed = ends.close(end.complete());
  if (settings.via) (void)std::signal(SIGPIPE, SIG_DFL);
  if (unread) die_of(SIGPIPE);
  if (!end.complete()) tell_where_to_resume(settings, end.resume_from, *range);
  if (!end.report) return settings.failure;
  if (differences.error()) {
    return fail(settings, cannot("write", "standard output", differences.error()));
  }

  if (print_report(settings, end, differences) != Exit::success) {
    return settings.failure;
  }
  if (ends.signal() != 0) die_of(ends.signal());
  if (!closed) return settings.failure;
  if (settings.purpose == SyncPurpose::plan)
    return ends.rotten() ? settings.failure : Exit::success;
  if (!end.report->proved) {
    return fail(settings, "what was found does not explain the whole difference; try again");
  }
  if (!settings.writes() && end.report->differences() > 0) return Exit::different;
  return ends.rotten() ? settings.failure : Exit::success;
}

void append_common(Syntax& syntax, Settings& s) {
  append(syntax.options,
         {{"via", 'v',
           value_of("COMMAND", "a command for the shell", s.via,
                    [](std::string_view text) {
                      return text.empty() ? std::nullopt : std::optional(std::string(text));
                    }),
           "B is at the other end of COMMAND, which runs 'semel serve-sync' there"}});
  append(syntax.options, options_of(s.range));
  append(syntax.options, {column_family_option(s.column_family)});
  append(syntax.options, options_of(s.places_a, " of A"));
  append(syntax.options, options_of(s.places_b, " of B"));
  append(syntax.options, options_of(s.index));
  append(syntax.options,
         {timeout_option(s.timeout_ms),
          {"latency", 'l', duration_value("TIME", s.latency_ms),
           "how long a round trip takes, which the plan needs (default 20ms with --via)"},
          {"bandwidth", 'b', bytes_value("SIZE", s.bandwidth, 1, std::uint64_t{1} << 40),
           "how many bytes a second the link to B takes (default 250kB with --via)"}});
}

Option stretch_option(Settings& s) {
  return {"stretch", 'S', count_value("N", s.stretch, 1, std::uint64_t{1} << 40),
          "look for N differing records at a time, which bounds the memory (default 1M)"};
}

Option way_option(Settings& s) {
  return {"way", 'w', choice_value("WAY", s.way, kWays),
          "walk, sketch, list or copy (default: what the plan finds cheapest)"};
}

Option secondary_option(Settings& s) {
  return {"secondary", 's', flag_value(s.secondary),
          "open directories that another process is using, in their present state"};
}

void append_output(Syntax& syntax, Settings& s) {
  append(syntax.options,
         {{"progress", 'P', flag_value(s.progress),
           "show progress on standard error, even if that is not a terminal"},
          {"quiet", 'q', flag_value(s.quiet), "no summary; errors are still reported"},
          {"json", 'j', flag_value(s.json), "all output as JSON objects, one a line"}});
}

Command command(std::string word, const std::shared_ptr<Settings>& settings, Syntax syntax) {
  settings->name = syntax.name;
  syntax.operands = {directories_value("DIRECTORY", settings->directories), 1, 2};
  Command out{std::move(word), std::move(syntax), [settings] { return compare(*settings); }};
  out.failure = settings->failure;
  return out;
}

}  // namespace

Command sync_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{
      "semel sync",
      "Makes two RocksDB directories equal, at a cost in proportion to their difference",
      "The first DIRECTORY is A. The second, or the one behind --via, is B. A summary on "
      "standard error says what was found and written, and compares the cost with the "
      "prediction.\n"
      "Each side gets the records that it lacks. If a key has two values, --rule decides: "
      "join, both get the greater in the order of bytes; newest, both get the one with the "
      "later time in its first eight bytes; source, both have that of A; destination, each "
      "keeps its own.\n"
      "Ctrl-C stops at any time, and says how to go on. Exits with 0 if all is in sync, "
      "with 1 if not, or if --scrub found an index wrong, with 2 if an option is wrong.",
      {}};
  append_common(syntax, *settings);
  append(syntax.options,
         {{"rule", 'r', choice_value("RULE", settings->rule, kRules),
           "join, newest, source or destination (default join)"},
          {"delete", 'd', flag_value(settings->remove_extra),
           "with --rule source: remove records that the source does not have from the destination"},
          {"reverse", 'R', flag_value(settings->reverse), "B is the source, A the destination"},
          {"dry-run", 'n', flag_value(settings->dry_run),
           "find what differs and change nothing; exits with 1 if anything differs"},
          {"resume-from", 'C', escaped_value("KEY", settings->resume_from),
           "skip the keys before this one, which a stopped sync has done"},
          {"no-checkpoint", 0, flag_value(settings->no_checkpoint),
           "do not leave the index in the directories for the next time"},
          way_option(*settings),
          stretch_option(*settings)});
  append_output(syntax, *settings);
  syntax.examples = {
      {"semel sync /data/a /data/b", "each gets the records that it lacks"},
      {"semel sync /data/a --via 'ssh host semel serve-sync /data/b'", "over a network"},
      {"semel sync --rule source --delete /data/a /backup/a",
       "makes the second equal to the first"}};
  return command("sync", settings, std::move(syntax));
}

Command diff_command() {
  auto settings = std::make_shared<Settings>();
  settings->purpose = SyncPurpose::diff;
  settings->failure = Exit::trouble;
  Syntax syntax{"semel diff",
                "Writes the keys in which two RocksDB directories differ, and changes nothing",
                "The first DIRECTORY is A. The second, or the one behind --via, is B. A line is '< "
                "KEY' for a key that only A has, '> KEY' for one that only B has, '! KEY' for one "
                "with different values. Keys come in order; bytes that are not printable ASCII "
                "are \\xNN.\n"
                "Exits with 0 if there is no difference, with 1 if there is, with 2 if there was "
                "trouble, or if --scrub found an index wrong and no difference.",
                {}};
  append_common(syntax, *settings);
  append(syntax.options,
         {way_option(*settings),
          stretch_option(*settings),
          secondary_option(*settings),
          {"zero", 'z', flag_value(settings->zero),
           "write the mark, a blank, the raw key and a zero byte, for scripts"},
          {"count", 'c', flag_value(settings->count), "write the counts instead of the keys"}});
  append_output(syntax, *settings);
  syntax.examples = {{"semel diff /data/a /backup/a", "is the backup complete?"},
                     {"semel diff -q -c --prefix user/ a b", "how many keys of users differ"}};
  return command("diff", settings, std::move(syntax));
}

Command plan_command() {
  auto settings = std::make_shared<Settings>();
  settings->purpose = SyncPurpose::plan;
  Syntax syntax{
      "semel plan",
      "Estimates how two RocksDB directories differ, and what a sync would cost",
      "The first DIRECTORY is A. The second, or the one behind --via, is B. One round "
      "trip, or a few, give an estimate of the difference. A line for each way to find it "
      "gives the bytes, without and of records, the round trips and the seconds. The "
      "number after +- is a standard error.",
      {}};
  append_common(syntax, *settings);
  append(syntax.options, {secondary_option(*settings),
                          {"json", 'j', flag_value(settings->json), "as one JSON object"}});
  syntax.examples = {{"semel plan -l 40ms -b 2M /data/a --via 'ssh host semel serve-sync /data/b'",
                      "over a slow link"}};
  return command("plan", settings, std::move(syntax));
}

}  // namespace semel::cli
