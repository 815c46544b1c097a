#include "semel/tally/counters/internal/counter.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "semel/core/assert.h"

namespace semel::tally::internal {

std::size_t Counter::size_for(std::size_t name_size) {
  static_assert(sizeof(Counter) >= kNameOffset && sizeof(Counter) < kNameOffset + alignof(Counter));
  return std::max(sizeof(Counter), kNameOffset + name_size);
}

Counter::Counter(std::string_view name, const Shard& shard)
    : sum(shard.sum),
      dot_(Dot{shard.site, shard.clock}.packed()),
      operations_(shard.operations),
      many_(0),
      name_size_(name.size() & 0x7fff'ffff) {}

Counter::~Counter() {
  if (many_) delete states_;
}

Counter::Owner Counter::make(std::string_view name, const Shard& shard, Arena& arena) {
  SEMEL_ASSERT(name.size() <= 0x7fff'ffff && shard.clock <= Dot::kLastCounter);
  void* const memory = arena.allocate(size_for(name.size()));
  Owner counter(new (memory) Counter(name, shard), {&arena});
  std::copy(name.begin(), name.end(), static_cast<char*>(memory) + kNameOffset);
  return counter;
}

void Counter::Release::operator()(Counter* counter) const noexcept {
  const std::size_t size = size_for(counter->name_size_);
  counter->~Counter();
  arena->release(counter, size);
}

Shard Counter::only() const {
  const Dot dot = Dot::unpacked(dot_);
  return {dot.site, dot.counter, operations_, sum};
}

void Counter::add(const Shard& shard) {
  SEMEL_ASSERT(shard.clock <= Dot::kLastCounter);
  if (many_) {
    states_->add(shard);
    return;
  }
  const Dot dot = Dot::unpacked(dot_);
  if (dot.site == shard.site) {
    dot_ = Dot{dot.site, std::max(dot.counter, shard.clock)}.packed();
    operations_ += shard.operations;
    return;
  }
  auto states = std::make_unique<CounterState>(only());
  states->add(shard);
  states_ = states.release();
  many_ = 1;
}

}  // namespace semel::tally::internal
