// GroupCommit: lets one thread process the requests of all threads that wait at the same time.
//
// Contract  run() returns when its request is done. A thread that finds nobody at work takes all
//           waiting requests, in the order in which they came, and processes them in one go.
//           Threads that come meanwhile wait for the next group. So a slow write is shared by all.
//           If the work throws, run() throws the same in every thread of the group.
// Threads   Any number of threads may call at once.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace semel::tally::internal {

template <class Request>
class GroupCommit {
 public:
  // Calls work(group) for a group of requests, or lets another thread do it.
  template <class Work>
  void run(Request& request, Work work) {
    Waiting waiting{&request};
    std::unique_lock lock(mutex_);
    queue_.push_back(&waiting);
    moved_.wait(lock, [&] { return waiting.done || !working_; });
    if (!waiting.done) lead(lock, work);
    if (waiting.failure) std::rethrow_exception(waiting.failure);
  }

 private:
  struct Waiting {
    Request* request;
    bool done = false;
    std::exception_ptr failure = {};
  };

  template <class Work>
  void lead(std::unique_lock<std::mutex>& lock, Work& work) {
    working_ = true;
    const std::vector<Waiting*> group = std::exchange(queue_, {});
    lock.unlock();
    std::exception_ptr failure;
    try {
      std::vector<Request*> requests;
      requests.reserve(group.size());
      for (const Waiting* each : group) requests.push_back(each->request);
      work(std::span<Request* const>(requests));
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    for (Waiting* each : group) {
      each->failure = failure;
      each->done = true;
    }
    working_ = false;
    moved_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<Waiting*> queue_;
  bool working_ = false;
};

}  // namespace semel::tally::internal
