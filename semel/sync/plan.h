// SyncPlan: what each way to find a difference will cost, predicted before anything is sent.
//
// Contract  The plan picks the way that takes the least time on the given link. `bytes` counts both
//           directions without the records; `payload` counts the records. The standard errors come
//           from the estimate of the difference.
// Source    The measurements of docs/benchmarks.md; Trutna, sections 4 and 7.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "semel/core/api.h"
#include "semel/index/aggregate.h"
#include "semel/index/floret.h"

namespace semel {

enum class SyncWay : std::uint8_t {
  nothing = 0,  // the roots are equal
  walk = 1,     // down the tries, to the containers that differ
  sketch = 2,   // one scan of everything, into sketches of a partition by hash
  list = 3,     // a short digest of every record
  copy = 4,     // every record
};
inline constexpr std::array<std::string_view, 5> kSyncWayNames = {"nothing", "walk", "sketch",
                                                                  "list", "copy"};

// The link between the two ends. By default it is a link on which bytes are expensive: one byte
// costs as much time as reading eight records.
struct SyncLink {
  double round_trip_seconds = 0.02;
  double bytes_per_second = 250e3;
  double records_per_second = 2e6;  // that either end reads and digests
};

struct SEMEL_API SyncPrediction {
  SyncWay way = SyncWay::nothing;
  Estimated bytes;    // without records, but with the first exchange
  Estimated payload;  // of the records that are sent
  Estimated seconds;
  double round_trips = 0;

  // Adds the prediction of a later step.
  SyncPrediction& operator+=(const SyncPrediction& other);
};

struct SyncPlan {
  SyncPrediction best;
  std::array<SyncPrediction, 5> all;  // by SyncWay
};

}  // namespace semel
