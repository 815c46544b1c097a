// Table: counters in memory that count every operation once, at one site or at many.
//
//   Table table = *Table::make({}, now_ms);
//   const Result<Answer> answer = table.add({"sold", 5, id}, now_ms);  // applied, value 5
//
// Contract  An operation counts once, however often it is sent with its id; a retry is answered
//           with the value of the counter and the word duplicate. The id and its effect go
//           together: an operation that is refused leaves its id free. Values, sums and counts
//           include all operations that are here at present. Time is handed in with each call, and
//           never runs backwards inside.
//           Counters are in the order of the bytes of their names.
// Sites     Each site has a Table. publish() gives the entries that the other sites need, receive()
//           takes in theirs. A new site starts from a copy of a member's table (decode(),
//           become()).
// Cost      add: 0.3 us in batches with a million counters, 0.4 us one by one with 100,000
//           (docs/benchmarks.md). sum: O(log counters), and the operations of the range that are
//           not folded.
// Memory    About 98 bytes for a counter, 350 bytes for an operation that is not folded, and the
//           recogniser: 0.7 to 63 bytes for an id of the window.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/tally_table_v1.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/tally/counters/name_range.h"
#include "semel/tally/operation.h"
#include "semel/tally/table_info.h"

namespace semel::tally {

namespace internal {
class OperationLog;
class Recogniser;
}  // namespace internal

class SEMEL_API Table {
 public:
  struct Settings {
    Recognition recognition = {};
    SiteId site = 1;
    // While more operations than this are not known to all members, new ones are refused.
    std::uint64_t max_unfolded = 1 << 20;
  };

  // Errors: Errc::invalid or Errc::limit for an impossible recognition.
  static Result<Table> make(const Settings& settings, TimeMs now_ms);
  // A table that was moved from can only be assigned to, moved and destroyed.
  Table(Table&&) noexcept;
  Table& operator=(Table&&) noexcept;
  ~Table();

  // Answers each addition for itself, in order. If none of them changes anything, the time of the
  // table stays too; Outcome::full is a change. An error refuses all: Errc::limit for a name that
  // is too long; Errc::outside, Errc::forked and Errc::gap if this site may not count. If memory
  // runs out, the additions before that point have taken effect and have their answers; the others
  // are kUnanswered. REQUIRES: the spans are of equal size.
  //
  // An addition is kTooLarge if it would make a counter that takes the table beyond `max_bytes` of
  // memory. Remembered ids have their own limit, Recognition::max_bytes.
  Result<void> add(std::span<const Addition> additions, std::span<Answer> answers, TimeMs now_ms,
                   std::uint64_t max_bytes = kNoCap);
  Result<Answer> add(const Addition& addition, TimeMs now_ms, std::uint64_t max_bytes = kNoCap);
  // Sets a counter to zero, or removes it, for all sites. Both undo everything that this site has
  // seen of it.
  Result<Answer> reset(std::string_view counter, const OperationId& id, TimeMs now_ms);
  Result<Answer> remove(std::string_view counter, const OperationId& id, TimeMs now_ms);

  // These return nullopt if there is no such counter. Errc::limit for a value beyond 64 bits.
  Result<std::optional<std::int64_t>> get(std::string_view counter) const;
  Result<std::vector<std::optional<std::int64_t>>> get(
      std::span<const std::string_view> counters) const;
  void scan(const NameRange& range, const VisitCounter& visit) const;
  RangeSum sum(const NameRange& range) const;

  // Errc::invalid for a site that is or was a member.
  Result<void> admit(SiteId site);
  // Errc::invalid for a site that is not a member, and for this site.
  Result<void> retire(SiteId site);
  using VisitEntry = std::function<void(std::string_view key, ByteView value)>;
  // Visits all entries that the other sites need, and notes that they were published. Visits
  // nothing if this site is superseded.
  void publish(const VisitEntry& visit);
  // Takes in an entry of another site. Returns false if there was no room for it, or if an earlier
  // operation is missing; then the entry must come again. Errc::corrupt if it is damaged or not an
  // entry; Errc::mismatch if it is of another table. Errors change nothing.
  Result<bool> receive(std::string_view key, ByteView value, TimeMs now_ms);
  // Turns a copy of a member into this site, which the member has admitted. REQUIRES: nothing has
  // been called since it was decoded.
  Result<void> become(SiteId site, TimeMs now_ms);

  // Lets time pass.
  void advance(TimeMs now_ms);

  TableInfo info() const;
  // These are parts of info().
  const Recognition& recognition() const;
  WindowCounts counts() const;
  double false_positive_rate() const;
  // Returns how many members hold an operation.
  std::uint64_t holders(Dot dot) const;
  std::uint64_t bytes() const;  // of memory, nearly

  void encode(Sink out) const;
  static Result<Table> decode(ByteView in);
  bool operator==(const Table& other) const;  // compares everything that decides what happens next

 private:
  friend class TableProbe;  // for tests
  class SEMEL_LOCAL Body;
  explicit Table(std::unique_ptr<Body> body);
  const internal::Recogniser& recogniser() const;
  const internal::OperationLog& log() const;

  std::unique_ptr<Body> body_;
};

}  // namespace semel::tally
