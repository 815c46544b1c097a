// TallySite: a site of a simulated table. It is a real TallyStore on a store that loses unsynced
// writes.
//
// It has its own clock, can be killed and restarted, and throws a Violation as soon as it has lost
// something that it must keep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/core/result.h"
#include "semel/crdt/version_vector.h"
#include "semel/tally/store/tally_store.h"
#include "tests/simulation/failing_store.h"
#include "tests/simulation/tally_faults.h"
#include "tests/support/crashing_store.h"

namespace semel::simulation {

// Violation: thrown when the simulation finds something that must not happen.
struct Violation {
  enum class Kind : std::uint8_t {
    lost,     // an operation that was acknowledged does not count
    doubled,  // one counts twice
    other,
  };
  Kind kind = Kind::other;
  std::string text = {};
};

// DiskFailed: thrown by calls of a site whose disk has failed. The site must be started again.
struct DiskFailed {};

inline void require(bool holds, std::string text, Violation::Kind kind = Violation::Kind::other) {
  if (!holds) throw Violation{kind, std::move(text)};
}
template <class T>
void require(const Result<T>& result, const char* what) {
  if (result) return;
  if (result.error().code == Errc::io) throw DiskFailed{};
  throw Violation{Violation::Kind::other, std::string(what) + ": " + result.error().message()};
}

// Skew: the error of a site's clock.
struct Skew {
  TimeMs offset_ms = 0;
  double drift = 0;
};

class TallySite {
 public:
  TallySite(SiteId id, const tally::TallyStore::Settings& settings, TallyFault fault,
            const Skew& skew);

  SiteId id() const { return id_; }
  bool up() const { return table_ != nullptr; }
  tally::TallyStore& table() { return *table_; }  // REQUIRES: up(), for this and all that follow
  VersionVector held() const { return table_->info().held; }
  const VersionVector& durable() const { return durable_; }

  TimeMs clock(TimeMs now_ms) const;
  void step_clock(TimeMs by_ms) { skew_.offset_ms += by_ms; }
  // Lets its clock advance. Returns the latest time that it has shown so far.
  TimeMs see(TimeMs now_ms);

  void open(TimeMs now_ms);
  // Starts from a copy of a member's state. Returns an error if the member or the copy is refused.
  Result<void> open_as_copy_of(TallySite& member, TimeMs now_ms);

  // Stops the site. If the power fails, it loses some of its unsynced writes. REQUIRES: up().
  void crash(bool power_fails, Random& random);
  // Returns how many of its own operations it still has. REQUIRES: !up().
  std::uint64_t restart(TimeMs now_ms);

  // Lets the next write or sync of its disk fail; nullopt: none.
  void fail_next(std::optional<FailingStore::Failure> failure) { failing_.fail_next(failure); }
  // Checks that all calls fail after one has reported a failed disk. REQUIRES: up().
  void find_broken(TimeMs now_ms);

  void tick(TimeMs now_ms);
  void publish();
  // Notes what is on disk now and must stay there. Call it after calls of the table.
  void note();
  // Returns the entries that it shares. With some faults these are false, unless `honest`.
  Entries entries(bool honest);
  void take(const Entries& entries, bool join, TimeMs now_ms);

 private:
  OrderedStore& store();
  Result<void> open_as_blind_copy_of(TallySite& member, TimeMs now_ms);
  void note_refused(const Entries& entries);

  SiteId id_;
  tally::TallyStore::Settings settings_;
  TallyFault fault_;
  Skew skew_;
  ManualClock shown_{0};  // the time on its clock
  TimeMs latest_ms_;
  CrashingStore disk_;
  FailingStore failing_;
  IdFirstStore id_first_;
  ForgetfulStore forgetful_;
  std::unique_ptr<tally::TallyStore> table_;
  VersionVector durable_;        // what it must hold after any crash
  VersionVector held_at_crash_;  // and after a kill
  bool power_failed_ = false;
  bool broken_ = false;                       // its disk has failed since it was opened
  std::uint64_t said_ = 0, said_before_ = 0;  // of its own log
  VersionVector refused_;                     // of TallyFault::acknowledged_while_full
};

}  // namespace semel::simulation
