// StateFile: what `semel sift --state FILE` keeps between runs.
//
// Contract  A state is the options that it depends on and the windows of a judge. It is read only
//           with the same options, and only if all of it is sound. The file always holds one whole
//           state: a new one is written beside it, made durable, and put in its place.
//           One process at a time has a file: it is locked from open() to the end.
// Format    docs/formats/sift_state_v1.md.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/files.h"
#include "cli/judge.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel::cli {

// Names and values as on the command line, in an order that never changes.
using StateOptions = std::vector<std::pair<std::string, std::string>>;
inline constexpr const char* kFlag = "yes";  // the value of an option that takes none

// Hands the pieces of a state to `put`, one after another. Stops after the first error.
Result<void> encode_state(const StateOptions& options, const Judge& judge,
                          const std::function<Result<void>(ByteView)>& put);

// Reads a state that fills `in` exactly; `in` is untrusted. Errc::invalid if the state is sound but
// belongs to other options. After an error the judge is unusable.
Result<void> decode_state(ByteView in, const StateOptions& options, Judge& judge);

class StateFile {
 public:
  // Opens and locks the file, and makes an empty one if there is none. Refuses a symbolic link, a
  // FIFO and a device: saving a state replaces the file.
  Result<void> open(const std::string& path);

  Result<void> load(const StateOptions& options, Judge& judge);
  // Writes a state and waits until it is on the disk.
  Result<void> save(const StateOptions& options, const Judge& judge);

  const FileId& id() const { return id_; }

 private:
  Error cannot_use(const char* why) const;

  std::string path_;
  std::string name_;  // for messages
  File file_;
  FileId id_{};
};

}  // namespace semel::cli
