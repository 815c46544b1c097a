// ObservedChanges and ObservedState: what an ObservedDelta and an ObservedCuckoo hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "semel/crdt/internal/entry_store.h"
#include "semel/crdt/internal/lives.h"
#include "semel/crdt/version_vector.h"
#include "semel/filter/cuckoo_filter.h"

namespace semel::crdt_internal {

inline constexpr std::size_t kMostSites = 65'536;  // of a state or a delta

// The content of a delta.
struct ObservedChanges {
  struct Change {
    std::uint64_t pair;
    std::uint64_t fingerprint;
    bool removed;
    bool operator==(const Change&) const = default;
  };

  // REQUIRES: the run ends with the dot.
  void record(std::uint64_t dot, const Change& change, const LifeRun& run);
  // Returns a dot that has two different entries, or nullptr.
  const std::uint64_t* dot_of_two(const ObservedChanges& other) const;
  bool operator==(const ObservedChanges&) const = default;

  std::map<std::uint64_t, Change> changes;  // by packed dot
  Lives lives;                              // of these dots
};

// The content of a filter.
struct ObservedState {
  explicit ObservedState(const CuckooShape& shape) : entries(shape) {}

  bool at_most(const ObservedState& other) const;
  std::vector<std::uint64_t> entries_of_sites() const;
  // REQUIRES: equal shapes.
  bool operator==(const ObservedState&) const = default;

  EntryStore entries;  // payloads are packed dots, all in the context
  VersionVector context;
  Lives lives;  // of all dots of the context
};

}  // namespace semel::crdt_internal
