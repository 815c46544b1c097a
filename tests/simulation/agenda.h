// Agenda: the future events in simulated time, in order. Events of equal time keep the order in
// which they were noted.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>

#include "semel/core/clock.h"

namespace semel::simulation {

class Agenda {
 public:
  TimeMs now_ms() const { return now_ms_; }
  bool empty() const { return items_.empty(); }
  TimeMs next_ms() const { return items_.top().at_ms; }  // REQUIRES: !empty()

  void after(TimeMs delay_ms, std::function<void()> act) {
    items_.push({now_ms_ + delay_ms, noted_++, std::move(act)});
  }
  // REQUIRES: !empty().
  void step() {
    const Item item = items_.top();
    items_.pop();
    now_ms_ = item.at_ms;
    item.act();
  }

 private:
  struct Item {
    TimeMs at_ms;
    std::uint64_t number;
    std::function<void()> act;
    bool operator<(const Item& other) const {
      return at_ms != other.at_ms ? at_ms > other.at_ms : number > other.number;
    }
  };
  std::priority_queue<Item> items_;
  std::uint64_t noted_ = 0;
  TimeMs now_ms_ = 0;
};

}  // namespace semel::simulation
