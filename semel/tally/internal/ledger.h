// Ledger: the rules of one table. An operation counts once, and its id and its effect go together.
//
// Contract  A call is judged and then applied: judge() changes nothing, apply() does all the rest.
//           An operation is refused if it is a retry (Recogniser, and the operations that are not
//           folded), if the value would leave 64 bits, or if there is no room for it. The id of an
//           operation is remembered in the same step in which the operation takes effect, never
//           before. Calls that change nothing do not advance the time of the table, so that
//           replicas which never hear of them have the same bytes.
//           Sites that count at the same time may leave 64 bits together. Reading the counter is
//           Errc::limit then, until additions bring the value back.
// Overflow  No counter is read while the sum of all |delta| that ever came is below 2^63. A table
//           beyond that reads each counter before it adds.
// Time      A table has its own time: that of its clock, minus its lag. A copy of a member has the
//           ids of its window by the clock of that member. If the clock of the new site is ahead,
//           or the site starts long after the copy was made, it would forget them too early. So its
//           time lags behind instead.
// Base      The caller keeps the counters: in memory (Table) or in a store (TallyStore).
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/result.h"
#include "semel/tally/counters/internal/counters.h"
#include "semel/tally/internal/operation_log.h"
#include "semel/tally/internal/recogniser.h"
#include "semel/tally/operation.h"
#include "semel/tally/table_info.h"

namespace semel::tally::internal {

// Returns the value, or nullopt if there is none or it does not fit 64 bits.
inline std::optional<std::int64_t> to_int64(std::optional<int128> value) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (!value || *value < Limits::min() || *value > Limits::max()) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

class Ledger {
 public:
  class Base : public OperationLog::Base {
   public:
    // Returns the folded sum of each counter, nullopt where there is no such counter.
    virtual Result<void> sums_of(std::span<const std::string_view> counters,
                                 std::span<std::optional<int128>> sums) const = 0;
    // Adds to the base. If `sums` is not empty, it gets the sum of each counter after its addition;
    // it is not empty only if knows_sums().
    virtual void fold_all(std::span<const NamedShard> shards, std::span<int128> sums) = 0;
    // Returns true if fold() and fold_all() know the sum after an addition without reading, and
    // sums_of() never fails.
    virtual bool knows_sums() const = 0;
    // Begins to load a counter.
    virtual void prefetch(std::string_view counter) const = 0;
    // Allocates the large blocks that additions to these counters will need, so that none of them
    // fails for want of memory.
    virtual void reserve(std::span<const Addition> additions) = 0;
    // For calls with few_counters. Returns true if there is room for a new counter of this name.
    // Then make_room() does for it what reserve() does.
    virtual bool has_room(std::string_view /*counter*/) const { return true; }
    virtual void make_room(std::string_view /*counter*/) {}
    // Notes an id that is now in the recogniser, for a restart.
    virtual void remember(const Recogniser::Query& query) = 0;
  };

  struct State {
    OperationLog::State log;
    std::uint64_t bound = 0;  // no counter is further from zero than this
    TimeMs lag_ms = 0;        // 0 or more

    void encode(Sink out) const;
    static Result<State> decode(Reader& in);
  };

  // Operations are processed in pieces of this size, so that no buffer grows with the call.
  static constexpr std::size_t kPiece = 256;

  // One call: operations of one kind. A reset or a removal comes alone, and its delta is 0.
  struct Call {
    std::span<const Addition> additions;
    std::span<Answer> answers;  // of equal size
    TimeMs now_ms = 0;
    bool values = true;  // true if the answers give the values
    Operation::Kind kind = Operation::Kind::add;
    // True if the base may have no room for a new counter. Additions for which it has none are
    // kTooLarge.
    bool few_counters = false;
  };
  // The result of judge().
  class Judged {
   public:
    // Returns true if apply() may read counters from the base.
    bool reads() const { return call_.values || judges_by_value(); }

   private:
    friend class Ledger;
    explicit Judged(const Call& call) : call_(call) {}
    bool judges_by_value() const { return may_overflow_ || call_.few_counters; }

    Call call_;
    std::size_t refused_ = 0;    // the first operations, which are already answered
    bool may_overflow_ = false;  // as far as is known without reading
    bool plain_ = false;         // only the recogniser can refuse the operations
  };

  // A new table of one site.
  Ledger(Recogniser recogniser, SiteId site, const OperationLog::Limits& limits);
  // Restores a table.
  Ledger(Recogniser recogniser, OperationLog log, std::uint64_t bound, TimeMs lag_ms);

  // Judges a call. Answers the operations at its beginning that would be refused at call.now_ms,
  // and marks the others kUnanswered. An error refuses the whole call: Errc::limit for a name that
  // is too long, and the errors of OperationLog::may_take() except Errc::full.
  Result<Judged> judge(const Call& call, const Base& base) const;
  // Advances the time, and answers the other operations in order, each as it takes effect. Does
  // nothing if there are none. If memory runs out, the operations before that point have taken
  // effect and have their answers, and the others are kUnanswered. REQUIRES: the ledger has not
  // changed since judge().
  Result<void> apply(const Judged& judged, Base& base);
  // Calls judge(), then apply().
  Result<void> run(const Call& call, Base& base) {
    const Judged judged = SEMEL_TRY(judge(call, base));
    return apply(judged, base);
  }

  // Takes in operations of other sites, in any order. Returns true if all of them are here now.
  // Operations for which there is no room, or whose predecessors are missing, must come again.
  bool receive(std::span<const Operation> operations, Base& base);
  // Takes in the view of a site.
  Result<void> receive_view(SiteId from, const SiteView& view, Base& base);
  // Notes that this site has published this view.
  void record_published(const SiteView& view, Base& base);

  Result<void> admit(SiteId site) { return log_.admit(site, recogniser_.now()); }
  Result<void> retire(SiteId site, Base& base);
  // REQUIRES: time has not passed since the copy was read.
  Result<void> become(SiteId site, TimeMs now_ms);

  // Returns the values of counters, nullopt where there is no such counter.
  Result<std::vector<std::optional<std::int64_t>>> get(std::span<const std::string_view> counters,
                                                       const Base& base) const;
  // Adds the operations that are not folded to the sum of what is folded in a range.
  Result<RangeSum> with_overlays(RangeSum folded, const NameRange& range, const Base& base) const;

  TimeMs time_of(TimeMs now_ms) const { return earlier_by(now_ms, lag_ms_); }
  TimeMs clock_of(TimeMs time_ms) const { return later_by(time_ms, lag_ms_); }
  void advance(TimeMs now_ms) { recogniser_.advance(time_of(now_ms)); }
  const Recogniser& recogniser() const { return recogniser_; }
  const OperationLog& log() const { return log_; }
  State state() const { return {log_.state(), bound_, lag_ms_}; }
  TableInfo info() const;
  std::uint64_t bytes() const;  // of memory, nearly

 private:
  struct Buffers;
  struct Applied {
    Outcome outcome;
    std::optional<int128> sum = {};  // of the counter after it, if the base knows it
  };

  bool may_overflow(std::span<const Addition> additions) const;
  void raise_bound(std::int64_t delta);
  Recogniser::Query query(const Addition& addition, Operation::Kind kind) const;
  std::optional<Outcome> refusal(const Addition& addition, const Call& call,
                                 const std::optional<int128>* value, const Base& base) const;
  void note_refusal(Outcome outcome);
  Outcome refused_as(const Recogniser::Query& query, TimeMs now_ms,
                     std::optional<Outcome> otherwise) const;
  Applied apply_one(const Addition& addition, const Judged& judged,
                    const std::optional<int128>* value, Base& base);
  std::optional<int128> take_effect(const Addition& addition, Operation::Kind kind, Base& base);
  void apply_at_once(std::span<const Addition> additions, std::span<Answer> answers, bool values,
                     Base& base, Buffers& buffers);
  Result<void> apply_in_turn(std::span<const Addition> additions, std::span<Answer> answers,
                             const Judged& judged, Base& base);
  Result<void> read_values(std::span<const std::string_view> counters,
                           std::span<std::optional<int128>> values, const Base& base) const;
  Result<std::optional<int128>> value_of(std::string_view counter, const Base& base) const;

  Recogniser recogniser_;
  OperationLog log_;
  std::uint64_t bound_ = 0;
  TimeMs lag_ms_ = 0;
};

}  // namespace semel::tally::internal
