// ThreadSlice: serves another slice from a thread of its own, to any number of callers.
//
// Contract  The contract is that of slice.h. Calls are served one after the other, in the order of
//           start(). finish() rethrows an exception of the slice behind it.
// Threads   All members may run at once. One thread may start several calls before it finishes
//           them. REQUIRES: when it is destroyed, every call that was started is finished.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "semel/core/api.h"
#include "semel/slices/slice.h"

namespace semel {

class SEMEL_API ThreadSlice final : public Slice {
 public:
  // REQUIRES: there is a slice.
  explicit ThreadSlice(std::unique_ptr<Slice> slice);
  ~ThreadSlice() override;
  ThreadSlice(const ThreadSlice&) = delete;
  ThreadSlice& operator=(const ThreadSlice&) = delete;

  void start(SliceCall& call) override;
  void finish(SliceCall& call) override;

  // These wait for the call that is being served.
  std::uint64_t bytes() const override;
  double false_positive_rate() const override;

 private:
  struct Served {
    const SliceCall* call;
    std::exception_ptr thrown;
  };

  void serve();

  const std::unique_ptr<Slice> slice_;
  mutable std::mutex serving_;  // held while the slice is at work, never together with mutex_
  std::mutex mutex_;            // of all below
  std::condition_variable asked_, answered_;
  std::vector<SliceCall*> waiting_;  // in the order of start()
  std::vector<Served> served_;       // and not yet finished
  bool ends_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace semel
