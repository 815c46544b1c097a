#include "semel/window/endless_filter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "semel/core/assert.h"

namespace semel {
namespace {

constexpr std::size_t kChunk = 512;

}  // namespace

Result<EndlessFilter> EndlessFilter::make(const Goal& goal, TimeMs now_ms) {
  Result<BloomSeries> series = BloomSeries::make(goal);
  if (!series) return series.error();
  return EndlessFilter(*std::move(series), now_ms);
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
    const std::size_t done =
        series_.add_while_room(ids.subspan(start, count), {added.data(), count});
    for (std::size_t i = 0; i < done; ++i) {
      verdicts[start + i] = added[i] ? Verdict::fresh : Verdict::duplicate;
    }
    start += done;
    if (done < count) {
      verdicts[start++] = Verdict::full;  // it is new: what is known needs no room
      ++refused_;
    }
  }
}

Result<EndlessFilter> EndlessFilter::decode(ByteView in) {
  Result<BloomSeries> series = BloomSeries::decode(in);
  if (!series) return series.error();
  return EndlessFilter(*std::move(series), kFirstTime);
}

}  // namespace semel
