// SiftRun: the stream from the inputs to the outputs, over several threads.
//
// Contract  Output is the same whatever the number of threads: records come out in the order in which
//           they came in. Records decided are written before the next wait for input, so that
//           `tail -f | semel sift` shows them at once.
//           An input that cannot be read is reported and the others are still sifted; a record that
//           cannot be read is reported with its line, and stops the run, is skipped or is passed on, as
//           chosen; an output that cannot be written ends the run.
//           SIGINT, SIGTERM and SIGHUP end the run as the end of the input would; a second one
//           kills.
// Stages    Each thread takes a chunk through all of them; a turnstile keeps the order where it counts:
//
//             read (in order) -> parse -> sequence (in order) -> judge (in order at each slice)
//                  -> assemble -> write (in order)
//
// State     is saved by whoever reads, when all that was read is written: what a state knows has been
//           written, so that nothing is lost by a crash; and what was written before a state was saved is
//           in it, so that it is not let through again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/chunk_reader.h"
#include "cli/commands.h"
#include "cli/judge.h"
#include "cli/line_writer.h"
#include "cli/sift_report.h"
#include "cli/sift_state.h"

namespace semel::cli {

enum class OnError : std::uint8_t { stop, skip, pass };

struct SiftPlan {
  ChunkReader::Plan input;
  OnError on_error = OnError::stop;
  std::optional<TimeMs> window_ms;  // with times in the records: what is older cannot be judged
  std::uint64_t seed = 0;           // of the digests
  bool ids = false;                 // chunks have ids
  std::size_t threads = 1;
  TimeMs checkpoint_ms = 0;
  bool progress = false;
};

struct SiftOutputs {
  std::optional<LineWriter> first;       // none: they are only counted
  std::optional<LineWriter> duplicates;  // none: they are dropped
};

struct SiftEnd {
  bool sound = true;     // all that was read is written, and saved
  bool complete = true;  // all inputs were read, and no record stopped the run
  int signal = 0;        // that ended it
};

// Fills the counts of `report`. `state` may be none.
SiftEnd run_sift(const SiftPlan& plan, Judge& judge, SiftOutputs& outputs, StateFile* state,
                 const StateOptions& options, SiftReport& report);

}  // namespace semel::cli
