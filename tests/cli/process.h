// Process: another program, with its input, its output and its end in our hands.
//
// Contract  Nothing deadlocks: input is written while output is read. Nothing hangs: at the
//           deadline the program and all it started are killed, and the outcome says so.
//           The program starts with SIGPIPE and SIGINT at their defaults, whatever ours are.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace semel {

struct Start {
  std::vector<std::string> command;  // found in PATH, like the shell does
  std::string input = {};            // given whole, then closed
  std::string directory = {};        // where it runs; empty: where we are
  std::vector<std::pair<std::string, std::string>> environment = {};  // beside or instead of ours
  std::string commands = {};  // a folder that comes before the others in PATH
  bool merge = false;         // standard error goes where standard output goes
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // a busy machine takes its time
};

struct Outcome {
  std::string out;
  std::string err;
  int status = -1;         // -1: it did not exit by itself
  int signal = 0;          // that ended it
  bool timed_out = false;  // and was killed
};

class Process {
 public:
  // REQUIRES: the program exists.
  explicit Process(const Start& start);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // Gives some input now, beside Start::input. REQUIRES: the program reads it.
  void write(std::string_view bytes);
  // Returns what it writes to standard output, until that is `size` bytes or the deadline has come.
  std::string read(std::size_t size);
  pid_t id() const { return pid_; }
  // Sends it a signal. REQUIRES: finish() was not called.
  void signal(int number) const;
  // Waits until none of its threads runs or has run between two looks. Then it has done all that it
  // can do without new input. REQUIRES: finish() was not called.
  void wait_until_still() const;
  // Waits until it blocks in a write to its standard output, which nobody reads.
  void wait_until_blocked() const;
  // Brings the deadline forward to now.
  void expire() { deadline_ = std::chrono::steady_clock::now(); }
  // Gives the rest of the input, takes the rest of the output, and waits for the end.
  Outcome finish();

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  // Moves what can be moved; false when all streams have ended or the deadline has come.
  bool pump();
  void give();
  void wait_for_end();

  pid_t pid_ = -1;
  int in_ = -1;  // our ends of the pipes; -1: closed
  int out_ = -1;
  int err_ = -1;
  std::string input_;
  std::size_t given_ = 0;
  bool last_input_ = false;  // close in_ after input_
  Deadline deadline_;
  Outcome outcome_;
};

// All at once.
Outcome run(const Start& start);

}  // namespace semel
