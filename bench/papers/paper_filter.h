// The forgetful Bloom filter as its paper prints it, faults included: what ours is compared with.
//
//   filters_   0        1         2            3     ...   N + 1
//              future   present   past newest              past oldest
//
// Faults    docs/papers.md has them.
// Chosen    where the paper is silent: the period is never shorter than a second, and there are
//           never fewer than 3 filters, nor more than `most_filters`.
// Source    Subramanyam, Gupta, Leslie & Wang, 'Idempotent distributed counters using a Forgetful
//           Bloom Filter', ICCAC 2015.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>

#include "semel/bits/internal/bit_array.h"
#include "semel/core/assert.h"
#include "semel/core/clock.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/hash/digest.h"

namespace semel::bench {

// A Bloom filter of exactly `bits`; probes that are as good as independent at any size.
class PaperBloom {
 public:
  PaperBloom(std::uint64_t bits, std::uint32_t probes)
      : bits_(bits), probes_(probes), array_(divide_up(bits, 64) * 64) {}

  void set(Digest id) {
    visit(id, [&](std::uint64_t bit) {
      array_.set(bit);
      return true;
    });
    ++ids_;
  }
  bool get(Digest id) const {
    return visit(id, [&](std::uint64_t bit) { return array_.test(bit); });
  }

  std::uint64_t bytes() const { return array_.size() / 8; }
  // Equation 1.
  double rate() const {
    return std::pow(-std::expm1(-static_cast<double>(ids_) * probes_ / static_cast<double>(bits_)),
                    probes_);
  }
  // The chance that all probes of an id fall on bits that are set here and in the other one.
  double rate_in(const PaperBloom& other) const {
    std::uint64_t both = 0;
    for (std::size_t i = 0; i < array_.words().size(); ++i) {
      both +=
          static_cast<std::uint64_t>(std::popcount(array_.words()[i] & other.array_.words()[i]));
    }
    return std::pow(static_cast<double>(both) / static_cast<double>(bits_), probes_);
  }

 private:
  // Returns false as soon as a visit does.
  template <class Visit>
  bool visit(Digest id, Visit visit) const {
    const std::uint64_t turn = word_of(id.hi, 1);
    for (std::uint32_t i = 0; i < probes_; ++i) {
      if (!visit(scale(id.lo, bits_))) return false;
      id.lo += id.hi;
      id.hi += turn;
    }
    return true;
  }

  std::uint64_t bits_;
  std::uint32_t probes_;
  std::uint64_t ids_ = 0;
  BitArray array_;
};

class PaperFilter {
 public:
  // An N-FBF: m bits and k probes in each of the past + 2 filters. REQUIRES: past >= 1.
  PaperFilter(std::uint64_t bits, std::uint32_t probes, std::size_t past)
      : empty_(bits, probes), filters_(past + 2, empty_) {
    SEMEL_ASSERT(past >= 1);
  }

  // Algorithm 1 without the check before it.
  void insert(Digest id) {
    filters_[kFuture].set(id);
    filters_[kPresent].set(id);
  }

  void refresh() {
    filters_.pop_back();
    filters_.push_front(empty_);
  }

  // Section III-A.
  bool simple_check(Digest id) const {
    for (const PaperBloom& filter : filters_) {
      if (filter.get(id)) return true;
    }
    return false;
  }

  // Algorithm 2, word by word.
  bool printed_check(Digest id) const {
    const std::size_t oldest = filters_.size() - 1;
    if (in(kFuture, id)) return true;
    if (in(kPresent, id) && in(kPastNewest, id)) return true;
    if (oldest > kPastNewest) {
      for (std::size_t i = kPastNewest; i < oldest; ++i) {
        if (in(i, id) && in(i + 1, id)) return true;
      }
      return false;  // so the oldest alone is asked only if it is the only one
    }
    return in(oldest, id);
  }

  // Checks what Algorithm 2 means: two neighbours, or the oldest alone.
  bool corrected_check(Digest id) const {
    bool newer = in(kFuture, id);
    for (std::size_t i = kPresent; i < filters_.size(); ++i) {
      const bool older = in(i, id);
      if (newer && older) return true;
      newer = older;
    }
    return newer;
  }

  // Algorithm 3. New filters are older than the oldest, and empty.
  void scale_up(std::size_t most_filters) {
    filters_.resize(std::min(2 * filters_.size(), most_filters), empty_);
  }
  void scale_down() {
    if (filters_.size() > 3) filters_.pop_back();
  }

  // The analysis of the paper.
  double equation_3() const {
    double none = 1 - filters_[kFuture].rate();
    for (std::size_t i = kPresent; i + 1 < filters_.size(); ++i) {
      none *= 1 - filters_[i].rate() * filters_[i + 1].rate();
    }
    return 1 - none * (1 - filters_.back().rate());
  }

  // The chance of a false positive with the bits that are set, exactly, for probes that are
  // independent. REQUIRES: one past filter; then the check asks for the future or the past one
  // alone.
  double basic_rate() const {
    SEMEL_ASSERT(filters_.size() == 3);
    const PaperBloom& past = filters_[kPastNewest];
    return filters_[kFuture].rate_in(filters_[kFuture]) + past.rate_in(past) -
           past.rate_in(filters_[kFuture]);
  }

  const std::deque<PaperBloom>& filters() const { return filters_; }
  std::uint64_t bytes() const { return filters_.size() * empty_.bytes(); }

 private:
  static constexpr std::size_t kFuture = 0, kPresent = 1, kPastNewest = 2;

  bool in(std::size_t filter, Digest id) const { return filters_[filter].get(id); }

  PaperBloom empty_;
  std::deque<PaperBloom> filters_;
};

// The filter with its two threads: one refreshes it, the other looks at the error each second.
class TimedPaperFilter {
 public:
  struct Resizing {
    double target;
    std::size_t most_filters;
    TimeMs from_ms;  // before it nothing is resized
  };

  TimedPaperFilter(const PaperFilter& filter, TimeMs period_ms)
      : filter_(filter), period_ms_(period_ms), resizing_{1, 0, 0} {}
  TimedPaperFilter(const PaperFilter& filter, TimeMs period_ms, const Resizing& resizing)
      : filter_(filter),
        period_ms_(period_ms),
        resizing_(resizing),
        next_look_ms_(resizing.from_ms) {}

  // Advances to a time that is not before the last one. The first time is 0.
  void advance(TimeMs now_ms) {
    for (;;) {
      const TimeMs next_refresh_ms = std::max(refreshed_ms_ + period_ms_, looked_ms());
      const bool looks = resizing() && next_look_ms_ < next_refresh_ms;
      if ((looks ? next_look_ms_ : next_refresh_ms) > now_ms) return;
      if (looks) {
        resize();
        next_look_ms_ += kSecondMs;
      } else {
        filter_.refresh();
        refreshed_ms_ = next_refresh_ms;
      }
    }
  }

  PaperFilter& filter() { return filter_; }
  const PaperFilter& filter() const { return filter_; }
  TimeMs period_ms() const { return period_ms_; }

 private:
  static constexpr TimeMs kSecondMs = 1000;

  bool resizing() const { return resizing_.most_filters != 0; }
  // A period that has just become shorter may already be over: then the refresh is due at once.
  TimeMs looked_ms() const { return resizing() ? next_look_ms_ - kSecondMs : 0; }

  // Algorithm 3.
  void resize() {
    const double fpp = filter_.equation_3();
    if (fpp >= 0.9 * resizing_.target) {
      filter_.scale_up(resizing_.most_filters);
      period_ms_ = std::max(period_ms_ - kSecondMs, kSecondMs);
    } else if (fpp <= 0.1 * resizing_.target) {
      filter_.scale_down();
      period_ms_ += kSecondMs;
    }
  }

  PaperFilter filter_;
  TimeMs period_ms_;
  Resizing resizing_;
  TimeMs refreshed_ms_ = 0;
  TimeMs next_look_ms_ = 0;
};

}  // namespace semel::bench
