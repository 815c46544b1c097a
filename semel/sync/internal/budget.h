// How much each end says at a time: the figures that both the engines and the plan go by.
//
// Source    Chosen so that a difference of d records among a million is found in one round trip
//           after the first exchange, for about 200 bytes (d = 1) down to 15 (d = 100,000) each;
//           measured in docs/benchmarks.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace semel::budget {

// The frontier in the first answer: with a floret of 1 KiB the first exchange stays below 1.5 KB.
inline constexpr std::size_t kFirstSlots = 88;
inline constexpr std::uint64_t kFirstEnough = 8;  // records of a slot that is not split further

// Slots with more records are not read, but split in another round trip: where so many are looked
// for, reading them all would take longer than that.
std::uint64_t detail(double expected);
// Into how many each is split then.
inline constexpr std::size_t kDeeperSlots = 16;

// Slots of a walk in which `expected` records are looked for.
std::size_t walk_slots(double expected);

// Capacity of the sketches of `differing` slots that hold `expected` records together. 0 if lists
// are better.
std::uint32_t slot_capacity(std::uint64_t expected, std::uint64_t differing);
// Records to expect in each slot, so that its capacity is this. REQUIRES: capacity >= 11.
double mean_of_capacity(double capacity);

// A partition by hash, such that its sketches all decode with a probability of about 99.7 %.
struct Partition {
  std::uint32_t partitions;
  std::uint32_t capacity;
  std::uint64_t bytes() const { return std::uint64_t{4} * partitions * capacity; }
};
Partition partition(double expected);

}  // namespace semel::budget
