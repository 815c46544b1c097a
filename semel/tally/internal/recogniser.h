// Recogniser: recognises retries of the operations on all counters of a table.
//
// Kinds     clients   numbered ids meet a ClientWindow, opaque ids a forgetful Window; the default
//           filter    all ids meet a forgetful Window: no memory for each client
//           exact     all ids meet an exact Window, together with their contents: an id that comes
//                     again with another counter or delta is a conflict, not a retry
// Contract  The contract of window/window.h holds: an inserted id is recognised for the window. A
//           new id is taken for a retry with the probability false_positive_rate(). This concerns
//           only opaque ids, or all ids with `filter`. expected_undercount() is the sum of these
//           probabilities over all judged ids. An operation without an id is always new, and is
//           not remembered.
// Full      `clients` has two windows, with half of max_bytes each. An exact window that forgets
//           early forgets an id together with its content.
// Memory    Bytes for a remembered operation, a million of them in a window
//           (bench/papers/recogniser_memory.cc):
//
//             fpr                                1e-3    1e-6
//             clients, 1000 numbered each         0.7     0.7
//             clients opaque, filter              3.0     6.0
//             exact                                63      63
//
//           A table made for 65,536 opaque ids grows. At 1e-6 it takes 9.1 bytes an id when a
//           million come in the first window, and 7.0 from the next window on.
// Cost      Batched: 0.1 us for an id of `clients` and `filter`. 1.8 us for an id of `exact`, which
//           looks for two digests in five tables, and again if they are new.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/tally_recogniser_v1.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/tally/operation.h"
#include "semel/tally/recognition.h"
#include "semel/window/client_window.h"
#include "semel/window/window.h"

namespace semel::tally::internal {

class Recogniser {
 public:
  using Goal = Recognition;
  using Kind = Recognition::Kind;

  // An id, and a digest of the kind, the counter and the delta of the operation. Only `exact` reads
  // the digest (wants_content()).
  struct Query {
    OperationId id;
    Digest content = {0, 0};
  };

  static constexpr std::uint64_t kLeastBytes = Recognition::kLeastBytes;
  static constexpr std::uint64_t kSettled = 1024;

  // Errors: Errc::invalid unless window_ms > 0, is_error_rate(fpr), ids > 0 and max_bytes >=
  // kLeastBytes; Errc::limit for more than 2^38 ids, or if the first table of the filter is larger
  // than its share.
  static Result<Recogniser> make(const Goal& goal, TimeMs now_ms);

  bool wants_content() const { return goal_.kind == Kind::exact; }

  // These answer as far as the id decides: applied for a new id, never overflow.
  // REQUIRES: the spans are of equal size, and the digests were made by goal().hash.
  void test(std::span<const Query> queries, std::span<Outcome> answers) const;
  // Judges and inserts in order: an id that comes twice is known the second time.
  void test_and_insert(std::span<const Query> queries, std::span<Outcome> answers);
  Outcome test(const Query& query) const { return test(query, now()); }
  Outcome test(const Query& query, TimeMs now_ms) const;  // the same after advance(now_ms)
  Outcome test_and_insert(const Query& query);
  // Prefetches what test_and_insert() will read.
  void touch(const OperationId& id) const;
  // Remembers the id from `at_ms` on, even if it is known, because another site took it or a log
  // contains it. Returns applied if it is remembered now, full if there is no room, stale if
  // `at_ms` has left the window.
  Outcome insert(const Query& query, TimeMs at_ms);
  // Does the same after a restart, when windows are filled in other steps and may need more memory
  // for the same ids. An accepted id must stay known, so instead of being refused it may exceed
  // max_bytes. New ids are refused until enough ids have left.
  Outcome recall(const Query& query, TimeMs at_ms);

  // These do what window/client_window.h says, and do nothing unless the kind is clients.
  std::optional<std::uint64_t> forgotten(const Digest& client) const {
    return clients_ ? clients_->forgotten(client) : std::nullopt;
  }
  void restore_forgotten(const Digest& client, std::uint64_t sequence) {
    if (clients_) clients_->restore_forgotten(client, sequence);
  }

  // Returns true if this many more ids need no large block (limits::kSmallBlock).
  bool takes(std::uint64_t ids) const;

  void advance(TimeMs now_ms);
  TimeMs now() const;
  WindowPromise promise() const;  // of all ids: the weakest of its windows
  WindowCounts counts() const;    // of all windows together, since it was made or decoded
  // Counts an operation that a caller found stale by test(), and refused without an insert.
  void count_stale() { ++stale_; }
  double false_positive_rate() const;
  // Returns the expected number of new operations that were taken for retries; refused ones count
  // too. The rate is computed once for every kSettled ids.
  double expected_undercount() const;
  std::uint64_t bytes() const;
  const Goal& goal() const { return goal_; }

  void encode(Sink out) const;
  static Result<Recogniser> decode(ByteView in);

  // Compares what is remembered, not counts() and expected_undercount().
  bool operator==(const Recogniser& other) const;

 private:
  explicit Recogniser(const Goal& goal) : goal_(goal) {}

  Window* filter();
  // REQUIRES: wants_content().
  window_internal::ExactWindow* exact();
  const window_internal::ExactWindow* exact() const;
  Outcome test_exact(Digest id, Digest content, TimeMs now_ms) const;
  Outcome take_exact(Digest id, Digest content);
  void take_exact(std::span<const Query> queries, std::span<Outcome> answers);
  Outcome take_new_exact(Digest id, Digest content);
  Outcome remember_exact(Digest id, Digest content, TimeMs at_ms);
  void count_new(std::uint64_t ids);
  void set_max_bytes(std::uint64_t of_each_window);
  template <class Visit>
  void for_each_window(Visit visit) const;

  Goal goal_;
  std::optional<ClientWindow> clients_;  // kind clients
  std::optional<Window> window_;         // for kind clients: made with the first opaque id
  double undercount_ = 0;                // from the new ids that are settled
  std::uint64_t unsettled_ = 0;          // new ids that are not settled
  std::uint64_t refused_ = 0;            // before an exact window was asked
  std::uint64_t stale_ = 0;              // by count_stale()
  std::uint64_t beyond_cap_ = 0;         // refused by a window, and recalled all the same
};

// These write and read a goal inside other formats (docs/formats/tally_recogniser_v1.md). Unknown
// enumerators fail the reader.
void write(Writer& w, const Recogniser::Goal& goal);
Recogniser::Goal read_recogniser_goal(Reader& r);

}  // namespace semel::tally::internal
