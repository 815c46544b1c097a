#include "semel/slices/slice.h"

#include <algorithm>
#include <exception>
#include <vector>

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
  // In the order of the slices: callers who wait for one another's claims all wait in one order.
  std::vector<SliceMessage*> waiting;
  for (SliceMessage& message : messages.first(started)) waiting.push_back(&message);
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const auto* a, const auto* b) { return a->slice < b->slice; });
  for (SliceMessage* const message : waiting) {
    try {
      slices[message->slice]->finish(message->call);
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace semel
