// Makes the sketches of a partition by hash of the records below some nodes, in one scan.
#pragma once

#include <cstdint>
#include <vector>

#include "semel/core/result.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/internal/region.h"
#include "semel/sync/internal/short_digest.h"

namespace semel::sync_internal {

// Returns the syndromes of all sketches, one after another: scan.sketches() times scan.capacity.
// REQUIRES: they fit into a frame.
Result<std::vector<std::uint32_t>> sketch_partitions(const RangeView& view, const frame::Scan& scan,
                                                     const ShortDigest& shorten);

// Returns the position of a partition's sketch in the scan, or -1 if it has none.
std::int64_t sketch_of(const frame::Scan& scan, std::uint32_t partition);

}  // namespace semel::sync_internal
