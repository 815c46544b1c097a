#include "semel/tally/store/counter_merger.h"

#include "semel/tally/counters/internal/counter_state.h"

namespace semel::tally {
namespace {

using namespace internal;

class CounterMerger final : public Merger {
 public:
  const char* name() const override { return "semel.tally.counter.v1"; }
  bool merge(std::string_view /*key*/, std::optional<std::string_view> now,
             std::string_view operand, std::string& merged) const override {
    Result<CounterState> added = CounterState::decode(bytes_of(operand));
    if (!added) return false;
    if (now) {
      const Result<CounterState> before = CounterState::decode(bytes_of(*now));
      if (!before) return false;
      added->add(*before);
    }
    Bytes out;
    added->encode(out);
    merged.assign(text_of(out));
    return true;
  }
};

}  // namespace

const Merger& counter_merger() {
  static const CounterMerger merger;
  return merger;
}

}  // namespace semel::tally
