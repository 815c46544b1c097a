// The amounts that each end sends at a time. Both the engines and the plan use these numbers.
//
// Source    With these numbers, d differences among a million records are found in one round trip
//           after the first exchange. Bytes for each difference: from about 200 (d = 1) down to 15
//           (d = 100,000), as measured in docs/benchmarks.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace semel::sync_internal::budget {

// The number of slots of the frontier in the first answer. With a floret of 1 KiB the first
// exchange stays below 1.5 KB.
inline constexpr std::size_t kFirstSlots = 88;
inline constexpr std::uint64_t kFirstEnough = 8;  // records of a slot that is not split further

// Returns the most records of a slot that is read. Larger slots are split in another round trip,
// because reading them all would take longer.
std::uint64_t detail(double expected);
// The number of parts into which such a slot is split.
inline constexpr std::size_t kDeeperSlots = 16;

// Returns the number of slots of a walk that looks for `expected` records.
std::size_t walk_slots(double expected);

// Returns the capacity of the sketches of `differing` slots that have `expected` differences in
// total, or 0 if lists are better.
std::uint32_t slot_capacity(std::uint64_t expected, std::uint64_t differing);
// Returns the mean number of differences in a slot for which this capacity is chosen. REQUIRES:
// capacity >= 11.
double mean_of_capacity(double capacity);

// A partition by hash. All its sketches decode with a probability of about 99.7 %.
struct Partition {
  std::uint32_t partitions;
  std::uint32_t capacity;
  std::uint64_t bytes() const { return std::uint64_t{4} * partitions * capacity; }
};
Partition partition(double expected);

}  // namespace semel::sync_internal::budget
