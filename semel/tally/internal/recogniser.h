// Recogniser: tells the retries of a table's operations, one for all of its counters.
//
// Kinds     clients   numbered ids meet a ClientWindow, opaque ones a ForgetfulFilter; the default
//           filter    all ids meet a ForgetfulFilter: no memory for each client
//           exact     all ids meet an ExactWindow, with what they did: an id that comes again with
//                     another counter or delta is a conflict, not a retry
// Contract  As in window/window.h: an id that was inserted is recognised for the window. A new id
//           is taken for a retry with the probability false_positive_rate(), which only opaque ids
//           (with `filter` all) ever are; expected_undercount() adds that up over the ids that were
//           judged. An operation without an id is fresh, and remembered nowhere.
// Full      `clients` has two windows, and each of them half of max_bytes. An exact window that
//           forgets early forgets an id with its content.
// Memory    Bytes for a remembered operation, a million of them in a window
//           (bench/papers/recogniser_memory.cc):
//
//             fpr                                1e-3    1e-6
//             clients, 1000 numbered each         0.7     0.7
//             clients opaque, filter              3.0     6.0
//             exact                                63      63
//
//           With opaque ids and made for 65,536 the table grows: at 1e-6 9.1 when there are a
//           million in the first window, 7.0 from the next one on.
//
// Cost      Batched, 0.1 us for an id of `clients` and `filter`; 1.8 us for one of `exact`, which
//           looks for two digests in five tables, and again when they are new.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/tally_recogniser_v1.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/tally/operation.h"
#include "semel/window/client_window.h"
#include "semel/window/exact_window.h"
#include "semel/window/forgetful_filter.h"
#include "semel/window/window.h"

namespace semel::tally {

enum class Recognised : std::uint8_t {
  fresh,      // not seen within the window; now remembered, unless it was only a test
  duplicate,  // a retry, or taken for one
  stale,      // too old to judge; nothing changed
  full,       // no room, and told to refuse; nothing changed
  conflict,   // exact: the id came with another counter or delta; nothing changed
};

class Recogniser {
 public:
  enum class Kind : std::uint8_t { clients = 0, filter = 1, exact = 2 };

  struct Goal {
    Kind kind = Kind::clients;
    TimeMs window_ms = 600'000;
    double fpr = 1e-6;                 // of new opaque ids taken for retries; exact: none
    std::uint64_t ids = 1 << 16;       // expected in a window; more may come
    std::uint64_t max_bytes = kNoCap;  // of all windows together
    WhenFull when_full = WhenFull::refuse;
    HashId hash = {};
    bool operator==(const Goal&) const = default;
  };

  // An id, and a digest of what the operation does (of its kind, counter and delta), which only
  // `exact` reads: wants_content().
  struct Query {
    OperationId id;
    Digest content = {0, 0};
  };

  static constexpr std::uint64_t kLeastBytes = 8192;
  static constexpr std::uint64_t kSettled = 1024;

  // Errc::invalid unless window_ms > 0, is_error_rate(fpr), ids > 0 and max_bytes >= kLeastBytes;
  // Errc::limit for more than 2^38 ids, and where the first table of the filter is larger than its
  // share.
  static Result<Recogniser> make(const Goal& goal, TimeMs now_ms);

  bool wants_content() const { return goal_.kind == Kind::exact; }

  // REQUIRES: the spans are of equal size; digests made by goal().hash.
  void test(std::span<const Query> queries, std::span<Recognised> answers) const;
  // In order: an id that comes twice is known the second time.
  void test_and_insert(std::span<const Query> queries, std::span<Recognised> answers);
  Recognised test(const Query& query) const { return test(query, now()); }
  Recognised test(const Query& query, TimeMs now_ms) const;  // the same after advance(now_ms)
  Recognised test_and_insert(const Query& query);
  // Begins to load what test_and_insert() will need.
  void touch(const OperationId& id) const;
  // Remembers it from `at_ms` on, known or not: what another site took, or what a log tells. Returns
  // fresh if it is remembered now; full if there is no room, or stale if `at_ms` has left the window.
  Recognised insert(const Query& query, TimeMs at_ms);
  // The same for a restart, where windows are filled in other steps and may need more memory for the
  // same ids. An id that was accepted must stay known, so one that would be refused goes beyond
  // max_bytes. New ids are refused until enough have left.
  Recognised recall(const Query& query, TimeMs at_ms);

  // As in window/client_window.h: of numbered ids, where these meet a ClientWindow.
  std::optional<std::uint64_t> forgotten(const Digest& client) const {
    return clients_ ? clients_->forgotten(client) : std::nullopt;
  }
  void restore_forgotten(const Digest& client, std::uint64_t sequence) {
    if (clients_) clients_->restore_forgotten(client, sequence);
  }

  // Whether so many more ids take no large block (limits::kSmallBlock).
  bool takes(std::uint64_t ids) const;

  void advance(TimeMs now_ms);
  TimeMs now() const;
  Promise promise() const;      // of all ids: the weakest of its windows
  WindowCounts counts() const;  // of all windows together, since it was made or decoded
  double false_positive_rate() const;
  // Operations lost as retries, of those that were new, refused ones included. The rate is looked at once for kSettled
  // ids, so that it is off by kSettled times what the rate changes meanwhile.
  double expected_undercount() const;
  std::uint64_t bytes() const;
  const Goal& goal() const { return goal_; }

  // Appends the encoding to `out`.
  void encode(Sink out) const;
  // Reads one recogniser that fills `in` exactly. `in` may come from an enemy.
  static Result<Recogniser> decode(ByteView in);

  // Whether both remember the same, and would go on in the same way. counts() and
  // expected_undercount() may differ.
  bool operator==(const Recogniser& other) const;

 private:
  explicit Recogniser(const Goal& goal) : goal_(goal) {}

  ForgetfulFilter* filter();
  Recognised test_exact(Digest id, Digest content, TimeMs now_ms) const;
  Recognised take_exact(Digest id, Digest content);
  void take_exact(std::span<const Query> queries, std::span<Recognised> answers);
  Recognised take_new_exact(Digest id, Digest content);
  Recognised remember_exact(Digest id, Digest content, TimeMs at_ms);
  void count_new(std::uint64_t ids);
  void set_max_bytes(std::uint64_t of_each_window);
  template <class Visit>
  void for_each_window(Visit visit) const;
  Result<void> decode_window(ByteView in, std::size_t place);

  Goal goal_;
  std::optional<ClientWindow> clients_;    // of kind clients
  std::optional<ForgetfulFilter> filter_;  // of kind filter; of kind clients, once it is needed
  std::optional<ExactWindow> exact_;       // of kind exact
  double undercount_ = 0;                  // of the new ids that are settled
  std::uint64_t unsettled_ = 0;            // and those that are not
  std::uint64_t refused_ = 0;              // before an exact window was asked
  std::uint64_t beyond_cap_ = 0;           // refused by a window, and recalled all the same
};

}  // namespace semel::tally
