// Table: counters in memory that count every operation once, at one site or at many.
//
// Contract  As in ledger.h. Time is handed in with each call, and never runs backwards inside.
//           Values, sums and counts are of the present, of all operations that are here.
// Order     Counters are in the order of the bytes of their names.
// Sites     Each site has a Table. They exchange entries (entries.h): entries() gives those of this
//           one, take() takes those of another. A new site starts from a copy of a member's table
//           (decode(), become()).
// Cost      add: 0.3 us in batches with a million counters (docs/benchmarks.md), 0.4 us one by one with
//           100,000.
//           sum: O(log counters), and what is not folded in the range.
// Memory    That of the counters (counters.h), of the recogniser (recogniser.h), and of the operations
//           that are not folded (operation_log.h).
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/tally_table_v2.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/tally/internal/ledger.h"

namespace semel::tally {

class Table {
 public:
  struct Settings {
    Recogniser::Goal recogniser = {};
    SiteId site = 1;
    OperationLog::Limits log = {};
  };

  // Errc::invalid or Errc::limit for a recogniser that cannot be.
  static Result<Table> make(const Settings& settings, TimeMs now_ms);
  Table(Table&&) noexcept;
  Table& operator=(Table&&) noexcept;
  ~Table();

  // Each is answered for itself; see Ledger::add for what refuses all. If none is applied, nothing
  // changes, not even the time, unless there was no room (Outcome::full). If memory runs out, those
  // before have their answers, and the others are kUnanswered.
  Result<void> add(std::span<const Addition> additions, std::span<Answer> answers, TimeMs now_ms);
  Result<Answer> add(const Addition& addition, TimeMs now_ms) {
    return add(addition, seek(addition.counter), now_ms);
  }
  // For a caller that knows the counter before the id: seek() begins to load what add() will need.
  // REQUIRES: a Seek of that counter, and no change since.
  Counters::Seek seek(std::string_view counter) const;
  Result<Answer> add(const Addition& addition, Counters::Seek seek, TimeMs now_ms);
  // To zero, for all sites, of all that this one has seen; or gone, the same way.
  Result<Answer> reset(std::string_view counter, const OperationId& id, TimeMs now_ms);
  Result<Answer> remove(std::string_view counter, const OperationId& id, TimeMs now_ms);

  Result<std::optional<std::int64_t>> get(std::string_view counter) const;
  Result<std::vector<std::optional<std::int64_t>>> many(
      std::span<const std::string_view> counters) const;
  // In order, until `visit` says false.
  void scan(const NameRange& range, const Counters::Visit& visit) const;
  RangeSum sum(const NameRange& range) const;

  // Sites.
  Result<void> admit(SiteId site);
  Result<void> retire(SiteId site);
  using VisitEntry = std::function<void(std::string_view key, ByteView value)>;
  // Says what this site holds, and tells all shared entries; none if it is superseded().
  void entries(const VisitEntry& visit);
  // Errc::corrupt, and no change, if the entry is none or damaged; Errc::mismatch, and no change, if it
  // is of another table. False if there was no room, or something before it is missing: it must come
  // again.
  Result<bool> take(std::string_view key, ByteView value, TimeMs now_ms);
  // A copy of a member becomes this site, which that member has admitted. REQUIRES: nothing has been
  // called since it was decoded.
  Result<void> become(SiteId site, TimeMs now_ms);

  // Nothing happens but that time passes.
  void advance(TimeMs now_ms);

  const Recogniser& recogniser() const;
  const OperationLog& log() const;
  std::uint64_t bytes() const;  // of memory, nearly

  void encode(Sink out) const;
  // Reads one table that fills `in` exactly; `in` may come from an enemy.
  static Result<Table> decode(ByteView in);
  bool operator==(const Table& other) const;  // whether both would go on in the same way

 private:
  class Body;
  explicit Table(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace semel::tally
