// StopSignal: turns SIGINT, SIGTERM and SIGHUP into something to wait for, as long as the object
// lives. The second signal kills. A signal that our parent has told us to ignore, as nohup(1) does,
// stays ignored.
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

  // Becomes readable with the signal, and stays so; -1 if the system has no more descriptors.
  int fd() const;
  int received() const;  // the signal, or 0
  void wake() const;     // makes fd() readable without one
};

// Patience that ends a moment after a signal: then a call that waits for others must end.
class StopPatience {
 public:
  bool is_over();

 private:
  std::optional<std::chrono::steady_clock::time_point> since_;  // when it was noticed
};

// Ends this process as the signal would have done.
void die_of(int signal);

}  // namespace semel::cli
