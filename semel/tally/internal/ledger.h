// Ledger: one table's rules: an operation counts once, and its id and its effect go together.
//
// Contract  What a client sends is judged first: retries (Recogniser, and the operations that are not
//           folded), what would overflow, what there is no room for. Only what counts is remembered
//           by its id, in the same step in which it takes effect: never the id without the effect.
//           A value is 64 bits; an addition that would leave them is refused (Outcome::overflow).
//           Sites that count at the same time may leave them together: then reading is Errc::limit,
//           until additions bring the value back.
// Overflow  is found without reading a counter while the sum of all |delta| that ever came is below
//           2^63. A table beyond that reads each counter before it adds.
// Time      A table has a time of its own: that of its clock, less its lag. A copy of a member has the
//           ids of its window by the clock of that member. A new site whose clock is ahead, or that
//           starts long after the copy was made, would forget them too early: it lags behind instead.
// Base      The counters themselves are the caller's: in memory (Table) or in a store (TallyStore).
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "semel/core/arithmetic.h"
#include "semel/core/result.h"
#include "semel/tally/counters/internal/counters.h"
#include "semel/tally/internal/operation_log.h"
#include "semel/tally/internal/recogniser.h"
#include "semel/tally/operation.h"

namespace semel::tally {

struct Addition {
  std::string_view counter;
  std::int64_t delta = 0;
  OperationId id = {};
};

enum class Outcome : std::uint8_t {
  applied,
  duplicate,  // a retry, or taken for one: nothing changed
  stale,      // too old to judge: nothing changed
  conflict,   // exact tables: the id came before, with another counter or delta; nothing changed
  overflow,   // the value would leave 64 bits; nothing changed, and the id is still free
  full,       // no room to remember it; the same
};

// What memory that ran out leaves of a batch, from the first that was not answered on.
inline constexpr auto kUnanswered = static_cast<Outcome>(0xff);

struct Answer {
  Outcome outcome = Outcome::applied;
  std::optional<std::int64_t> value = {};  // of the counter, after it; nullopt if not asked for, if
                                           // there is no counter, or if it is beyond 64 bits
  bool operator==(const Answer&) const = default;
};

// nullopt if it is beyond 64 bits.
inline std::optional<std::int64_t> narrowed(std::optional<int128> value) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (!value || *value < Limits::min() || *value > Limits::max()) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

class Ledger {
 public:
  class Base : public OperationLog::Base {
   public:
    // What is folded of each counter; nullopt: there is none.
    virtual Result<void> sums_of(std::span<const std::string_view> counters,
                                 std::span<std::optional<int128>> sums) const = 0;
    // Adds to the base. Told the sums after each if `sums` is not empty, which is so only if
    // tells_sums().
    virtual void fold_all(std::span<const Counters::Addition> additions,
                          std::span<int128> sums) = 0;
    virtual bool tells_sums() const = 0;
    // Takes the large blocks that additions to these counters will need, so that none of them fails
    // for want of memory.
    virtual void reserve(std::span<const Addition> additions) = 0;
    // An id that is now in the recogniser, for a restart.
    virtual void remember(const Recogniser::Query& query) = 0;
  };

  struct State {
    OperationLog::State log;
    std::uint64_t bound = 0;  // no counter is further from zero
    TimeMs lag_ms = 0;        // 0 or more

    void encode(Sink out) const;
    static Result<State> decode(Reader& in);
  };

  // A new table of one site.
  Ledger(Recogniser recogniser, SiteId site, const OperationLog::Limits& limits);
  // As it was.
  Ledger(Recogniser recogniser, OperationLog log, std::uint64_t bound, TimeMs lag_ms);

  // How many additions of a batch are worked on at once: no buffer grows with the batch.
  static constexpr std::size_t kPiece = 256;

  // Answers each in order. If memory runs out, those before have their answers, and the first that has
  // none is left as it was. An error refuses all: Errc::limit for a name that is too long, and what
  // OperationLog::may_take() says of this site. REQUIRES: the spans are of equal size.
  Result<void> add(std::span<const Addition> additions, std::span<Answer> answers, bool values,
                   Base& base);
  // Answers all of them if none would be applied after advance(now_ms), and is true then. So that what
  // counts for nothing leaves nothing, not even its time. Errors as those of add().
  Result<bool> answer_refused(std::span<const Addition> additions, std::span<Answer> answers,
                              TimeMs now_ms, const Base& base) const;
  // The same for one, for a caller that adds to its base by itself. alone() gives the dot of the
  // addition where this site is alone and no overflow is possible; else it must go the way above.
  // begin() begins to load what add_alone() will need. What that says is applied goes to the base.
  // REQUIRES, of add_alone: the dot was given for this addition, and nothing was added since.
  std::optional<Dot> alone(const Addition& addition) const;
  void begin(const Addition& addition) const { recogniser_.touch(addition.id); }
  // What add_alone() would say after advance(now_ms), unless there is no room.
  Outcome test_alone(const Addition& addition, TimeMs now_ms) const;
  Outcome add_alone(const Addition& addition, Dot dot);

  // Whether they might leave 64 bits, as far as is known without reading: add() reads then.
  bool might_overflow(std::span<const Addition> additions) const;
  // Sets a counter to zero, or takes it away. REQUIRES: kind is not add.
  Result<Answer> change(Operation::Kind kind, std::string_view counter, const OperationId& id,
                        Base& base);

  // What other sites took, in any order. True if all of it is now here or was before: what is not,
  // for want of room or of what comes before it, must come again.
  bool take(std::span<const Operation> operations, Base& base);
  Result<void> hear(SiteId from, const SiteView& view, Base& base);
  void say(const SiteView& view, Base& base);

  Result<void> admit(SiteId site) { return log_.admit(site, recogniser_.now()); }
  Result<void> retire(SiteId site, Base& base);
  // REQUIRES: time has not passed since the copy was read.
  Result<void> become(SiteId site, TimeMs now_ms);

  // Values, of counters that exist.
  Result<std::optional<std::int64_t>> get(std::string_view counter, const Base& base) const;
  Result<std::vector<std::optional<std::int64_t>>> many(std::span<const std::string_view> counters,
                                                        const Base& base) const;
  // What the operations that are not folded add to what is folded of a range.
  Result<RangeSum> with_overlays(RangeSum folded, const NameRange& range, const Base& base) const;

  TimeMs time_of(TimeMs now_ms) const { return earlier_by(now_ms, lag_ms_); }
  TimeMs clock_of(TimeMs time_ms) const { return later_by(time_ms, lag_ms_); }
  void advance(TimeMs now_ms) { recogniser_.advance(time_of(now_ms)); }
  const Recogniser& recogniser() const { return recogniser_; }
  const OperationLog& log() const { return log_; }
  State state() const { return {log_.state(), bound_, lag_ms_}; }
  std::uint64_t bytes() const;  // of memory, nearly

 private:
  struct Buffers;
  Result<void> add_at_once(std::span<const Addition> additions, std::span<Answer> answers,
                           bool values, Base& base, Buffers& buffers);
  Result<void> add_one_by_one(std::span<const Addition> additions, std::span<Answer> answers,
                              bool values, Base& base);
  void raise_bound(std::int64_t delta);
  Recogniser::Query query(const OperationId& id, Operation::Kind kind, std::string_view counter,
                          std::int64_t delta) const;
  void take_effect(Operation::Kind kind, std::string_view counter, std::int64_t delta,
                   const OperationId& id, Base& base);
  Result<std::vector<std::optional<int128>>> values_of(std::span<const std::string_view> counters,
                                                       const Base& base) const;

  Recogniser recogniser_;
  OperationLog log_;
  std::uint64_t bound_ = 0;
  TimeMs lag_ms_ = 0;
};

}  // namespace semel::tally
