// Probe: estimates from a sample of the tries how much differs, if the florets cannot tell.
//
// Contract  One end sends the digests of some slots below nodes that differ, and hears which of
//           them differ. The share of slots that differ gives the share of the records, unless
//           nearly all slots differ. In that case it sends slots with fewer records, and finally
//           asks for lists of some containers. A probe takes a round trip and about 0.5 KB; lists
//           take a few KB. The estimate is right for scattered differences. For clusters it may be
//           wrong by any factor; the walk finds that out by itself.
// Source    Whang et al., linear counting: d keys leave a share of exp(-d / slots) of the slots
//           untouched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/index/floret.h"

namespace semel::sync_internal::probe {

inline constexpr std::size_t kNodes = 16;       // in a sample
inline constexpr std::size_t kSlots = 128;      // in all these nodes together
inline constexpr std::uint64_t kFiner = 32;     // times fewer records in a slot of the next probe
inline constexpr std::size_t kLists = 6;        // containers of the last sample
inline constexpr std::uint64_t kTooFew = 1024;  // with fewer records, no probe is worth it

// The slots that were compared.
struct Sample {
  std::uint64_t slots = 0;
  std::uint64_t differing = 0;
  std::uint64_t records = 0;  // of the end that showed them

  bool saturated() const { return differing * 4 > slots * 3; }
  // Estimates how many keys differ among `all` records.
  double keys_among(std::uint64_t all) const;
};

// Returns true if the estimate of a floret is unreliable: its counters may have wrapped, or many
// changes since are missing.
bool is_doubtful(double total, bool reliable, double unknown);

// Returns how many records at both ends belong to this many keys, in stores of these counts: two
// for each key that both have.
double records_of(double keys, std::uint64_t here, std::uint64_t there);

// Adds the standard error to an estimate that is based on `seen` slots or records that differ.
Estimated with_error(double total, std::uint64_t seen);

}  // namespace semel::sync_internal::probe
