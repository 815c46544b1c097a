#include "cli/sync_run.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/sync_report.h"

namespace semel::cli {
namespace {

using std::chrono::steady_clock;
constexpr auto kProgressEvery = std::chrono::milliseconds(250);

class Progress {
 public:
  // A terminal shows nothing of a sync that is over at once. Lines are shown at least once.
  explicit Progress(ProgressForm form)
      : form_(form), next_(form == ProgressForm::lines ? start_ : start_ + kProgressEvery) {}

  double seconds() const {
    return std::chrono::duration<double>(steady_clock::now() - start_).count();
  }
  void show(const SyncProgress& now_at) {
    const auto now = steady_clock::now();
    if (form_ == ProgressForm::none || now < next_) return;
    next_ = now + kProgressEvery;
    const bool terminal = form_ == ProgressForm::terminal;
    (void)write_all(STDERR_FILENO,
                    progress_text(now_at, seconds()) + (terminal ? "\033[K\r" : "\n"));
    shown_ = terminal;
  }
  // Removes the line from the terminal. Call it before anything else is written there.
  void hide() {
    if (std::exchange(shown_, false)) (void)write_all(STDERR_FILENO, "\033[K");
  }

 private:
  const ProgressForm form_;
  const steady_clock::time_point start_ = steady_clock::now();
  steady_clock::time_point next_;
  bool shown_ = false;
};

// Quotes what the peer said, which is untrusted.
Error for_people(const Error& error) {
  if (error.what != std::string_view(kPeerRefuses)) return error;
  return {error.code, error.what, quoted(error.detail())};
}

}  // namespace

SyncEnd run_sync(IndexedStore& index, SyncSettings settings, SyncPeer& peer, const StopSignal& stop,
                 ProgressForm form, Differences* differences) {
  Progress progress(form);
  SyncEnd end{SyncReport(), 0, settings.range.first};
  if (differences) {
    settings.on_difference = [&](std::string_view key, DifferenceSide where) {
      differences->add(key, where);
    };
  }
  settings.on_progress = [&](const SyncProgress& now) {
    end.resume_from = now.resume_from;
    if (differences) {
      differences->settle_before(now.resume_from);
      if (differences->error()) return false;
    }
    progress.show(now);
    return stop.received() == 0;
  };
  end.report = sync(index, peer, settings);
  if (!end.report) end.report = for_people(end.report.error());
  if (differences && end.complete()) differences->settle_all();
  if (differences) differences->flush();
  if (differences && differences->error() && end.stopped()) {
    end.report = Error(Errc::io, cannot("write", "standard output", differences->error()));
  }
  progress.hide();
  end.seconds = progress.seconds();
  return end;
}

}  // namespace semel::cli
