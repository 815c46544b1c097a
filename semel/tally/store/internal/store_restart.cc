#include "semel/tally/store/internal/store_restart.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/tally/internal/entries.h"
#include "semel/tally/store/internal/store_batch.h"

namespace semel::tally::internal {
namespace {

struct SharedRecords {
  std::vector<Operation> operations;  // ascending by dot
  std::map<SiteId, SiteView> views;

  bool contains(Dot dot) const {
    const auto at = std::lower_bound(
        operations.begin(), operations.end(), dot,
        [](const Operation& operation, Dot wanted) { return operation.dot < wanted; });
    return at != operations.end() && at->dot == dot;
  }
};

Result<SharedRecords> read_shared(const OrderedStore& store) {
  const std::unique_ptr<Cursor> cursor = SEMEL_TRY(store.cursor());
  SharedRecords entries;
  Cursor& at = *cursor;
  for (at.seek(kSharedFirst); at.valid() && at.key() < kSharedEnd; at.next()) {
    SharedEntry entry = SEMEL_TRY(decode_entry(at.key(), bytes_of(at.value())));
    if (auto* const operation = std::get_if<Operation>(&entry)) {
      entries.operations.push_back(std::move(*operation));
    } else {
      ViewOfSite& said = std::get<ViewOfSite>(entry);
      entries.views.emplace(said.site, std::move(said.view));
    }
  }
  SEMEL_TRY(at.status());
  return entries;
}

// Reads the journal record by record, and the marks of forgotten sequences.
Result<void> read_journal(
    const OrderedStore& store, bool with_content,
    const std::function<Result<void>(const JournalKey&, JournalRecord)>& record,
    const std::function<void(const Digest& client, std::uint64_t sequence)>& forgotten) {
  const std::unique_ptr<Cursor> cursor = SEMEL_TRY(store.cursor());
  Cursor& at = *cursor;
  const std::string_view end(&kCounterPrefix, 1);
  for (at.seek({&kJournalPrefix, 1}); at.valid() && at.key() < end; at.next()) {
    if (const std::optional<JournalKey> key = journal_of_key(at.key())) {
      JournalRecord read = SEMEL_TRY(JournalRecord::decode(bytes_of(at.value()), with_content));
      SEMEL_TRY(record(*key, std::move(read)));
    } else if (const std::optional<Digest> client = client_of_key(at.key())) {
      Reader r(bytes_of(at.value()));
      const std::uint64_t sequence = r.varint();
      if (!r.at_end()) return Error{Errc::corrupt, "a damaged mark of a client"};
      forgotten(*client, sequence);
    } else {
      return Error{Errc::corrupt, "this is not a record of a table"};
    }
  }
  return at.status();
}

Result<bool> empty(const OrderedStore& store) {
  const std::unique_ptr<Cursor> cursor = SEMEL_TRY(store.cursor());
  cursor->seek({});
  SEMEL_TRY(cursor->status());
  return !cursor->valid();
}

}  // namespace

Result<std::optional<Restart>> Restart::read(const OrderedStore& store,
                                             const OperationLog::Limits& limits, TimeMs clock_ms,
                                             Time time) {
  if (SEMEL_TRY(empty(store))) return std::optional<Restart>();

  const std::optional<std::string> shape_bytes = SEMEL_TRY(store.get(kShapeKey));
  const std::optional<std::string> state_bytes = SEMEL_TRY(store.get(kStateKey));
  if (!shape_bytes || !state_bytes) {
    return Error{Errc::corrupt, "the store is not that of a table"};
  }
  const StoreShape shape = SEMEL_TRY(StoreShape::decode(bytes_of(*shape_bytes)));
  Reader r(bytes_of(*state_bytes));
  const Ledger::State state = SEMEL_TRY(Ledger::State::decode(r));
  if (!r.at_end()) return Error{Errc::corrupt, "state of a table: size"};
  const TimeMs now_ms = earlier_by(clock_ms, state.lag_ms);
  SharedRecords shared = SEMEL_TRY(read_shared(store));

  // The journal is read in the order in which it was written. An id that has left the window since
  // is forgotten on the way, and leaves its mark.
  std::uint64_t recalled = 0;
  std::uint64_t next_number = 0;
  std::optional<TimeMs> unshared_since_ms;
  std::vector<Operation> unshared;
  std::vector<std::pair<Digest, std::uint64_t>> forgotten;
  std::optional<Recogniser> recogniser;
  const auto recall = [&](const JournalKey& key, JournalRecord record) -> Result<void> {
    next_number = std::max(next_number, key.number + 1);
    if (!recogniser) {
      const TimeMs begin_ms = time == Time::copied ? key.at_ms : std::min(key.at_ms, now_ms);
      recogniser = SEMEL_TRY(Recogniser::make(shape.recogniser, begin_ms));
    }
    recogniser->advance(key.at_ms);
    const bool inside =
        time == Time::copied || !older_than(key.at_ms, shape.recogniser.window_ms, now_ms);
    for (const Recogniser::Query& query : record.ids) {
      const Outcome now = recogniser->recall(query, key.at_ms);
      if (now == Outcome::full) return Error{Errc::limit, "no room for the ids of the window"};
      if (inside && now == Outcome::applied) ++recalled;
    }
    for (Operation& operation : record.operations) {
      const bool elsewhere = operation.dot.site != state.log.site ||
                             state.log.folded.contains(operation.dot) ||
                             shared.contains(operation.dot);
      if (elsewhere) continue;
      if (!unshared_since_ms) unshared_since_ms = key.at_ms;
      unshared.push_back(std::move(operation));
    }
    return {};
  };
  const bool with_content = shape.recogniser.kind == Recogniser::Kind::exact;
  SEMEL_TRY(
      read_journal(store, with_content, recall, [&](const Digest& client, std::uint64_t sequence) {
        forgotten.emplace_back(client, sequence);
      }));
  if (!recogniser) recogniser = SEMEL_TRY(Recogniser::make(shape.recogniser, now_ms));
  if (time == Time::now) recogniser->advance(now_ms);
  for (const auto& [client, sequence] : forgotten) recogniser->restore_forgotten(client, sequence);

  std::vector<Operation>& operations = shared.operations;
  operations.insert(operations.end(), unshared.begin(), unshared.end());
  OperationLog log = SEMEL_TRY(OperationLog::restore(state.log, operations, shared.views, limits));
  return std::optional(
      Restart{shape, Ledger(std::move(*recogniser), std::move(log), state.bound, state.lag_ms),
              recalled, next_number, unshared.size(), unshared_since_ms});
}

}  // namespace semel::tally::internal
