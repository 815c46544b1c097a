// sync(): makes two stores agree, at a cost in proportion to their difference.
//
//   Responder responder(*there, {});       // at the other end
//   LocalPeer peer(responder);             // or any other SyncPeer
//   const Result<SyncReport> report = sync(*here, peer, {.seed = 1});
//
// Contract  If the report says `proved`, both ends agreed on the range at the instant of their
//           first exchange. Under join or newest they hold the same records afterwards, except for
//           records written meanwhile, which the next sync finds. Nothing outside the range is read
//           or written. An error or a stop leaves both ends sound, with part of the repairs done.
// Memory    Grows with the difference of one stretch, not with the store.
// Threads   Any number of syncs may run at once, also on one store.
// Format    docs/formats/sync_frames_v1.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "semel/core/api.h"
#include "semel/core/result.h"
#include "semel/index/indexed_store.h"
#include "semel/store/key_range.h"
#include "semel/sync/peer.h"
#include "semel/sync/plan.h"
#include "semel/sync/resolver.h"

namespace semel {

enum class SyncPurpose : std::uint8_t {
  plan,    // only estimates and predicts
  diff,    // finds the keys that differ, and writes at neither end
  repair,  // finds them and makes both ends agree
};

// The end that has a key that differs.
enum class DifferenceSide : std::uint8_t {
  initiator,
  responder,
  both,  // with different values
};

struct SyncLimits {
  std::uint32_t frame_bytes = 16U << 20;      // the largest frame, either way
  std::uint64_t stretch_records = 1'000'000;  // differences to look for at a time
  std::uint32_t most_passes = 4;              // over one stretch, until the proof holds
};

struct SyncProgress {
  std::uint64_t records = 0;       // the initiator's, in the range
  std::uint64_t records_done = 0;  // in stretches that are finished
  std::uint64_t differences = 0;   // expected in the present stretch
  std::uint64_t found = 0;         // of these differences
  std::uint64_t repaired = 0;      // of these differences
  double seconds_left = 0;         // predicted for the present stretch
  std::string resume_from;         // a sync of the range from here on does the rest
};

struct SyncSettings {
  SyncPurpose purpose = SyncPurpose::repair;
  KeyRange range = {};
  Resolver resolver = {};
  SyncLink link = {};
  std::optional<SyncWay> way = {};  // overrides the plan
  // Overrides the estimate of how many records differ, counted at both ends together. A wrong
  // number only costs bytes and round trips.
  std::optional<double> assumed_difference = {};
  SyncLimits limits = {};
  std::uint64_t seed = 0;  // picks the bits of short digests; use another one for each sync
  // Called once for every key that differs, in no order. Diff only.
  std::function<void(std::string_view key, DifferenceSide where)> on_difference = {};
  // Called after every answer. Returns false to stop the sync.
  std::function<bool(const SyncProgress& progress)> on_progress = {};
};

struct SyncReport {
  SyncWay way = SyncWay::nothing;  // of the stretch with the largest difference
  SyncPrediction predicted;        // all stretches together
  SyncPlan plan;                   // of the stretch with the largest difference
  std::uint64_t bytes_sent = 0;    // by the initiator
  std::uint64_t bytes_received = 0;
  std::uint64_t first_bytes = 0;    // of these: the first exchange, both ways
  std::uint64_t payload_bytes = 0;  // of these: keys and values of records
  std::uint32_t round_trips = 0;
  std::uint32_t passes = 0;
  Aggregate initiator;  // at the first exchange
  Aggregate responder;  // likewise
  DifferenceEstimate estimate;
  // Keys that differed when the sync met them, each counted once. If a lost answer is requested
  // again, a changed key may count once for each end.
  std::uint64_t only_initiator = 0;
  std::uint64_t only_responder = 0;
  std::uint64_t changed = 0;  // keys with different values
  std::uint64_t written_here = 0;
  std::uint64_t written_there = 0;
  std::uint64_t removed_here = 0;
  std::uint64_t removed_there = 0;
  // The findings explain the difference of the full digests to the last bit. This is false if
  // records were written meanwhile; then only these may be left.
  bool proved = false;
  bool stopped = false;     // before the end, by on_progress or the peer
  std::string resume_from;  // a sync of the range from here on does the rest

  std::uint64_t overhead() const {
    return bytes_sent + bytes_received - first_bytes - payload_bytes;
  }
  std::uint64_t differences() const { return only_initiator + only_responder + changed; }
};

// Compares this store with the one behind `peer`, and repairs them if `settings` say so. If the
// peer refuses, the error is marked from_peer, and its detail is what the peer said.
// REQUIRES: nothing is sent to the peer meanwhile, and no answers wait there.
SEMEL_API Result<SyncReport> sync(IndexedStore& store, SyncPeer& peer,
                                  const SyncSettings& settings);

}  // namespace semel
