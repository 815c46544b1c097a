// What a sync, a diff or a plan found and did, as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "semel/sync/plan.h"
#include "semel/sync/sync.h"

namespace semel::cli {

struct SyncSummary {
  SyncReport report;
  double seconds = 0;
  bool repairs = false;     // records were to be written
  bool stopped = false;     // before the end
  std::string resume_from;  // if stopped: the first key that is not done with

  std::string text() const;  // what was predicted beside what happened
  std::string json() const;  // one object on one line
};

struct PlanSummary {
  SyncReport report;

  std::string text() const;
  std::string json() const;
};

// For a terminal's line: what is found, what is left, when it ends. `seconds`: since the start.
std::string progress_text(const SyncProgress& progress, double seconds);

// A string of JSON. REQUIRES: printable ASCII.
std::string json_text(std::string_view text);

}  // namespace semel::cli
