// Job: the work of one call in steps, each of which takes less than a millisecond.
//
// Between two steps anything may happen to the keys: a step opens what it needs, and finds it as it is
// then. Each step says what it changed by effects of its own (Call::effect), so that a replica takes
// the same steps at the same places of its history.
#pragma once

#include "module/host/call.h"

namespace semel::host {

class Job {
 public:
  virtual ~Job() = default;

  // Does a part of the work; false when all is done, or there is no going on. Does not answer.
  virtual bool step(Call& call) = 0;
  // After the last step.
  virtual void answer(Call& call) = 0;
};

}  // namespace semel::host
