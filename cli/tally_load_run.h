// TallyLoad: the work of `semel tally load`, which applies records of inputs to a table.
//
// Contract  Records are applied in their order, some thousand at a time, and before the next wait
//           for input. A record that is not counted is reported with its line. A record that cannot
//           be read is skipped, or ends the run after all records before it are applied.
//           An input that cannot be read is reported, and the next one is read.
//           SIGINT, SIGTERM and SIGHUP end the run as the end of the input would; a second one
//           kills.
#pragma once

#include <cstdint>
#include <string>

#include "cli/chunk_reader.h"
#include "cli/tally_table.h"

namespace semel::cli {

enum class IdForm : std::uint8_t { none, opaque, numbered };

struct TallyLoadPlan {
  // questions.key: the fields of counter, delta, and id or client and sequence.
  ChunkReader::Plan input;
  IdForm ids = IdForm::opaque;
  bool skip_unreadable = false;
  bool progress = false;
};

struct TallyLoadReport {
  std::uint64_t records = 0;
  std::uint64_t applied = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t stale = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t overflows = 0;
  std::uint64_t full = 0;
  std::uint64_t unreadable = 0;
  TimeMs window_ms = 0;  // of the table
  std::string window;    // for people; empty: records without ids have none
  double expected_undercount = 0;
  std::uint64_t memory_bytes = 0;
  double seconds = 0;

  std::uint64_t refused() const { return conflicts + overflows + full; }
  std::string summary() const;   // for people
  std::string json() const;      // one object on one line
  std::string progress() const;  // less than a line of a terminal
};

struct TallyLoadEnd {
  bool sound = true;     // the table could be read and written
  bool complete = true;  // all inputs were read, and no record stopped the run
  int signal = 0;        // the signal that ended it, or 0
};

TallyLoadEnd run_tally_load(const TallyLoadPlan& plan, TallyTable& table, TallyLoadReport& report);

}  // namespace semel::cli
