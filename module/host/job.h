// Job: the work of one call, in steps of a millisecond or so. docs/module.md has the exceptions
// ('Limits').
//
// Between two steps anything may happen to the keys. So a step opens what it needs, and takes it as
// it is. Each step reports what it changed by effects of its own (Call::effect), so that a replica
// takes the same steps at the same places of its history.
//
// A step is a write like any other. While writes are paused (CLIENT PAUSE, a planned failover) the
// job waits. It ends with the server's own error where a client could not write: at maxmemory,
// after an error of the disk, with too few replicas, and at a replica.
#pragma once

#include <string_view>

#include "module/host/call.h"

namespace semel::host {

class Job {
 public:
  virtual ~Job() = default;

  // Returns the key that the job writes to.
  virtual std::string_view key() const = 0;
  // Does a part of the work, and does not answer. Returns false if the work is done or cannot go
  // on.
  virtual bool step(Call& call) = 0;
  // Called after the last step, however the job ended. Publishes what it changed, once.
  virtual void end(Call& call) = 0;
  virtual void answer(Call& call) = 0;
};

}  // namespace semel::host
