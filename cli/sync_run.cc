#include "cli/sync_run.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/sync_report.h"
#include "semel/core/assert.h"
#include "semel/sync/initiator.h"

namespace semel::cli {
namespace {

using std::chrono::steady_clock;
constexpr auto kProgressEvery = std::chrono::milliseconds(250);

class Progress {
 public:
  // A terminal is spared what is over at once; whoever asked for lines gets one at least.
  explicit Progress(ProgressForm form)
      : form_(form), next_(form == ProgressForm::lines ? start_ : start_ + kProgressEvery) {}

  double seconds() const {
    return std::chrono::duration<double>(steady_clock::now() - start_).count();
  }
  void show(const Initiator& sync) {
    const auto now = steady_clock::now();
    if (form_ == ProgressForm::none || now < next_) return;
    next_ = now + kProgressEvery;
    const bool terminal = form_ == ProgressForm::terminal;
    (void)write_all(STDERR_FILENO,
                    progress_text(sync.progress(), seconds()) + (terminal ? "\033[K\r" : "\n"));
    shown_ = terminal;
  }
  // Before anything else is written there.
  void hide() {
    if (std::exchange(shown_, false)) (void)write_all(STDERR_FILENO, "\033[K");
  }

 private:
  const ProgressForm form_;
  const steady_clock::time_point start_ = steady_clock::now();
  steady_clock::time_point next_;
  bool shown_ = false;
};

std::string why_failed(const Initiator& sync) {
  if (!sync.peer_words().empty()) return "the peer refuses: " + quoted(sync.peer_words());
  return sync.error().what;
}

// Until the sync is done; otherwise why not.
SyncPeer::Event carry(Initiator& sync, SyncPeer& peer, Differences* differences, Progress& progress,
                      std::string& problem) {
  using Event = SyncPeer::Event;
  Bytes answer;
  while (!sync.done() && !sync.failed()) {
    std::size_t unanswered = 0;
    for (const ByteView frame : sync.outstanding()) {
      peer.send(frame);
      ++unanswered;
    }
    SEMEL_ASSERT(unanswered > 0);
    for (; unanswered > 0; --unanswered) {
      const Event event = peer.receive(answer);
      if (event == Event::failed) problem = peer.problem();
      if (event == Event::ended) problem = "the peer ended before it answered";
      if (event != Event::done) return event;
      const Result<void> received = sync.receive(answer);
      if (!received && !sync.failed()) problem = received.error().what;  // nothing gets lost here
      if (!received) return Event::failed;
      if (differences) differences->settle_before(sync.progress().resume_from);
      if (differences && differences->error()) {
        problem = cannot("write", "standard output", differences->error());
        return Event::failed;
      }
      progress.show(sync);
    }
  }
  return sync.failed() ? Event::failed : Event::done;
}

}  // namespace

SyncPeer::Event LocalPeer::receive(Bytes& frame) {
  if (stop_.received() != 0) return Event::stopped;
  SEMEL_ASSERT(!frames_.empty());
  frame = responder_.respond(frames_.front());
  frames_.pop_front();
  return Event::done;
}

SyncEnd run_sync(IndexedStore& index, SyncSettings settings, SyncPeer& peer, ProgressForm form,
                 Differences* differences) {
  Progress progress(form);
  if (differences) {
    settings.on_difference = [&](std::string_view key, Where where) {
      differences->add(key, where);
    };
  }
  Initiator sync(index, std::move(settings));
  SyncEnd end;
  const SyncPeer::Event event = carry(sync, peer, differences, progress, end.problem);
  if (sync.failed()) end.problem = why_failed(sync);
  end.resume_from = sync.progress().resume_from;
  if (differences && event == SyncPeer::Event::done) differences->settle_all();
  if (differences) differences->flush();
  sync.cancel();
  progress.hide();
  end.report = sync.report();
  end.stopped = event == SyncPeer::Event::stopped;
  end.seconds = progress.seconds();
  return end;
}

}  // namespace semel::cli
