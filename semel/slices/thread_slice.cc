#include "semel/slices/thread_slice.h"

#include <algorithm>
#include <utility>

#include "semel/core/assert.h"

namespace semel {

ThreadSlice::ThreadSlice(std::unique_ptr<Slice> slice) : slice_(std::move(slice)) {
  SEMEL_ASSERT(slice_ != nullptr);
  thread_ = std::thread([this] { serve(); });
}

ThreadSlice::~ThreadSlice() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  asked_.notify_one();
  thread_.join();
  SEMEL_ASSERT(waiting_.empty() && served_.empty());
}

void ThreadSlice::start(SliceCall& call) {
  {
    const std::lock_guard lock(mutex_);
    // Reserves a place for the result now, so that the serving thread never allocates.
    served_.reserve(served_.size() + waiting_.size() + 1);
    waiting_.push_back(&call);
  }
  asked_.notify_one();
}

void ThreadSlice::finish(SliceCall& call) {
  std::exception_ptr thrown;
  {
    std::unique_lock lock(mutex_);
    auto found = served_.end();
    answered_.wait(lock, [&] {
      found = std::find_if(served_.begin(), served_.end(),
                           [&](const Served& served) { return served.call == &call; });
      return found != served_.end();
    });
    thrown = found->thrown;
    served_.erase(found);
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

std::uint64_t ThreadSlice::bytes() const {
  const std::lock_guard lock(serving_);
  return slice_->bytes();
}

double ThreadSlice::false_positive_rate() const {
  const std::lock_guard lock(serving_);
  return slice_->false_positive_rate();
}

void ThreadSlice::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    SliceCall& call = *waiting_.front();
    lock.unlock();
    std::exception_ptr thrown;
    try {
      const std::lock_guard serving(serving_);
      slice_->start(call);
      slice_->finish(call);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    waiting_.erase(waiting_.begin());
    served_.push_back({&call, std::move(thrown)});
    answered_.notify_all();
  }
}

}  // namespace semel
