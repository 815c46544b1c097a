// Keys that a command reads.
#pragma once

#include "module/host/call.h"

namespace semel::module {

// The value of the first key, to be read: null if there is none. What is of another type has been
// answered with an error.
template <class V>
struct ReadKey {
  host::OpenKey key;
  const V* value;
  bool answered;

  explicit ReadKey(host::Call& call)
      : key(call.open(1, host::Access::read)),
        value(key.get<V>()),
        answered(value == nullptr && !key.empty()) {
    if (answered) call.wrong_type();
  }
};

}  // namespace semel::module
