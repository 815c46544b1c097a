// semel serve-sync: the end of a sync that answers, on standard input and output.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>

#include "cli/commands.h"
#include "cli/directory.h"
#include "cli/stop_signal.h"
#include "cli/store_options.h"
#include "cli/sync_pipe.h"
#include "semel/sync/responder.h"

namespace semel::cli {
namespace {

constexpr const char* kName = "semel serve-sync";

struct Settings {
  std::string directory;
  RangeOptions range;
  IndexOptions index;
  std::string column_family = kDefaultColumnFamily;
  DirectoryPlaces places;
  bool read_only = false;
  bool secondary = false;
  bool no_checkpoint = false;
  TimeMs timeout_ms = kDefaultTimeoutMs;

  SyncLimits limits() const {
    SyncLimits limits;
    limits.frame_bytes = static_cast<std::uint32_t>(index.frame_bytes);
    return limits;
  }
  Access access() const {
    if (secondary) return Access::read_along;
    return read_only ? Access::read : Access::write;
  }
};

Exit refuse(const std::string& text) {
  complain(kName, text);
  return Exit::usage;
}

Exit fail(const std::string& text) {
  complain(kName, text);
  return Exit::failure;
}

// Answers frames until no more come. Returns false if a signal stopped it.
Result<bool> answer_all(Responder& responder, SyncPipe& pipe, const StopSignal& stop) {
  while (const std::optional<Bytes> request = SEMEL_TRY(pipe.receive())) {
    SEMEL_TRY(pipe.send(responder.respond(*request)));
    // Answers that nobody takes must not pile up.
    if (!SEMEL_TRY(pipe.flush())) return false;
  }
  return stop.received() == 0;
}

// Ends this process although it is busy, because nobody waits for its work any more. The directory
// survives this as it survives a kill.
[[noreturn]] void abandon(const Error& error, int signal) {
  if (signal != 0) die_of(signal);
  complain(kName, error.message());
  std::_Exit(static_cast<int>(Exit::failure));
}

Result<std::unique_ptr<Directory>> open_indexed(const Settings& settings) {
  const Secret secret = SEMEL_TRY(read_secret(settings.index.key_file));
  std::unique_ptr<Directory> directory = SEMEL_TRY(Directory::open(
      settings.directory, settings.access(), settings.column_family, settings.places));
  SEMEL_TRY(directory->build_index(secret, static_cast<std::uint32_t>(settings.index.burst_bytes)));
  if (settings.index.scrub) SEMEL_TRY(directory->scrub_index(kName, true));
  return directory;
}

// Opens the directory, answers all frames, and closes the directory.
Exit serve_on(SyncPipe& pipe, const StopSignal& stop, const Settings& settings,
              const KeyRange& range) {
  const Result<std::unique_ptr<Directory>> opened = open_indexed(settings);
  if (!opened) return fail(opened.error().message());
  const std::unique_ptr<Directory>& directory = *opened;

  const bool read_only = settings.access() != Access::write;
  Responder responder(directory->index(), {range, read_only, Resolver{}, settings.limits()});
  const Result<bool> answered = answer_all(responder, pipe, stop);

  if (!answered) complain(kName, answered.error().message());
  Result<void> saved;
  if (!read_only && !settings.no_checkpoint) saved = directory->save_index();
  if (const Result<void> closed = directory->close(); saved) saved = closed;
  if (!saved) return fail(saved.error().message());
  if (!answered) return Exit::failure;
  if (!*answered) die_of(stop.received());
  pipe.send_end();
  (void)pipe.flush();  // a peer that was stopped does not wait for this
  return directory->rotten() ? Exit::failure : Exit::success;
}

Exit serve(const Settings& settings) {
  if (::isatty(STDIN_FILENO) == 1) {
    return refuse("standard input is a terminal; allowed: the pipe of 'semel sync --via'");
  }
  const std::optional<KeyRange> range = settings.range.range();
  if (!range) return refuse(kEmptyRange);
  (void)std::signal(SIGPIPE, SIG_IGN);  // a peer that is gone is an error to report
  // The peer hears from this end, and this end notices when the peer dies, while the directory is
  // opened and read.
  const StopSignal stop;
  SyncPipe pipe({STDIN_FILENO, STDOUT_FILENO, PipeRole::answers, settings.limits().frame_bytes,
                 settings.timeout_ms},
                stop, abandon);
  const Exit exit = serve_on(pipe, stop, settings, *range);
  // A peer that has heard the hello knows that it was this command that failed.
  if (exit != Exit::success) pipe.linger();
  return exit;
}

}  // namespace

Command serve_sync_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{
      "semel serve-sync",
      "Answers a sync, a diff or a plan from another host, over a pipe",
      "The command of --via runs it on the other host. It ends when the other end has ended, or "
      "has been silent for too long. Standard input and output are the pipe; errors go to "
      "standard error.\n"
      "Exits with 0, with 1 if the directory or the pipe failed, or if --scrub found the index "
      "wrong, with 2 if an option is wrong.",
      {}};
  append(syntax.options, options_of(settings->range));
  append(syntax.options, {column_family_option(settings->column_family)});
  append(syntax.options, options_of(settings->places));
  append(syntax.options, options_of(settings->index));
  append(syntax.options,
         {timeout_option(settings->timeout_ms),
          {"read-only", 'r', flag_value(settings->read_only),
           "refuse to write; enough for a diff and a plan"},
          {"secondary", 's', flag_value(settings->secondary),
           "read-only, for a directory that another process is using, in its present state"},
          {"no-checkpoint", 0, flag_value(settings->no_checkpoint),
           "do not leave the index in the directory for the next time"}});
  syntax.operands = {directory_value("DIRECTORY", settings->directory), 1, 1};
  syntax.examples = {
      {"semel sync a --via 'ssh host semel serve-sync /data/b'", "over a network"},
      {"semel diff a --via 'ssh host semel serve-sync -r /data/b'", "changes nothing there"}};
  return {"serve-sync", std::move(syntax), [settings] { return serve(*settings); }};
}

}  // namespace semel::cli
