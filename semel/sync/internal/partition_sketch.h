// The sketches of a partition by hash of the records below some nodes, in one scan.
#pragma once

#include <cstdint>
#include <vector>

#include "semel/core/result.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/internal/region.h"
#include "semel/sync/internal/short_digest.h"

namespace semel {

// The syndromes of one sketch after another: scan.sketches() times scan.capacity.
// REQUIRES: the caller has found that they fit into a frame.
Result<std::vector<std::uint32_t>> sketch_partitions(const RangeView& view, const frame::Scan& scan,
                                                     const ShortDigest& shorten);

// Where the sketch of a partition stands among those of the scan; -1 if it is not one of them.
std::int64_t sketch_of(const frame::Scan& scan, std::uint32_t partition);

}  // namespace semel
