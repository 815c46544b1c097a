// The body that the encodings of series and of their deltas share: docs/formats/series_v1.md.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series_goal.h"
#include "semel/hash/internal/sealed.h"

namespace semel::crdt_internal {

inline constexpr Format kSeriesFormat{"SFS", 1, "series of filters"};
inline constexpr Format kSeriesDeltaFormat{"SFD", 1, "delta of a series of filters"};

enum class FilterKind : std::uint8_t { grow_bloom = 1, grow_cuckoo = 2, observed_cuckoo = 3 };

template <class Filter>
inline constexpr FilterKind kKindOf =
    std::is_same_v<Filter, GrowBloom>    ? FilterKind::grow_bloom
    : std::is_same_v<Filter, GrowCuckoo> ? FilterKind::grow_cuckoo
                                         : FilterKind::observed_cuckoo;

struct SeriesHeader {
  FilterKind kind;
  bool counted;  // each link comes with the number of its keys
  SeriesGoal goal;
};

void write_header(Writer& w, const SeriesHeader& header, std::uint64_t links);
void write_link(Writer& w, LinkId id, std::optional<std::uint64_t> keys);

struct EncodedLink {
  LinkId id;
  std::uint64_t keys = 0;  // if counted
  ByteView content;        // one envelope, not looked at yet
};

struct EncodedSeries {
  SeriesGoal goal;  // check() holds
  std::vector<EncodedLink> links;
};

// Errc::mismatch if the bytes are those of another kind. REQUIRES: `in` outlives the result.
Result<EncodedSeries> read_series(ByteView in, const Format& format, FilterKind kind, bool counted);

}  // namespace semel::crdt_internal
