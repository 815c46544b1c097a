// ExactWindow: remembers full digests, in tables that rotate with time.
//
// Contract  An IdWindow whose only false positives are equal digests. With n ids in the window, a
//           new id has the digest of one of them with probability n / 2^128, unless somebody
//           chooses ids to collide. An id is forgotten less than a span after it left the window; a
//           span is window / generations. A punctual window keeps the time of every id, and forgets
//           the id in the first millisecond outside of the window.
//           `at_ms` places an id in the generation of that time.
// Full      The oldest generation is forgotten early, as a whole. Its ids are counted, even those
//           that were renewed or have left the window since. If a single generation fills the
//           memory, all ids are forgotten at once.
// Merge     The union of two windows with the same time and the same goal, except max_bytes and
//           on_full. merge() never forgets: beyond its own cap it fails with Errc::full. A merge
//           that fails changes nothing.
// Layout    A generation is one table of the size that the last generation needed, and further
//           tables when it is full. So nothing is ever moved, and making a table is cheap.
//
//             generation   g-3          g-2          g-1          g = now / span
//             tables       [....]       [......]     [......]     [......] [...]
//
// Cost      test: one cache miss for each table, newest first; the batch forms overlap them. All
//           calls take about the same time, except that a call that drops a generation also frees
//           its memory.
// Memory    21.4 bytes for an id of a full table, 32 if punctual; bytes() counts tables as planned,
//           before they are filled.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/exact_window_v1.md.
// Source    'Approach 2' of the paper on forgetful Bloom filters, with tables in place of filters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/window/internal/digest_table.h"
#include "semel/window/internal/generation_time.h"
#include "semel/window/window.h"

namespace semel::window_internal {

class ExactWindow {
 public:
  using Id = Digest;

  struct Goal {
    TimeMs window_ms;
    std::uint64_t ids = 0;          // expected in a window: sets the size of the first table only
    std::uint32_t generations = 8;  // in a window, 1 to 64
    std::uint64_t max_bytes = kNoCap;
    OnFull on_full = OnFull::refuse;
    HashId hash = {};
    bool punctual = false;  // forgets an id as it leaves the window, not up to a span later
    bool operator==(const Goal&) const = default;
  };
  static constexpr std::uint64_t kLeastCap = 4096;

  // Errors: Errc::invalid unless window_ms > 0, generations are 1 to 64 and max_bytes >= kLeastCap;
  // Errc::limit for more than 2^39 ids.
  static Result<ExactWindow> make(const Goal& goal, TimeMs now_ms);

  // Returns the structure of a Window that is exact and has an end, nullptr for any other. Tally
  // keeps ids and contents in pairs there, which needs more calls than Window has.
  static ExactWindow* inside(Window& window);
  static const ExactWindow* inside(const Window& window);

  // REQUIRES for all ids: the digest was made by goal().hash.
  Verdict test(Digest id) const { return test(id, horizon_); }
  Verdict insert(Digest id) { return insert(id, now()); }
  Verdict insert(Digest id, TimeMs at_ms);
  Verdict test_and_insert(Digest id) { return test_and_insert(id, now()); }
  Verdict test_and_insert(Digest id, TimeMs at_ms);
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  // These return the same as test() after advance(now_ms).
  Verdict test(Digest id, TimeMs now_ms) const { return test(id, horizon(now_ms)); }
  void test(std::span<const Digest> ids, TimeMs now_ms, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts);
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);

  // Returns true if this many more ids of this time fit without forgetting any.
  bool has_room(std::uint64_t ids, TimeMs at_ms) const;

  // Returns true if this many more ids of now need no large block (limits::kSmallBlock).
  bool takes(std::uint64_t ids) const;
  void touch(Digest id) const;  // prefetches what the calls above will read
  // Removes an id. REQUIRES: it was the last that was inserted, at this time, and was new.
  void take_back(Digest id, TimeMs at_ms);

  void advance(TimeMs now_ms);
  TimeMs now() const { return time_.now(); }
  WindowPromise promise() const;
  WindowCounts counts() const;
  double false_positive_rate() const { return 0; }
  std::uint64_t bytes() const { return bytes_; }

  // Returns the longest time for which an id is recognised after it was accepted.
  static TimeMs longest_ms(const Goal& goal);

  const Goal& goal() const { return goal_; }
  // Changes the cap, to kLeastCap or more. Memory beyond a lower cap stays until its ids leave the
  // window.
  void set_max_bytes(std::uint64_t max_bytes) { goal_.max_bytes = std::max(max_bytes, kLeastCap); }
  // Returns the number of ids, now or as after advance(now_ms). A renewed id may count twice. An id
  // that left a punctual window less than a span ago still counts.
  std::uint64_t ids() const { return ids(now()); }
  std::uint64_t ids(TimeMs now_ms) const;

  // Errors: Errc::mismatch if goals do not merge, or if now() differs; Errc::full beyond the cap.
  Result<void> merge(const ExactWindow& other);

  void encode(Sink out) const;
  static Result<ExactWindow> decode(ByteView in);

  // Compares what is remembered and all that decides what happens next, not counts().
  bool operator==(const ExactWindow& other) const;

 private:
  struct Generation {
    std::int64_t number;
    std::uint64_t room;  // of all its tables, including those not yet made
    std::uint64_t size = 0;
    std::vector<DigestTable> tables = {};

    bool contains(Digest id) const;
    // Returns nullptr if the generation does not hold the id. REQUIRES: the window is punctual.
    const TimeMs* time_of(Digest id) const;
    TimeMs* time_of(Digest id);
    // Makes a table for one more id if none has room. REQUIRES: size < room.
    void prepare(bool timed);
    // REQUIRES: size < room, and the generation does not hold the id.
    void insert(Digest id, TimeMs at_ms, bool timed);
    // Calls visit(id) for every id, ascending.
    template <class Visit>
    void for_each_ascending(Visit visit) const;
    bool same(const Generation& other, bool timed) const;
  };
  // The oldest generation that is remembered at some time. A punctual window remembers the ids of
  // that generation only from this time on.
  struct Horizon {
    std::int64_t oldest;
    TimeMs from_ms;
  };

  ExactWindow(const Goal& goal, TimeMs now_ms);

  static std::uint64_t room_for(std::uint64_t ids);
  std::uint64_t bytes_of(std::uint64_t room) const;
  std::size_t id_bytes() const;  // in the encoding and in a slot

  Horizon horizon(TimeMs now_ms) const { return {time_.oldest_alive(now_ms), time_.edge(now_ms)}; }
  bool remembers(const Generation& generation, Digest id, const Horizon& horizon) const;
  // Returns the newest generation that remembers the id; nullptr if none does.
  const Generation* find(Digest id, const Horizon& horizon) const;
  Verdict test(Digest id, const Horizon& horizon) const {
    return find(id, horizon) != nullptr ? Verdict::duplicate : Verdict::fresh;
  }
  bool renew(std::int64_t number, Digest id, TimeMs at_ms);
  Verdict place(Digest id, TimeMs at_ms);
  Generation* make_room(std::int64_t number);
  std::optional<std::uint64_t> room_that_fits(std::uint64_t now, std::uint64_t wanted) const;
  void forget_oldest();
  std::vector<Generation>::iterator at_or_after(std::int64_t number);
  void add_ascending(Generation& into, std::span<const Digest> ids, const Generation& other) const;
  bool unite(const Generation& other);
  Result<void> read_generation(Reader& r);

  Goal goal_;
  GenerationTime time_;
  Horizon horizon_;                      // now
  std::vector<Generation> generations_;  // ascending; none is empty, and all are alive
  std::uint64_t bytes_;
  WindowCounts counts_;  // without the steps backwards, which time_ counts
};

}  // namespace semel::window_internal
