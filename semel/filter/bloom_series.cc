#include "semel/filter/bloom_series.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "semel/core/assert.h"
#include "semel/filter/candidates.h"
#include "semel/hash/seal.h"

namespace semel {
namespace {

// docs/formats/series_v1.md. All integers are little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic, the bytes "SBS1"; a new layout takes a new magic
//         4        1  kind of hash: 0 fast, 1 keyed
//         5        3  zero
//         8        8  error, a double
//        16        8  capacity of the first filter
//        24        8  seed of the hash, or name of its key
//        32        8  number of filters that follow; each has its keys, the size of its encoding,
//                     and the encoding
//   end - 8        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31534253;
constexpr std::size_t kTrailerSize = 8;
constexpr std::size_t kLinkHeader = 16;
constexpr std::size_t kHeaderSize = 40;
constexpr std::size_t kMostLinkOverhead = 64;  // a filter without its bits, and its header

// Shapes are computed in floating point, and another machine may round the last digit differently.
constexpr double kRounding = 1 + 1e-6;

Result<void> check(const BloomSeries::Goal& goal) {
  if (!(goal.fpr > 0 && goal.fpr < 1)) return Error{Errc::invalid, "fpr must be within (0, 1)"};
  if (goal.first_keys == 0) return Error{Errc::invalid, "a series begins with room for one key"};
  if (!goal.hash.valid()) return Error{Errc::invalid, "a series of unknown hash"};
  return {};
}

}  // namespace

Result<BloomSeries> BloomSeries::make(const Goal& goal) {
  if (Result<void> sound = check(goal); !sound) return sound.error();
  BloomSeries series(goal);
  if (Result<void> grown = series.grow(); !grown) return grown.error();
  return series;
}

double BloomSeries::share_of(const Goal& goal, std::size_t link) {
  const auto i = static_cast<double>(link + 1);
  return goal.fpr * 6 / (std::numbers::pi * std::numbers::pi * i * i);
}

Result<std::uint64_t> BloomSeries::capacity_of(const Goal& goal, std::size_t link) {
  if (link >= 64 || goal.first_keys > std::numeric_limits<std::uint64_t>::max() >> link) {
    return Error{Errc::limit, "a filter for more than 2^64 keys"};
  }
  return goal.first_keys << link;
}

Result<BloomShape> BloomSeries::shape_of(const Goal& goal, std::size_t link) {
  const double fpr = share_of(goal, link);
  const Result<std::uint64_t> capacity = capacity_of(goal, link);
  if (!capacity) return capacity.error();
  return BloomShape::for_goal({*capacity, fpr, BloomShape::blocked_for(fpr), goal.hash});
}

Result<std::uint64_t> BloomSeries::bytes_for(const Goal& goal, std::uint64_t keys) {
  if (Result<void> sound = check(goal); !sound) return sound.error();
  std::uint64_t bytes = 0;
  std::uint64_t room = 0;
  for (std::size_t link = 0; link == 0 || room < keys; ++link) {
    const Result<BloomShape> shape = shape_of(goal, link);
    if (!shape) return shape.error();
    bytes += shape->bits / 8;
    room += *capacity_of(goal, link);
  }
  return bytes;
}

Result<void> BloomSeries::grow() {
  const Result<BloomShape> shape = shape_of(goal_, links_.size());
  if (!shape) return shape.error();
  links_.push_back({BloomFilter(*shape), *capacity_of(goal_, links_.size())});
  return {};
}

Result<bool> BloomSeries::add(Digest key) {
  bool added = false;
  if (Result<void> done = add({&key, 1}, {&added, 1}); !done) return done.error();
  return added;
}

Result<void> BloomSeries::add(std::span<const Digest> keys, std::span<bool> added) {
  if (add_while_room(keys, added) == keys.size()) return {};
  return Error{Errc::limit, "the series can grow no more"};
}

std::size_t BloomSeries::add_while_room(std::span<const Digest> keys, std::span<bool> added) {
  SEMEL_ASSERT(keys.size() == added.size());
  Candidates unseen;
  for (std::size_t start = 0; start < keys.size(); start += Candidates::kChunk) {
    // Older filters answer for the keys that they know. The newest filter decides about the rest.
    unseen.take(keys, start);
    for (std::size_t i = 0; i + 1 < links_.size(); ++i) {
      unseen.strike_out(links_[i].filter, added, false);
    }
    while (unseen.size > 0) {
      if (links_.back().keys == links_.back().capacity) {
        unseen.strike_out(links_.back().filter, added, false);
        if (unseen.size == 0) break;
        if (!grow()) return unseen.place[0];
      }
      Link& newest = links_.back();
      const std::size_t count = std::min(unseen.size, std::size_t{newest.capacity - newest.keys});
      newest.filter.add({unseen.keys.data(), count}, {unseen.answer.data(), count});
      for (std::size_t i = 0; i < count; ++i) {
        added[unseen.place[i]] = unseen.answer[i];
        newest.keys += unseen.answer[i];
        keys_ += unseen.answer[i];
      }
      unseen.drop_front(count);
    }
  }
  return keys.size();
}

bool BloomSeries::contains(Digest key) const {
  return std::any_of(links_.rbegin(), links_.rend(),
                     [&](const Link& link) { return link.filter.contains(key); });
}

void BloomSeries::contains(std::span<const Digest> keys, std::span<bool> found) const {
  SEMEL_ASSERT(keys.size() == found.size());
  Candidates unseen;
  for (std::size_t start = 0; start < keys.size(); start += Candidates::kChunk) {
    unseen.take(keys, start);
    for (auto link = links_.rbegin(); link != links_.rend() && unseen.size > 0; ++link) {
      unseen.strike_out(link->filter, found, true);
    }
    for (std::size_t i = 0; i < unseen.size; ++i) found[unseen.place[i]] = false;
  }
}

double BloomSeries::live_fpr() const {
  double silent = 0;  // log of the chance that no filter claims an absent key
  for (const Link& link : links_) silent += std::log1p(-link.filter.live_fpr());
  return -std::expm1(silent);
}

std::uint64_t BloomSeries::bytes() const {
  std::uint64_t sum = 0;
  for (const Link& link : links_) sum += link.filter.bytes();
  return sum;
}

void BloomSeries::encode(Sink out) const {
  Seal seal(out);
  out.reserve(kHeaderSize + bytes() + links_.size() * kMostLinkOverhead + kTrailerSize);
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(goal_.hash.kind));
  w.u8(0);
  w.u16(0);
  w.u64(std::bit_cast<std::uint64_t>(goal_.fpr));
  w.u64(goal_.first_keys);
  w.u64(goal_.hash.seed);
  w.u64(links_.size());
  for (const Link& link : links_) {
    w.u64(link.keys);
    w.u64(encoded_size(link.filter));
    link.filter.encode(out);
  }
  seal.close();
}

Result<BloomSeries> BloomSeries::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  Goal goal{};
  goal.hash.kind = static_cast<HashKind>(r.u8());
  const bool reserved = (r.u8() | r.u16()) != 0;
  goal.fpr = std::bit_cast<double>(r.u64());
  goal.first_keys = r.u64();
  goal.hash.seed = r.u64();
  const std::uint64_t links = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "series: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "series: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "series: checksum"};
  }
  if (reserved || !check(goal)) return Error{Errc::corrupt, "series: goal"};
  if (links == 0) return Error{Errc::corrupt, "series: no filter"};

  BloomSeries series(goal);
  for (std::uint64_t i = 0; i < links; ++i) {
    if (r.rest() < kLinkHeader + kTrailerSize) {
      return Error{Errc::corrupt, "series: number of filters"};
    }
    const std::uint64_t keys = r.u64(), size = r.u64();
    if (size > r.rest() - kTrailerSize) return Error{Errc::corrupt, "series: size of a filter"};
    const Result<std::uint64_t> capacity = capacity_of(goal, series.links_.size());
    if (!capacity || keys > *capacity || (i + 1 < links && keys < *capacity)) {
      return Error{Errc::corrupt, "series: keys of a filter"};
    }
    Result<BloomFilter> filter = BloomFilter::decode(in.subspan(in.size() - r.rest(), size));
    if (!filter) return Error{Errc::corrupt, filter.error().what};
    r.skip(size);
    if (filter->shape().hash != goal.hash) return Error{Errc::corrupt, "series: hash of a filter"};
    if (filter->shape().expected_fpr(*capacity) >
        share_of(goal, series.links_.size()) * kRounding) {
      return Error{Errc::corrupt, "series: a filter too small for its keys"};
    }
    series.links_.push_back({*std::move(filter), *capacity, keys});
    series.keys_ += keys;
  }
  if (r.rest() != kTrailerSize) return Error{Errc::corrupt, "series: size"};
  return series;
}

}  // namespace semel
