// EndlessFilter: a window without an end over a filter that grows.
//
// Contract  As in window.h, for an infinite window: an accepted id is recognised forever. Nothing
//           is stale and nothing is renewed, so insert() does what test_and_insert() does. A new id
//           is taken for a duplicate with a mean probability of at most goal().fpr, however many
//           ids there are; false_positive_rate() is the present rate.
// Full      New ids are refused once the series cannot add another filter.
// Cost      The cost of GrowBloomSeries. false_positive_rate() passes over all the bits.
// Memory    The memory of the series: 10 to 30 bits an id at usual error rates. It never shrinks.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/series_v1.md, with the keys of each link. Time and counts are no part of
//           it: a window from bytes begins at the smallest time, and time catches up with the first
//           advance().
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/series.h"
#include "semel/window/internal/endless.h"
#include "semel/window/window.h"

namespace semel::window_internal {

class EndlessFilter {
 public:
  using Id = Digest;
  using Goal = SeriesGoal;  // of one site, with SeriesChains::own

  // Errors: Errc::invalid unless the goal is as above, and the errors of GrowBloomSeries::make.
  static Result<EndlessFilter> make(const Goal& goal, TimeMs now_ms);

  // REQUIRES for all ids: the digest was made by goal().hash.
  Verdict test(Digest id) const {
    return series_.contains(id) ? Verdict::duplicate : Verdict::fresh;
  }
  Verdict insert(Digest id) { return test_and_insert(id); }
  Verdict insert(Digest id, TimeMs) { return test_and_insert(id); }
  Verdict test_and_insert(Digest id);
  Verdict test_and_insert(Digest id, TimeMs) { return test_and_insert(id); }
  Verdict test(Digest id, TimeMs) const { return test(id); }
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
    test_and_insert(ids, verdicts);
  }
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);

  void advance(TimeMs now_ms) { time_.advance(now_ms); }
  TimeMs now() const { return time_.now(); }
  WindowPromise promise() const { return kEndless; }
  WindowCounts counts() const {
    return {.backward_steps = time_.backward_steps(), .refused = refused_};
  }
  double false_positive_rate() const { return series_.live_fpr(); }
  std::uint64_t bytes() const { return series_.bytes(); }

  const Goal& goal() const { return series_.goal(); }
  std::uint64_t ids() const { return series_.keys(); }  // only those that were fresh

  // Appends the encoding. Equal windows give equal bytes.
  void encode(Sink out) const { series_.encode_counted(out); }
  static Result<EndlessFilter> decode(ByteView in);

  // Compares what is remembered, not now() and counts().
  bool operator==(const EndlessFilter& other) const { return series_ == other.series_; }

 private:
  EndlessFilter(GrowBloomSeries series, TimeMs now_ms)
      : series_(std::move(series)), time_(now_ms) {}

  static constexpr SiteId kSite = 0;

  GrowBloomSeries series_;
  WindowTime time_;
  std::uint64_t refused_ = 0;
};

}  // namespace semel::window_internal
