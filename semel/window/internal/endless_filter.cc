#include "semel/window/internal/endless_filter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "semel/core/assert.h"

namespace semel::window_internal {
namespace {

constexpr std::size_t kChunk = 512;

Result<void> check(const EndlessFilter::Goal& goal) {
  if (goal.sites == 1 && goal.chains == SeriesChains::own) return {};
  return Error{Errc::invalid, "an endless filter has one site"};
}

}  // namespace

Result<EndlessFilter> EndlessFilter::make(const Goal& goal, TimeMs now_ms) {
  SEMEL_TRY(check(goal));
  return EndlessFilter(SEMEL_TRY(GrowBloomSeries::make(goal)), now_ms);
}

Verdict EndlessFilter::test_and_insert(Digest id) {
  Verdict verdict = Verdict::fresh;
  test_and_insert({&id, 1}, {&verdict, 1});
  return verdict;
}

void EndlessFilter::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  SEMEL_ASSERT(ids.size() == verdicts.size());
  std::array<bool, kChunk> found;
  for (std::size_t start = 0; start < ids.size(); start += kChunk) {
    const std::size_t count = std::min(kChunk, ids.size() - start);
    series_.contains(ids.subspan(start, count), {found.data(), count});
    for (std::size_t i = 0; i < count; ++i) {
      verdicts[start + i] = found[i] ? Verdict::duplicate : Verdict::fresh;
    }
  }
}

void EndlessFilter::test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  SEMEL_ASSERT(ids.size() == verdicts.size());
  std::array<bool, kChunk> added;
  for (std::size_t start = 0; start < ids.size();) {
    const std::size_t count = std::min(kChunk, ids.size() - start);
    const std::size_t done = series_.add(ids.subspan(start, count), kSite, {added.data(), count});
    for (std::size_t i = 0; i < done; ++i) {
      verdicts[start + i] = added[i] ? Verdict::fresh : Verdict::duplicate;
    }
    start += done;
    if (done < count) {
      verdicts[start++] = Verdict::full;  // the id is new: known ids need no room
      ++refused_;
    }
  }
}

Result<EndlessFilter> EndlessFilter::decode(ByteView in) {
  GrowBloomSeries series = SEMEL_TRY(GrowBloomSeries::decode_counted(in));
  if (!check(series.goal())) return Error{Errc::corrupt, "an endless filter has one site"};
  return EndlessFilter(std::move(series), kFirstTime);
}

}  // namespace semel::window_internal
