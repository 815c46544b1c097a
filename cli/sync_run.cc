#include "cli/sync_run.h"

#include <chrono>
#include <utility>

#include "cli/commands.h"
#include "cli/sync_report.h"

namespace semel::cli {
namespace {

constexpr auto kProgressEvery = std::chrono::milliseconds(250);

// Quotes what the peer said, which is untrusted.
Error for_people(const Error& error) {
  if (!error.from_peer) return error;
  return {error.code, "the peer refuses", quoted(error.detail())};
}

}  // namespace

SyncEnd run_sync(IndexedStore& index, SyncSettings settings, SyncPeer& peer, const StopSignal& stop,
                 ProgressForm form, Differences* differences) {
  ProgressLine progress(form, kProgressEvery);
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
    if (progress.due()) progress.show(progress_text(now, progress.seconds()));
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
