#include "semel/filter/bloom_series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace semel {

Result<BloomSeries> BloomSeries::make(const Goal& goal) {
  if (!(goal.fpr > 0 && goal.fpr < 1)) return Error{Errc::invalid, "fpr must be within (0, 1)"};
  BloomSeries series(goal);
  if (Result<void> grown = series.grow(); !grown) return grown.error();
  return series;
}

Result<void> BloomSeries::grow() {
  const auto i = static_cast<double>(links_.size() + 1);
  const double fpr = goal_.fpr * 6 / (std::numbers::pi * std::numbers::pi * i * i);
  const std::uint64_t capacity = links_.empty() ? goal_.first_keys : links_.back().capacity * 2;
  const Result<BloomShape> shape =
      BloomShape::for_goal({capacity, fpr, BloomShape::blocked_for(fpr), goal_.hash});
  if (!shape) return shape.error();
  links_.push_back({BloomFilter(*shape), capacity});
  return {};
}

Result<bool> BloomSeries::add(Digest key) {
  bool added = false;
  if (Result<void> done = add({&key, 1}, {&added, 1}); !done) return done.error();
  return added;
}

Result<void> BloomSeries::add(std::span<const Digest> keys, std::span<bool> added) {
  SEMEL_ASSERT(keys.size() == added.size());
  constexpr std::size_t kChunk = 512;
  std::array<Digest, kChunk> unseen;
  std::array<std::size_t, kChunk> place;  // of each in `keys`
  std::array<bool, kChunk> answer;

  for (std::size_t start = 0; start < keys.size();) {
    if (links_.back().keys == links_.back().capacity) {
      if (Result<void> grown = grow(); !grown) return grown;
    }
    Link& newest = links_.back();
    const std::uint64_t room = newest.capacity - newest.keys;
    const std::size_t count = std::min({keys.size() - start, kChunk, std::size_t{room}});

    // Strike out what an older filter knows, then let the newest decide about the rest.
    std::size_t left = count;
    std::copy_n(keys.begin() + static_cast<std::ptrdiff_t>(start), count, unseen.begin());
    for (std::size_t i = 0; i < count; ++i) place[i] = start + i;
    for (std::size_t link = 0; link + 1 < links_.size(); ++link) {
      links_[link].filter.contains({unseen.data(), left}, {answer.data(), left});
      std::size_t kept = 0;
      for (std::size_t i = 0; i < left; ++i) {
        added[place[i]] = false;
        unseen[kept] = unseen[i];
        place[kept] = place[i];
        kept += !answer[i];
      }
      left = kept;
    }
    newest.filter.add({unseen.data(), left}, {answer.data(), left});
    for (std::size_t i = 0; i < left; ++i) {
      added[place[i]] = answer[i];
      newest.keys += answer[i];
      keys_ += answer[i];
    }
    start += count;
  }
  return {};
}

bool BloomSeries::contains(Digest key) const {
  return std::any_of(links_.rbegin(), links_.rend(),
                     [&](const Link& link) { return link.filter.contains(key); });
}

double BloomSeries::live_fpr() const {
  double silent = 0;  // the logarithm of the chance that no filter claims a key it never saw
  for (const Link& link : links_) silent += std::log1p(-link.filter.live_fpr());
  return -std::expm1(silent);
}

std::uint64_t BloomSeries::bytes() const {
  std::uint64_t sum = 0;
  for (const Link& link : links_) sum += link.filter.bytes();
  return sum;
}

}  // namespace semel
