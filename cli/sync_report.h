// The result of a sync, a diff or a plan, as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "semel/sync/plan.h"
#include "semel/sync/sync.h"

namespace semel::cli {

struct SyncSummary {
  SyncReport report;
  double seconds = 0;
  bool repairs = false;  // true if records were to be written

  std::string text() const;  // what was predicted beside what happened
  std::string json() const;  // one object on one line
};

struct PlanSummary {
  SyncReport report;

  std::string text() const;
  std::string json() const;
};

// Returns a line for a terminal: what is found, what is left, and when it ends. `seconds`: since
// the start.
std::string progress_text(const SyncProgress& progress, double seconds);

}  // namespace semel::cli
