// Probe: how much differs, from a sample of the tries, for ends whose florets do not know.
//
// Contract  One end shows the digests of some slots below nodes that differ, and hears which of them
//           differ. The share of them gives the share of the records, as long as not nearly all
//           differ; else slots of fewer records are shown, and at last lists of some containers. A
//           probe takes a round trip and about half a kilobyte, lists some kilobytes.
//           The estimate is right for differences that are scattered. Where they lie in clusters it
//           may be wrong by any factor: the walk finds that out by itself.
// Source    Whang et al., linear counting: d keys leave a share of exp(-d / slots) of the slots
//           untouched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/index/floret.h"

namespace semel::probe {

inline constexpr std::size_t kNodes = 16;       // of a sample
inline constexpr std::size_t kSlots = 128;      // of all of them together
inline constexpr std::uint64_t kFiner = 32;     // how many times fewer records the next one has
inline constexpr std::size_t kLists = 6;        // containers of the last sample
inline constexpr std::uint64_t kTooFew = 1024;  // records in question: they are not worth a probe

// Slots that were compared.
struct Sample {
  std::uint64_t slots = 0;
  std::uint64_t differing = 0;
  std::uint64_t records = 0;  // of the end that showed them

  bool saturated() const { return differing * 4 > slots * 3; }
  // The keys that differ among so many records.
  double keys_among(std::uint64_t all) const;
};

// True if a floret's estimate is not to be relied on: it may have wrapped, or more has changed since
// than is small beside it.
bool is_doubtful(double total, bool reliable, double unknown);

// The records of both ends that so many keys stand for, of stores of these counts: two for each key
// that both have.
double records_of(double keys, std::uint64_t here, std::uint64_t there);

// Of an estimate of so many records, from so many slots or records that were seen to differ.
Estimated with_error(double total, std::uint64_t seen);

}  // namespace semel::probe
