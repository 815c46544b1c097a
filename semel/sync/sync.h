// The words that both ends of a sync share, and what it reports.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "semel/store/key_range.h"
#include "semel/sync/plan.h"
#include "semel/sync/resolver.h"

namespace semel {

enum class Purpose : std::uint8_t {
  plan,    // estimate, predict, and stop
  diff,    // find the keys that differ; nothing is written at either end
  repair,  // find them and make both ends agree
};

enum class Where : std::uint8_t { initiator, responder, both };  // both: with different values

struct SyncLimits {
  std::uint32_t frame_bytes = 16U << 20;      // of one frame, either way
  std::uint64_t stretch_records = 1'000'000;  // that differ, looked for at a time
  std::uint32_t most_passes = 4;              // over one stretch, until the proof holds
};

struct SyncSettings {
  Purpose purpose = Purpose::repair;
  KeyRange range = {};
  Resolver resolver = {};
  Link link = {};
  std::optional<Way> way = {};  // instead of the plan's choice
  // The records that differ, at both ends together, instead of an estimate. A wrong number costs
  // bytes and round trips, nothing else.
  std::optional<double> assumed_difference = {};
  SyncLimits limits = {};
  std::uint64_t seed = 0;  // picks the bits of shortened digests; another for each sync
  // Told every key that differs, once, in no order. Diff only.
  std::function<void(std::string_view key, Where where)> on_difference = {};
};

struct SyncReport {
  Way way = Way::nothing;        // of the stretch with the largest difference
  Prediction predicted;          // all stretches together
  Plan plan;                     // of the stretch with the largest difference
  std::uint64_t bytes_sent = 0;  // by the initiator, frames that were sent again not counted
  std::uint64_t bytes_received = 0;
  std::uint64_t first_bytes = 0;    // of these: the first exchange, both ways
  std::uint64_t payload_bytes = 0;  // of these: keys and values of records
  std::uint32_t round_trips = 0;
  std::uint32_t passes = 0;
  Aggregate initiator;  // as of the first exchange
  Aggregate responder;
  Estimate estimate;
  // Keys that differed when the sync met them, each counted once. An answer that is lost and asked
  // for again may let a changed key count as one of each end instead.
  std::uint64_t only_initiator = 0;
  std::uint64_t only_responder = 0;
  std::uint64_t changed = 0;  // keys with different values
  std::uint64_t written_here = 0;
  std::uint64_t written_there = 0;
  std::uint64_t removed_here = 0;
  std::uint64_t removed_there = 0;
  // What was found explains the difference of the full digests to the last bit. False if records
  // were written meanwhile: then what is left is as recent as that.
  bool proved = false;

  std::uint64_t overhead() const {
    return bytes_sent + bytes_received - first_bytes - payload_bytes;
  }
  std::uint64_t differences() const { return only_initiator + only_responder + changed; }
};

struct SyncProgress {
  std::uint64_t records = 0;       // of the initiator, in the range
  std::uint64_t records_done = 0;  // in stretches that are finished
  std::uint64_t differences = 0;   // expected in the present stretch
  std::uint64_t found = 0;         // of these
  std::uint64_t repaired = 0;      // of these
  double seconds_left = 0;         // predicted for the present stretch
  std::string resume_from;         // a sync of the range from here on does what is left
};

}  // namespace semel
