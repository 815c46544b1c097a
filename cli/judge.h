// Judge: tells the first of each key from its duplicates, for chunks that come from several
// threads.
//
// Contract  The answers are those of a single thread that takes chunks by their numbers, and the
//           records of each in order. So output never depends on the number of threads.
// Slices    Keys are spread over slices, each with its own window (semel/slices/placement.h). With
//           horizontal slices a chunk goes from slice to slice while another chunk follows it, so
//           as many threads work as there are slices. Other layouts and trees take one chunk at a
//           time.
// State     The windows can be written and read, a section each, while no chunk is being judged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/chunk.h"
#include "cli/json_object.h"
#include "cli/tree_plan.h"
#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/slices/placement.h"
#include "semel/window/window.h"

namespace semel::cli {

// The way in which keys are recognised, and the time for which they are.
struct Memory {
  std::optional<TimeMs> window_ms;  // none: for ever
  bool exact = false;
  double error = 0;  // unless exact: of the whole, however it is sliced
  HashId hash = {};
  TimeMs now_ms = 0;
};

// The error of the judge, and its memory.
struct Trust {
  double error_now = 0;  // that a new key is taken for a duplicate, at this moment
  std::uint64_t bytes = 0;
  std::uint64_t windows = 0;
  const char* kind = "slice";  // what each of them is, or "node"
};

class Judge {
 public:
  virtual ~Judge() = default;

  // Turns every unknown fate of the chunk into `first` or `duplicate`. After an error the run must
  // end. REQUIRES: called once for each number, 0, 1, 2, ..., in ascending order on each thread.
  virtual Result<void> judge(Chunk& chunk) = 0;
  // Notes that the chunk is written, so its records need not be let through again. After an error
  // the run must end.
  // REQUIRES: called once for each number, in ascending order, while others are being judged.
  virtual Result<void> written(const Chunk&) { return {}; }

  // Returns recent figures. May be asked at any time, from any thread.
  virtual Trust recent() const = 0;
  // Asks for fresh figures. They are in recent() after each window has been used again.
  virtual void refresh() = 0;

  // REQUIRES for all below: no chunk is being judged.

  // Returns the time of the windows.
  virtual TimeMs now() const = 0;
  virtual Trust trust() const = 0;
  virtual std::size_t sections() const = 0;
  virtual void encode(std::size_t section, Sink out) const = 0;
  // Prepares for this number of sections. Returns false if there cannot be that many.
  virtual bool prepare(std::uint64_t sections) { return sections == this->sections(); }
  // Reads a section. Call it for all sections, from 0 on. After an error the judge is unusable.
  virtual Result<void> decode(std::size_t section, ByteView in) = 0;
  // These return more lines for the summary, and more fields of its JSON.
  virtual std::string details() const { return ""; }
  virtual JsonObject json_details() const { return {}; }
};

// The error of a judge here whose windows have no room for more keys.
inline Error no_room() {
  return {Errc::full, "cannot recognise more keys: the filters are as large as they can be"};
}

inline constexpr std::uint32_t kDefaultSlices = 16;

// REQUIRES: the record was not too old. Such records have a fate before they come to a judge.
inline Fate fate_of(Verdict verdict) {
  SEMEL_ASSERT(verdict != Verdict::stale);
  return verdict == Verdict::fresh ? Fate::first : Fate::duplicate;
}

// The keys that all windows together have room for at first: kFirstKeys in windows without an end,
// kFirstIds in others, which follow the load. A smaller first filter would save little, and a
// longer series of filters costs bits. Ten million keys take 68 MiB in 4 filters, and 80 MiB in 8
// filters that begin with 1 << 16.
inline constexpr std::uint64_t kFirstKeys = 1 << 20;
inline constexpr std::uint64_t kFirstIds = 1 << 18;

// Returns the goal of a window for this share of all keys, with this error unless it is exact.
Window::Goal window_goal(const Memory& memory, double share, double error);
// Returns a window from bytes, of the same goal as the model.
Result<Window> decode_like(const Window& model, ByteView in);

// Makes horizontal slices that work in as many threads. REQUIRES: 0 < slices.
Result<std::unique_ptr<Judge>> make_parallel_judge(const Memory& memory, std::uint32_t slices);
// Makes slices of any layout, which take one chunk at a time. Errors: Errc::invalid for an unsound
// shape.
Result<std::unique_ptr<Judge>> make_sliced_judge(const Memory& memory,
                                                 const Placement::Shape& shape);
// Makes a tree, which takes one chunk at a time. Chunks have places. REQUIRES: `remote` is
// there if the plan is remote().
struct RemoteSettings;
Result<std::unique_ptr<Judge>> make_tree_judge(const Memory& memory, const TreePlan& plan,
                                               const RemoteSettings* remote);

}  // namespace semel::cli
