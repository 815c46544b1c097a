// Job: the work of one call in steps, each of which takes less than a millisecond.
//
// Between two steps anything may happen to the keys: a step opens what it needs, and finds it as it is
// then. Each step says what it changed by effects of its own (Call::effect), so that a replica takes
// the same steps at the same places of its history.
//
// A step is a write like any other: while writes are paused (CLIENT PAUSE, a planned failover) the job
// waits, and it ends with the server's own error where a client could not write: at maxmemory, with
// errors of the disk, with too few replicas, at a replica.
#pragma once

#include <string_view>

#include "module/host/call.h"

namespace semel::host {

class Job {
 public:
  virtual ~Job() = default;

  // Which it writes to.
  virtual std::string_view key() const = 0;
  // Does a part of the work; false when all is done, or there is no going on. Does not answer.
  virtual bool step(Call& call) = 0;
  // After the last step, however the job ended: tells of what it changed, once.
  virtual void end(Call& call) = 0;
  virtual void answer(Call& call) = 0;
};

}  // namespace semel::host
