// Plan: the cheapest way to find a difference, and what it will cost, before anything is sent.
//
// Contract  make_plan() weighs every way by the time it will take on the given link, and predicts
//           its bytes, round trips and seconds. The bytes are those of both directions without the
//           records themselves; `payload` is these. Each has a standard error, which comes from the
//           estimate of the difference.
// Source    The measurements of docs/benchmarks.md; Trutna, sections 4 and 7.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "semel/index/aggregate.h"
#include "semel/index/floret.h"

namespace semel {

enum class Way : std::uint8_t {
  nothing = 0,  // the roots are equal
  walk = 1,     // down the tries, to the containers that differ
  sketch = 2,   // one scan of everything, into sketches of a partition by hash
  list = 3,     // a short digest of every record
  copy = 4,     // every record
};
inline constexpr std::array<std::string_view, 5> kWayNames = {"nothing", "walk", "sketch", "list",
                                                              "copy"};

// What the bytes go over. By default a line between two sites on which bytes are dear: the reading
// of eight records weighs as much as one byte.
struct Link {
  double round_trip_seconds = 0.02;
  double bytes_per_second = 250e3;
  double records_per_second = 2e6;  // read and digested, at either end
};

// Of a record that one end wants to know of.
enum class Travels : std::uint8_t {
  nothing,  // that it is there is enough
  keys,     // each with its digest; the prediction takes a key for as large as its record
  records,
};

// What the plan knows of the two stores.
struct Known {
  Aggregate initiator;
  Aggregate responder;
  Estimate difference;  // A is the initiator
  // Of the first frontier: how many slots it has, how many of them differ, and the records of the
  // larger store in those. Without one: a single slot that differs, with everything.
  std::uint64_t slots = 1;
  std::uint64_t slots_differing = 1;
  std::uint64_t records_in_question = 0;
  std::uint64_t containers = 0;  // of the initiator's trie, in the range
  Travels to_initiator = Travels::records;
  bool stores = true;  // records travel to the responder
};

struct Prediction {
  Way way = Way::nothing;
  Estimated bytes;    // of everything but the records, the first exchange included
  Estimated payload;  // of the records that travel
  Estimated seconds;
  double round_trips = 0;

  // One after the other.
  Prediction& operator+=(const Prediction& other);
};

struct Plan {
  Prediction best;
  std::array<Prediction, 5> all;  // by Way
};

Plan make_plan(const Known& known, const Link& link);

// Records that the walk and the scan look for: the estimate, and some more, so that it is rarely
// exceeded.
double looked_for(const Estimate& difference);

}  // namespace semel
