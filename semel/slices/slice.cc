#include "semel/slices/slice.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <vector>

#include "semel/core/assert.h"

namespace semel {

void deliver(std::span<SliceMessage> messages, std::span<Slice* const> slices) {
  for (const SliceMessage& message : messages) SEMEL_ASSERT(message.slice < slices.size());
  // A started call belongs to its slice, so it must be finished even if something throws.
  std::exception_ptr thrown;
  std::size_t started = 0;
  try {
    for (; started < messages.size(); ++started) {
      slices[messages[started].slice]->start(messages[started].call);
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  // All callers wait in the order of the slices, so waiting for claims cannot deadlock.
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

std::vector<std::size_t> repetitions(std::span<const Digest> ids) {
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return ids[a] == ids[b] ? a < b : ids[a] < ids[b];
  });
  std::vector<std::size_t> before(ids.size(), kNoRepetition);
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (ids[order[i]] == ids[order[i - 1]]) before[order[i]] = order[i - 1];
  }
  return before;
}

}  // namespace semel
