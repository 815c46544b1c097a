// Judge: tells the first of each key from its duplicates, for chunks that come from several threads.
//
// Contract  The answers are those of one thread that takes the chunks by their numbers and the records
//           of each in order, whatever the threads do: output never depends on their number.
// Slices    Keys are spread over windows of their own (semel/slices/placement.h). With horizontal slices
//           a chunk goes from one to the next while another chunk follows it: as many threads work as
//           there are slices. Other layouts and trees are taken by one chunk at a time.
// State     The windows can be written and read, a section each, while no chunk is on its way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/chunk.h"
#include "cli/tree_plan.h"
#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/slices/placement.h"
#include "semel/window/window.h"

namespace semel::cli {

// What recognises keys, and for how long.
struct Memory {
  std::optional<TimeMs> window_ms;  // none: for ever
  bool exact = false;
  double error = 0;  // unless exact: of the whole, however it is sliced
  HashId hash = {};
  TimeMs now_ms = 0;
};

// How far the judge is to be trusted, and what it takes.
struct Trust {
  double error_now = 0;  // that a new key is taken for a duplicate, at this moment
  std::uint64_t bytes = 0;
  std::uint64_t windows = 0;
  const char* kind = "slice";  // what each of them is, or "node"
};

class Judge {
 public:
  virtual ~Judge() = default;

  // Turns every unknown fate of the chunk into `first` or `duplicate`. False if one cannot be told: then
  // all is over, and problem() says why. REQUIRES: called once for each number, 0, 1, 2, ..., in ascending order on each thread.
  virtual bool judge(Chunk& chunk) = 0;
  // The chunk is written: what it let through need not be let through again. False as of judge().
  // REQUIRES: called once for each number, in ascending order, while others are being judged.
  virtual bool written(const Chunk&) { return true; }
  // May be asked from any thread.
  virtual std::string problem() const {
    return "cannot recognise more keys: the filters are as large as they can be";
  }

  // As of some moment not long ago: may be asked at any time, from any thread.
  virtual Trust recent() const = 0;
  // Asks for fresh figures: they will be in recent() when each window has been used again.
  virtual void refresh() = 0;

  // REQUIRES, of all below: no chunk is being judged.

  // The time that the windows have come to.
  virtual TimeMs now() const = 0;
  virtual Trust trust() const = 0;
  virtual std::size_t sections() const = 0;
  virtual void encode(std::size_t section, Sink out) const = 0;
  // Gets ready for so many sections; false if there cannot be so many.
  virtual bool prepare(std::uint64_t sections) { return sections == this->sections(); }
  // All sections, one after another from 0 on. An error leaves a judge that is of no use.
  virtual Result<void> decode(std::size_t section, ByteView in) = 0;
  // If there is more to say: lines for the summary, and members of its JSON, each after a comma.
  virtual std::string details() const { return ""; }
  virtual std::string json_details() const { return ""; }
};

inline constexpr std::uint32_t kDefaultSlices = 16;

// REQUIRES: the record was not too old to be judged; those have a fate before they come to a judge.
inline Fate fate_of(Verdict verdict) {
  SEMEL_ASSERT(verdict != Verdict::stale);
  return verdict == Verdict::fresh ? Fate::first : Fate::duplicate;
}

// Horizontal slices, as many threads as there are of them. REQUIRES: 0 < slices.
Result<std::unique_ptr<Judge>> make_judge(const Memory& memory, std::uint32_t slices);
// Any layout, one chunk at a time. Errc::invalid for a shape that is none.
Result<std::unique_ptr<Judge>> make_sliced_judge(const Memory& memory,
                                                 const Placement::Shape& shape);
// A tree, one chunk at a time; chunks have places. On failure `problem` says more, if there is more to say.
// REQUIRES: `remote` is there if the plan is remote().
struct RemoteSettings;
Result<std::unique_ptr<Judge>> make_tree_judge(const Memory& memory, const TreePlan& plan,
                                               const RemoteSettings* remote, std::string& problem);

}  // namespace semel::cli
