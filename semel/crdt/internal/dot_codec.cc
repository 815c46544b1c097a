#include "semel/crdt/internal/dot_codec.h"

#include <algorithm>

#include "semel/bits/internal/elias_fano.h"

namespace semel::crdt_internal {

std::vector<std::uint64_t> distances(std::span<const CuckooEntry> entries, std::uint64_t from) {
  std::vector<std::uint64_t> all;
  all.reserve(entries.size());
  for (const CuckooEntry& entry : entries)
    all.push_back(Dot::unpacked(entry.payload).counter - from);
  return all;
}

Result<void> read_dots(Reader& in, Dot from, std::uint64_t last, std::uint64_t count,
                       std::vector<CuckooEntry>& entries) {
  const std::vector<std::uint64_t> all = SEMEL_TRY(elias_fano::decode(in, count, last));
  if (std::ranges::adjacent_find(all) != all.end()) return Error{Errc::corrupt, "a dot twice"};
  for (const std::uint64_t distance : all) {
    entries.push_back({0, 0, Dot{from.site, from.counter + distance}.packed()});
  }
  return {};
}

}  // namespace semel::crdt_internal
