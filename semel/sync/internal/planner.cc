#include "semel/sync/internal/planner.h"

#include <algorithm>
#include <cmath>

#include "semel/sync/internal/budget.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/internal/frontier.h"

namespace semel::sync_internal {
namespace {

// Bytes of the parts of docs/formats/sync_frames_v1.md.
constexpr double kFrame = frame::kHeaderBytes + frame::kChecksumBytes + 7;  // with its scope
constexpr double kFirst = 1100;  // the first exchange, without its frontier
constexpr double kSlot = 3.32;   // of a frontier
constexpr double kPath = 1.8;    // of a node by itself
constexpr double kNumber = 2;    // of a record that is requested
constexpr double kDigest = sizeof(Digest);
// Seconds that were measured in addition to the scan of records.
constexpr double kSeek = 8e-6;  // to a slot's records
constexpr double kSum = 3e-6;   // of a slot

struct Numbers {
  double only_a;
  double only_b;
  double total;
  double keys;  // that differ, at least
  double question;
  double slots;      // of the first frontier
  double differing;  // of these

  explicit Numbers(const PlanInputs& known)
      : only_a(known.difference.only_a.value),
        only_b(known.difference.only_b.value),
        total(std::max(known.difference.total.value, 1.0)),
        keys(std::max({only_a, only_b, 1.0})),
        question(static_cast<double>(std::max<std::uint64_t>(known.records_in_question, 1))),
        slots(static_cast<double>(std::max<std::uint64_t>(known.slots, 1))),
        differing(static_cast<double>(std::clamp<std::uint64_t>(
            known.slots_differing, 1, std::max<std::uint64_t>(known.slots, 1)))) {}
};

double mean_volume(const Aggregate& sum) {
  return sum.count == 0 ? 0 : static_cast<double>(sum.volume) / static_cast<double>(sum.count);
}

// The slots that a finer frontier would show.
struct Finer {
  double differing;  // slots that differ
  double whole = 0;  // of these, slots of which all records differ
};

// If fewer slots of the first frontier differ than chance predicts, the differences lie in
// clusters.
Finer finer(const Numbers& n, double slots) {
  const double expected = n.slots * (1 - std::exp(-n.keys / n.slots));
  if (n.differing > 0.8 * expected || n.differing >= n.slots) {
    return {slots * (1 - std::exp(-n.keys / slots))};
  }
  const double clusters = -n.slots * std::log(1 - n.differing / n.slots);
  const double across = std::max(0.0, n.keys / clusters - 1) * slots / n.question;
  return {std::min(slots, clusters * (1 + across)), clusters * std::max(0.0, across - 1)};
}

SyncPrediction walk(const PlanInputs& known, const SyncLink& link, const Numbers& n) {
  SyncPrediction p{SyncWay::walk, {}, {}, {}, 3};
  // No slot is smaller than a container.
  const double containers = static_cast<double>(known.containers) * n.question /
                                std::max<double>(static_cast<double>(known.initiator.count), 1) +
                            n.differing;
  const double looked = looked_for(known.difference);
  double slots = std::min(static_cast<double>(budget::walk_slots(looked)), containers);
  slots = std::max(slots, n.differing);
  double bytes = 0;
  const Finer fine = finer(n, slots);
  double differing = fine.differing;
  double leaf = n.question / slots;
  bytes += slots * (kSlot + 0.125);
  // A slot in which the other end has nothing needs no details in its answer. A cluster that the
  // other end lacks ends in the middle of a slot.
  double missing = 0;
  if (n.only_b < 0.1 * n.total && fine.whole > 0) {
    differing = std::max(1.0, differing - fine.whole);
    missing = 0.5;
  }
  while (leaf > static_cast<double>(budget::detail(looked))) {  // in another round trip
    leaf /= budget::kDeeperSlots;
    bytes += differing * (budget::kDeeperSlots * (kSlot + 0.125) + kPath);
    p.round_trips += 1;
  }
  const double capacity = budget::slot_capacity(static_cast<std::uint64_t>(std::ceil(looked)),
                                                static_cast<std::uint64_t>(std::ceil(differing)));
  const double there = leaf * (1 - missing);
  const double detail = capacity == 0 ? there : std::min(capacity, there);
  bytes += n.differing * kPath + differing * (0.25 + 4 * detail);
  bytes += std::min(differing, n.only_b) * (kPath + 0.4) + n.only_b * kNumber + 5 * kFrame;
  p.bytes.value = bytes;
  p.seconds.value =
      (2 * differing + std::min(differing, n.only_b)) * leaf / link.records_per_second +
      3 * differing * kSeek + 2 * slots * kSum;
  return p;
}

SyncPrediction sketch(const PlanInputs& known, const SyncLink& link, const Numbers& n) {
  const budget::Partition partition = budget::partition(looked_for(known.difference));
  SyncPrediction p{SyncWay::sketch, {}, {}, {}, 3};
  p.bytes.value = static_cast<double>(partition.bytes()) + n.differing * 2 * kPath +
                  n.only_b * kNumber + partition.partitions * 2.0 + 5 * kFrame;
  p.seconds.value = 2 * n.question / link.records_per_second + n.total * 8e-6;
  return p;
}

SyncPrediction list(const PlanInputs& known, const SyncLink& link, const Numbers& n) {
  SyncPrediction p{SyncWay::list, {}, {}, {}, 3};
  const double there = std::min(n.question, static_cast<double>(known.responder.count));
  const double slots = n.question / 1024 + n.differing;
  p.bytes.value = 4 * there + slots * (kSlot + 0.4) + n.only_b * (kNumber + 0.1) + 5 * kFrame;
  p.seconds.value = 2 * n.question / link.records_per_second;
  return p;
}

SyncPrediction copy(const PlanInputs& known, const SyncLink& link, const Numbers& n) {
  SyncPrediction p{SyncWay::copy, {}, {}, {}, known.stores ? 3.0 : 2.0};
  const double there = std::min(n.question, static_cast<double>(known.responder.count));
  p.payload.value = there * mean_volume(known.responder);
  if (known.stores) p.payload.value += n.only_a * mean_volume(known.initiator);
  p.bytes.value = n.differing * kPath + 5 * kFrame;
  if (known.to_initiator == Travels::keys) p.bytes.value += there * kDigest;
  p.seconds.value = n.question / link.records_per_second;
  return p;
}

}  // namespace
}  // namespace semel::sync_internal

semel::SyncPrediction& semel::SyncPrediction::operator+=(const SyncPrediction& other) {
  const auto add = [](Estimated& to, const Estimated& more) {
    to.value += more.value;
    to.error = std::hypot(to.error, more.error);
  };
  add(bytes, other.bytes);
  add(payload, other.payload);
  add(seconds, other.seconds);
  round_trips += other.round_trips;
  return *this;
}

namespace semel::sync_internal {

double looked_for(const DifferenceEstimate& difference) {
  return std::ceil(difference.total.value + 1.5 * difference.total.error);
}

SyncPlan make_plan(const PlanInputs& known, const SyncLink& link) {
  SyncPlan plan;
  const Numbers n(known);
  const bool equal = known.initiator == known.responder;
  plan.all[0] = {SyncWay::nothing, {kFirst, 0}, {}, {link.round_trip_seconds, 0}, 1};
  plan.all[1] = walk(known, link, n);
  plan.all[2] = sketch(known, link, n);
  plan.all[3] = list(known, link, n);
  plan.all[4] = copy(known, link, n);
  const double uncertain = known.difference.total.error / n.total;
  for (SyncPrediction& p : plan.all) {
    if (p.way == SyncWay::nothing) continue;
    if (p.way != SyncWay::copy) {
      if (known.to_initiator != Travels::nothing) {
        p.payload.value += n.only_b * mean_volume(known.responder);
      }
      if (known.to_initiator == Travels::keys) p.bytes.value += n.only_b * kDigest;
      if (known.stores) p.payload.value += n.only_a * mean_volume(known.initiator);
    }
    p.seconds.value += p.round_trips * link.round_trip_seconds +
                       (p.bytes.value + p.payload.value) / link.bytes_per_second;
    p.bytes.error =
        p.way == SyncWay::list || p.way == SyncWay::copy ? 0 : p.bytes.value * uncertain;
    p.payload.error = p.way == SyncWay::copy ? 0 : p.payload.value * uncertain;
    p.seconds.error = (p.bytes.error + p.payload.error) / link.bytes_per_second;
    p.bytes.value += kFirst + static_cast<double>(known.slots) * kSlot;
  }
  plan.best = plan.all[0];
  if (equal) return plan;
  plan.best = plan.all[1];
  for (const SyncPrediction& p : plan.all) {
    const bool possible = p.way != SyncWay::nothing &&
                          (p.way != SyncWay::copy || known.to_initiator != Travels::nothing);
    if (possible && p.seconds.value < plan.best.seconds.value) plan.best = p;
  }
  return plan;
}

}  // namespace semel::sync_internal
