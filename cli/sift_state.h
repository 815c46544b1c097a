// What `semel sift --state FILE` keeps between runs.
//
// Contract  A state is the options that it depends on and the windows of a judge. It is read only with
//           the same options, and only if all of it is sound. A file always holds one whole state: a new
//           one is written beside it, made durable, and put in its place.
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

namespace semel::cli {

// Names and values as on the command line, in an order of their own.
using StateOptions = std::vector<std::pair<std::string, std::string>>;

// Puts the pieces of a state, one after another, where `put` takes them; stops if that says so.
bool encode_state(const StateOptions& options, const Judge& judge,
                  const std::function<bool(ByteView)>& put);

struct StateProblem {
  std::string text;      // empty: none
  bool options = false;  // the state is sound, and of other options
};
// Reads a state that fills `in` exactly; `in` may come from an enemy. After a problem the judge is of
// no use.
StateProblem decode_state(ByteView in, const StateOptions& options, Judge& judge);

class StateFile {
 public:
  // Opens and locks the file, and makes an empty one if there is none. A symbolic link, a FIFO or a
  // device is refused: a state is replaced, and they would not be. What is wrong; empty: nothing.
  std::string open(const std::string& path);

  StateProblem load(const StateOptions& options, Judge& judge);
  // What is wrong; empty: nothing, and the state is on the disk.
  std::string save(const StateOptions& options, const Judge& judge);

  const FileId& id() const { return id_; }

 private:
  std::string cannot_use(std::string_view why) const;

  std::string path_;
  std::string name_;  // for messages
  File file_;
  FileId id_{};
};

}  // namespace semel::cli
