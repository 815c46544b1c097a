// Integers of 128 bits: the values of counters and of sums that must not overflow.
#pragma once

namespace semel {

__extension__ using uint128 = unsigned __int128;
__extension__ using int128 = __int128;

}  // namespace semel
