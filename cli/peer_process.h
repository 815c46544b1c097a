// PeerProcess: a shell command whose standard input and output are pipes in our hands.
//
// Contract  The command starts with SIGPIPE at its default, in our process group: Ctrl-C reaches it,
//           and it may ask for a password on the terminal. Its standard error is ours.
//           When this goes the command has ended.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <system_error>

namespace semel::cli {

class PeerProcess {
 public:
  // By `sh -c`; nullptr if the system has no more processes or pipes.
  static std::unique_ptr<PeerProcess> start(const std::string& command, std::error_code& error);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  int to() const { return to_; }
  int from() const { return from_; }

  // Closes the pipes and waits for the end. How it ended, such as "ended with status 1"; empty if
  // with status 0.
  std::string finish();
  // The same, but if it does not end within a second it is made to, and nothing is said.
  std::string terminate();

 private:
  PeerProcess(pid_t pid, int to, int from) : pid_(pid), to_(to), from_(from) {}

  pid_t pid_;
  int to_;
  int from_;
};

}  // namespace semel::cli
