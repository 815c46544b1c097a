// Judges over the slices of the library: vertical and diced layouts, one chunk at a time.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "cli/serial_judge.h"
#include "semel/core/internal/error_rate.h"
#include "semel/slices/sliced_filter.h"
#include "semel/slices/window_slice.h"

namespace semel::cli {
namespace {

class SlicedJudge final : public SerialJudge {
 public:
  SlicedJudge(const Placement& placement, std::vector<Window> windows) {
    // A single producer makes no claims, so none are kept.
    for (Window& window : windows) {
      slices_.push_back(std::make_unique<WindowSlice<Window>>(std::move(window), 0));
    }
    std::vector<Slice*> slices;
    for (const auto& slice : slices_) slices.push_back(slice.get());
    auto filter = SlicedFilter::make(placement, std::move(slices), {});
    SEMEL_ASSERT(filter);
    filter_.emplace(*std::move(filter));
  }

  TimeMs now() const override {
    TimeMs latest = std::numeric_limits<TimeMs>::min();
    for (const auto& slice : slices_) latest = std::max(latest, slice->window().now());
    return latest;
  }
  std::size_t sections() const override { return slices_.size(); }
  void encode(std::size_t section, Sink out) const override {
    slices_[section]->window().encode(out);
  }
  Result<void> decode(std::size_t section, ByteView in) override {
    slices_[section]->replace(SEMEL_TRY(decode_like(slices_[section]->window(), in)));
    return {};
  }

  std::string details() const override {
    std::ostringstream out;
    out << std::setprecision(3) << "load             fairness " << filter_->load().fairness()
        << ", the busiest slice has " << 100 * filter_->load().maximum_share() << " %\n";
    return out.str();
  }
  JsonObject json_details() const override {
    constexpr int kDigits = 6;
    return JsonObject()
        .add("fairness", filter_->load().fairness(), kDigits)
        .add("maximum_share", filter_->load().maximum_share(), kDigits);
  }

 private:
  Trust measure() const override {
    return {filter_->false_positive_rate(), filter_->bytes(), slices_.size()};
  }

  Result<void> judge_in_turn(Chunk& chunk) override {
    records_.clear();
    keys_.clear();
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] == Fate::unknown) records_.push_back(i);
    }
    bool room = true;
    // Consecutive records of one time go in one call.
    const bool timed = chunk.timed;
    for (std::size_t begin = 0; begin < records_.size();) {
      const TimeMs now_ms = timed ? chunk.now_ms[records_[begin]] : chunk.read_ms;
      keys_.clear();
      at_ms_.clear();
      std::size_t end = begin;
      for (; end < records_.size() && (!timed || chunk.now_ms[records_[end]] == now_ms); ++end) {
        keys_.push_back(chunk.keys[records_[end]]);
        if (timed) at_ms_.push_back(chunk.times_ms[records_[end]]);
      }
      verdicts_.resize(keys_.size());
      filter_->test_and_set(keys_, at_ms_, verdicts_, now_ms);
      for (std::size_t i = 0; i < keys_.size(); ++i) {
        chunk.fates[records_[begin + i]] = fate_of(verdicts_[i]);
        room = room && verdicts_[i] != Verdict::full;
      }
      begin = end;
    }
    if (!room) return no_room();
    return {};
  }

  std::vector<std::unique_ptr<WindowSlice<Window>>> slices_;
  std::optional<SlicedFilter> filter_;

  std::vector<std::size_t> records_;
  std::vector<Digest> keys_;
  std::vector<TimeMs> at_ms_;
  std::vector<Verdict> verdicts_;
};

}  // namespace

Result<std::unique_ptr<Judge>> make_sliced_judge(const Memory& memory,
                                                 const Placement::Shape& shape) {
  const Placement placement = SEMEL_TRY(Placement::make(shape));
  // An id errs only if every one of its functions does. The root of a rate just below 1 may round
  // to 1.
  const double spread = placement.spread();
  const double error = std::min(std::pow(memory.error, 1 / spread), kMostErrorRate);
  const Window::Goal goal =
      window_goal(memory, spread / static_cast<double>(placement.slices()), error);
  std::vector<Window> windows;
  for (std::size_t i = 0; i < placement.slices(); ++i) {
    windows.push_back(SEMEL_TRY(Window::make(goal, memory.now_ms)));
  }
  return std::unique_ptr<Judge>(std::make_unique<SlicedJudge>(placement, std::move(windows)));
}

}  // namespace semel::cli
