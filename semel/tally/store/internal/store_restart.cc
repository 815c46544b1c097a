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

namespace semel::tally {
namespace {

struct SharedEntries {
  std::vector<Operation> operations;  // ascending by dot
  std::map<SiteId, SiteView> views;

  bool contains(Dot dot) const {
    const auto at = std::lower_bound(
        operations.begin(), operations.end(), dot,
        [](const Operation& operation, Dot wanted) { return operation.dot < wanted; });
    return at != operations.end() && at->dot == dot;
  }
};

Result<SharedEntries> read_shared(const OrderedStore& store) {
  const Result<std::unique_ptr<Cursor>> cursor = store.cursor();
  if (!cursor) return cursor.error();
  SharedEntries entries;
  Cursor& at = **cursor;
  for (at.seek(kSharedFirst); at.valid() && at.key() < kSharedEnd; at.next()) {
    if (const std::optional<Dot> dot = dot_of_key(at.key())) {
      Result<Operation> operation = Operation::decode(*dot, bytes_of(at.value()));
      if (!operation) return operation.error();
      entries.operations.push_back(std::move(*operation));
    } else if (const std::optional<SiteId> site = site_of_key(at.key())) {
      Result<SiteView> view = SiteView::decode(bytes_of(at.value()));
      if (!view) return view.error();
      entries.views.emplace(*site, std::move(*view));
    } else {
      return Error{Errc::corrupt, "no entry of a table"};
    }
  }
  if (const Result<void> status = at.status(); !status) return status.error();
  return entries;
}

// The journal, told record by record, and the marks of what was forgotten.
Result<void> read_journal(
    const OrderedStore& store, bool with_content,
    const std::function<Result<void>(const JournalKey&, JournalRecord)>& record,
    const std::function<void(const Digest& client, std::uint64_t sequence)>& forgotten) {
  const Result<std::unique_ptr<Cursor>> cursor = store.cursor();
  if (!cursor) return cursor.error();
  Cursor& at = **cursor;
  const std::string_view end(&kCounterPrefix, 1);
  for (at.seek({&kJournalPrefix, 1}); at.valid() && at.key() < end; at.next()) {
    if (const std::optional<JournalKey> key = journal_of_key(at.key())) {
      Result<JournalRecord> read = JournalRecord::decode(bytes_of(at.value()), with_content);
      if (!read) return read.error();
      if (Result<void> told = record(*key, std::move(*read)); !told) return told;
    } else if (const std::optional<Digest> client = client_of_key(at.key())) {
      Reader r(bytes_of(at.value()));
      const std::uint64_t sequence = r.varint();
      if (!r.ok() || r.rest() != 0) return Error{Errc::corrupt, "a damaged mark of a client"};
      forgotten(*client, sequence);
    } else {
      return Error{Errc::corrupt, "no record of a table"};
    }
  }
  return at.status();
}

Result<bool> empty(const OrderedStore& store) {
  const Result<std::unique_ptr<Cursor>> cursor = store.cursor();
  if (!cursor) return cursor.error();
  (*cursor)->seek({});
  if (const Result<void> status = (*cursor)->status(); !status) return status.error();
  return !(*cursor)->valid();
}

Result<void> remake(const StoreShape& shape, TimeMs now_ms, std::optional<Recogniser>& made) {
  Result<Recogniser> recogniser = Recogniser::make(shape.recogniser, now_ms);
  if (!recogniser) return recogniser.error();
  made.emplace(std::move(*recogniser));
  return {};
}

}  // namespace

Result<std::optional<Restart>> Restart::read(const OrderedStore& store,
                                             const OperationLog::Limits& limits, TimeMs clock_ms,
                                             Time time) {
  const Result<bool> nothing = empty(store);
  if (!nothing) return nothing.error();
  if (*nothing) return std::optional<Restart>();

  const Result<std::optional<std::string>> shape_bytes = store.get(kShapeKey);
  if (!shape_bytes) return shape_bytes.error();
  const Result<std::optional<std::string>> state_bytes = store.get(kStateKey);
  if (!state_bytes) return state_bytes.error();
  if (!*shape_bytes || !*state_bytes) {
    return Error{Errc::corrupt, "the store is not that of a table"};
  }
  const Result<StoreShape> shape = StoreShape::decode(bytes_of(**shape_bytes));
  if (!shape) return shape.error();
  Reader r(bytes_of(**state_bytes));
  const Result<Ledger::State> state = Ledger::State::decode(r);
  if (!state) return state.error();
  if (r.rest() != 0) return Error{Errc::corrupt, "state of a table: of another length"};
  const TimeMs now_ms = earlier_by(clock_ms, state->lag_ms);
  Result<SharedEntries> shared = read_shared(store);
  if (!shared) return shared.error();

  // The journal is gone through as it was written: what has left the window since is forgotten on
  // the way, and leaves its marks.
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
      Result<void> made = remake(*shape, begin_ms, recogniser);
      if (!made) return made;
    }
    recogniser->advance(key.at_ms);
    const bool inside =
        time == Time::copied || !older_than(key.at_ms, shape->recogniser.window_ms, now_ms);
    for (const Recogniser::Query& query : record.ids) {
      const Recognised now = recogniser->recall(query, key.at_ms);
      if (now == Recognised::full) return Error{Errc::limit, "no room for the ids of the window"};
      if (inside && now == Recognised::fresh) ++recalled;
    }
    for (Operation& operation : record.operations) {
      const bool elsewhere = operation.dot.site != state->log.site ||
                             state->log.folded.contains(operation.dot) ||
                             shared->contains(operation.dot);
      if (elsewhere) continue;
      if (!unshared_since_ms) unshared_since_ms = key.at_ms;
      unshared.push_back(std::move(operation));
    }
    return {};
  };
  const Result<void> read = read_journal(store, shape->recogniser.kind == Recogniser::Kind::exact,
                                         recall, [&](const Digest& client, std::uint64_t sequence) {
                                           forgotten.emplace_back(client, sequence);
                                         });
  if (!read) return read.error();
  if (!recogniser) {
    if (const Result<void> made = remake(*shape, now_ms, recogniser); !made) return made.error();
  }
  if (time == Time::now) recogniser->advance(now_ms);
  for (const auto& [client, sequence] : forgotten) recogniser->restore_forgotten(client, sequence);

  std::vector<Operation>& operations = shared->operations;
  operations.insert(operations.end(), unshared.begin(), unshared.end());
  Result<OperationLog> log = OperationLog::restore(state->log, operations, shared->views, limits);
  if (!log) return log.error();
  return std::optional(
      Restart{*shape, Ledger(std::move(*recogniser), std::move(*log), state->bound, state->lag_ms),
              recalled, next_number, unshared.size(), unshared_since_ms});
}

}  // namespace semel::tally
