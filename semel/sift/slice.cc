#include "semel/sift/slice.h"

#include <exception>

#include "semel/core/assert.h"

namespace semel {

void deliver(std::span<SliceMessage> messages, std::span<Slice* const> slices) {
  for (const SliceMessage& message : messages) SEMEL_ASSERT(message.slice < slices.size());
  // Whatever is thrown on the way, a call that was started is finished: it belongs to its slice.
  std::exception_ptr thrown;
  std::size_t started = 0;
  try {
    for (; started < messages.size(); ++started) {
      slices[messages[started].slice]->start(messages[started].call);
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  for (SliceMessage& message : messages.first(started)) {
    try {
      slices[message.slice]->finish(message.call);
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace semel
