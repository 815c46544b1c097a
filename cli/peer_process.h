// PeerProcess: runs a shell command whose standard input and output are pipes that we hold.
//
// Contract  The command starts with SIGPIPE at its default, in our process group: Ctrl-C reaches
//           it, and it may ask for a password on the terminal. Its standard error is ours.
//           The destructor returns when the command and all that it started have ended: after a
//           moment they get SIGTERM, and after a few seconds SIGKILL. A process in a session of its
//           own is left alone: it is a daemon, such as the master of ssh's ControlPersist.
//           If we are killed, the shell gets SIGTERM.
//           REQUIRES: this process has no other children.
// Threads   Calls exclude each other.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

#include "cli/stop_signal.h"
#include "semel/core/result.h"

namespace semel::cli {

class PeerProcess {
 public:
  // Starts `sh -c command`. Returns nullptr if the system has no more processes or pipes.
  static std::unique_ptr<PeerProcess> start(const std::string& command, std::error_code& error);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  int to() const { return to_; }
  int from() const { return from_; }

  // Closes the pipes and waits for the end. Returns an error, such as "ended with status 1", unless
  // the command ended with status 0. After `patience`, or a signal, makes the command end.
  Result<void> finish(std::chrono::milliseconds patience, const StopSignal& stop);
  // Like finish() after a moment of patience, but does not report that the command was made to end.
  Result<void> terminate();

 private:
  using Time = std::chrono::steady_clock::time_point;

  PeerProcess(pid_t pid, int to, int from) : pid_(pid), to_(to), from_(from) {}
  void close_pipes();
  // Takes note of the processes that have ended. Returns true if the shell has.
  bool reap();
  // Waits for the end of all. Returns false if it does not come before the deadline.
  bool all_end_before(Time deadline);
  // Waits a moment for the end of all, then makes them end.
  void end_all();

  std::mutex mutex_;
  pid_t pid_;            // of the shell; -1: it has ended
  int status_ = 0;       // with this
  bool forced_ = false;  // it was made to end
  int to_;
  int from_;
};

}  // namespace semel::cli
