// The dots of entries as bytes: for each site the distances of its dots from the first, Elias-Fano.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/internal/entry_codec.h"

namespace semel::crdt_internal {

// Returns the counters of consecutive entries of one site, relative to `from`.
std::vector<std::uint64_t> distances(std::span<const CuckooEntry> entries, std::uint64_t from);

// The inverse of distances(). Appends entries with their dots.
Result<void> read_dots(Reader& in, Dot from, std::uint64_t last, std::uint64_t count,
                       std::vector<CuckooEntry>& entries);

}  // namespace semel::crdt_internal
