// Shared by the figures of 'One is Enough' on slices: its filter exactly as printed, as arrays of
// bits of any size, and its numbers of distinct ids.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "bench/papers/one_is_enough.h"
#include "semel/core/assert.h"
#include "semel/slices/sliced_filter.h"

namespace semel::bench {

inline constexpr std::uint32_t kFunctions = 4;
inline constexpr std::array kTargets = {0.02, 0.05, 0.08};

// With this many ids, about 4300, 5700 and 2049 different ones come up in kEvents by Zipf's law.
// These are the paper's web log, its synthetic events, and its log of Yahoo.
inline constexpr std::uint64_t kWebLog = 4382, kSynthetic = 5994, kYahoo = 2050;

// Remembers for ever: it takes no claims and reads no time.
class BitSlice final : public Slice {
 public:
  BitSlice(std::uint64_t bits, std::uint32_t probes) : bits_(bits), probes_(probes) {}

  void start(SliceCall& call) override {
    call.verdicts.clear();
    for (const Digest& key : call.keys) {
      call.verdicts.push_back(knows(key) ? Verdict::duplicate : Verdict::fresh);
      SEMEL_ASSERT(call.action <= SliceAction::test_and_set);
      if (call.action == SliceAction::test) continue;
      for (std::uint32_t i = 0; i < probes_; ++i) bits_[place(key, i)] = true;
    }
  }
  void finish(SliceCall&) override {}

  bool knows(Digest key) const {
    for (std::uint32_t i = 0; i < probes_; ++i) {
      if (!bits_[place(key, i)]) return false;
    }
    return true;
  }
  std::uint64_t bytes() const override { return bits_.size() / 8; }
  double false_positive_rate() const override {
    const auto set = static_cast<double>(std::count(bits_.begin(), bits_.end(), true));
    return std::pow(set / static_cast<double>(bits_.size()), probes_);
  }

 private:
  std::uint64_t place(Digest key, std::uint32_t i) const {
    return scale(word_of(key.lo, i) ^ key.hi, bits_.size());
  }

  std::vector<bool> bits_;
  std::uint32_t probes_;
};

// `slices` in all, `bits` and `functions` in all; diced: in groups of `parts`.
class SlicedBits {
 public:
  SlicedBits(SliceLayout layout, std::uint32_t slices, double bits, std::uint32_t functions,
             const SliceRules& rules = {}, std::uint32_t parts = 1)
      : placement_(*Placement::make({.layout = layout,
                                     .slices = slices / parts,
                                     .parts = parts,
                                     .spread = spread(layout, functions)})) {
    const auto each = static_cast<std::uint64_t>(std::llround(bits / slices));
    std::vector<Slice*> pointers;
    for (std::uint32_t i = 0; i < slices; ++i) {
      pointers.push_back(
          &slices_.emplace_back(std::max<std::uint64_t>(each, 1), functions / placement_.spread()));
    }
    filter_.push_back(*SlicedFilter::make(placement_, std::move(pointers), {.rules = rules}));
  }
  SlicedBits(const SlicedBits&) = delete;

  SlicedFilter& filter() { return filter_.front(); }
  const Placement& placement() const { return placement_; }
  BitSlice& slice(std::size_t i) { return slices_[i]; }

  // One event after the other, as a stream comes.
  bool is_fresh(Digest id) {
    Verdict verdict{};
    filter().test_and_set({&id, 1}, {}, {&verdict, 1}, 0);
    return verdict == Verdict::fresh;
  }
  // The share that is taken for duplicates.
  double duplicates(std::span<const Digest> ids) {
    std::vector<Verdict> verdicts(ids.size());
    filter().test(ids, verdicts, 0);
    return static_cast<double>(std::count(verdicts.begin(), verdicts.end(), Verdict::duplicate)) /
           static_cast<double>(ids.size());
  }

 private:
  static std::uint32_t spread(SliceLayout layout, std::uint32_t functions) {
    return layout == SliceLayout::horizontal ? 1 : functions;
  }

  Placement placement_;
  std::deque<BitSlice> slices_;
  std::vector<SlicedFilter> filter_;  // one
};

// Other digests in every run.
inline Digest digest_in_run(std::uint64_t id, std::uint64_t run) {
  return digest_of((run << 40) + id);
}
inline std::vector<Digest> digests_in_run(std::uint64_t first, std::uint64_t last,
                                          std::uint64_t run) {
  std::vector<Digest> all;
  for (std::uint64_t id = first; id < last; ++id) all.push_back(digest_in_run(id, run));
  return all;
}

// The mean of a false positive rate while a filter fills with ids, from none to all.
template <class Rate>
double mean_while_filling(std::uint64_t ids, Rate rate) {
  double sum = 0;
  for (std::uint64_t i = 0; i < ids; ++i) sum += rate(static_cast<double>(i));
  return sum / static_cast<double>(ids);
}

}  // namespace semel::bench
