// SiftRun: the stream from the inputs to the outputs, over several threads.
//
// Contract  The output does not depend on the number of threads: records come out in the order in
//           which they came in. Records that are decided are written before the next wait for
//           input, so that `tail -f | semel sift` shows them at once.
//           An input that cannot be read is reported, and the others are still sifted. A record
//           that cannot be read is reported with its line; it stops the run, is skipped or is
//           passed on, as chosen. An output that cannot be written ends the run.
//           SIGINT, SIGTERM and SIGHUP end the run as the end of the input would; a second one
//           kills.
// Stages    Each thread takes a chunk through all stages. A turnstile keeps the order where it
//           counts:
//
//             read (in order) -> parse -> sequence (in order) -> judge (in order at each slice)
//                  -> assemble -> write (in order)
//
// State     The thread that reads saves the state, once everything that was read is written. So
//           everything in a state has been written, and a crash loses nothing. Everything that was
//           written before a save is in the state, and is not let through again.
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
  std::optional<TimeMs> window_ms;  // with times in the records: an older one cannot be judged
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
  int signal = 0;        // the signal that ended it, or 0
};

// Runs to the end and fills the counts of `report`. `state` may be nullptr.
SiftEnd run_sift(const SiftPlan& plan, Judge& judge, SiftOutputs& outputs, StateFile* state,
                 const StateOptions& options, SiftReport& report);

}  // namespace semel::cli
