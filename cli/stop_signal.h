// StopSignal: SIGINT, SIGTERM and SIGHUP as something to wait for, while this lives. The second one
// kills. One that our parent has told us to ignore, as nohup(1) does, stays ignored.
#pragma once

#include <chrono>
#include <optional>

namespace semel::cli {

class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  int fd()
      const;  // becomes readable with the signal, and stays so; -1 if the system has no more of them
  int received() const;  // the signal, or 0
  void wake() const;     // makes fd() readable without one
};

// Whether a signal has come, and a moment has passed since: whoever waits for others has to end.
class StopPatience {
 public:
  bool is_over();

 private:
  std::optional<std::chrono::steady_clock::time_point> since_;  // when it was noticed
};

// Ends this process as the signal would have done.
void die_of(int signal);

}  // namespace semel::cli
