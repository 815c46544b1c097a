// SerialJudge: a judge that takes one chunk at a time, whatever thread it comes from.
#pragma once

#include <atomic>
#include <mutex>

#include "cli/judge.h"
#include "cli/turnstile.h"

namespace semel::cli {

class SerialJudge : public Judge {
 public:
  Result<void> judge(Chunk& chunk) final {
    turn_.wait(chunk.number);
    Result<void> judged = judge_in_turn(chunk);
    if (wanted_.exchange(false, std::memory_order_relaxed)) keep(measure());
    turn_.pass();
    return judged;
  }

  Trust recent() const final {
    const std::lock_guard lock(recent_lock_);
    return recent_;
  }
  void refresh() final { wanted_.store(true, std::memory_order_relaxed); }
  Trust trust() const final { return measure(); }

 protected:
  virtual Result<void> judge_in_turn(Chunk& chunk) = 0;
  virtual Trust measure() const = 0;

 private:
  void keep(const Trust& trust) {
    const std::lock_guard lock(recent_lock_);
    recent_ = trust;
  }

  Turnstile turn_;
  std::atomic<bool> wanted_ = true;
  mutable std::mutex recent_lock_;
  Trust recent_;
};

}  // namespace semel::cli
