#include "semel/tally/store/internal/store_writer.h"

#include <algorithm>
#include <memory>
#include <string>

#include "semel/tally/internal/entries.h"

namespace semel::tally::internal {
namespace {

// The number of times in a window that the journal is searched for old ids.
constexpr TimeMs kForgettingSteps = 8;

Bytes encoded(const auto& value) {
  Bytes out;
  value.encode(out);
  return out;
}

}  // namespace

StoreWriter::StoreWriter(OrderedStore& store, Ledger& ledger, const Start& start)
    : store_(store),
      ledger_(ledger),
      batch_(store, ledger.recogniser().wants_content()),
      start_(start),
      written_(start.unsynced ? 1 : 0) {
  batch_.set_site(ledger.log().site());
}

Result<void> StoreWriter::usable() const {
  if (!broken_) return {};
  return Error{Errc::io, "an earlier change failed: the table must be opened again"};
}

void StoreWriter::put_state() { batch_.put(kStateKey, encoded(ledger_.state())); }

Result<void> StoreWriter::commit() {
  if (batch_.empty()) return {};
  if (batch_.has_journal()) {
    const TimeMs now_ms = ledger_.recogniser().now();
    if (batch_.has_operations() && !start_.unshared_since_ms) start_.unshared_since_ms = now_ms;
    batch_.close_journal(journal_key(now_ms, start_.next_number++));
  }
  if (batch_.folded()) ++folds_;
  put_state();
  ++written_;
  Result<void> written = batch_.write();
  if (written) written = shorten_merges();
  if (!written) broken_ = true;
  return written;
}

// Makes one record of each counter whose list of merges has become long.
Result<void> StoreWriter::shorten_merges() {
  for (const std::string& counter : batch_.take_heavy()) {
    const std::string key = counter_key(counter);
    const std::optional<std::string> value = SEMEL_TRY(store_.get(key));
    if (value) batch_.put(key, bytes_of(*value));
  }
  if (batch_.empty()) return {};
  ++written_;
  return batch_.write();
}

Result<void> StoreWriter::sync() {
  const std::uint64_t begun = begin_sync(ledger_.recogniser().now());
  return end_sync(begun, store_.sync());
}

std::uint64_t StoreWriter::begin_sync(TimeMs now_ms) {
  synced_ms_ = now_ms;
  return written_;
}

Result<void> StoreWriter::end_sync(std::uint64_t begun, const Result<void>& synced) {
  if (synced) {
    synced_ = std::max(synced_, begun);
  } else {
    broken_ = true;
  }
  return synced;
}

Result<void> StoreWriter::forget_old_ids() {
  const Recogniser& recogniser = ledger_.recogniser();
  const TimeMs step = std::max<TimeMs>(1, recogniser.goal().window_ms / kForgettingSteps);
  if (recogniser.now() < later_by(forgot_ms_, step)) return {};
  forgot_ms_ = recogniser.now();

  TimeMs before_ms = recogniser.promise().forgotten_before_ms;
  if (start_.unshared_since_ms) before_ms = std::min(before_ms, *start_.unshared_since_ms);
  const KeyRange old{std::string(1, kJournalPrefix), journal_key(before_ms, 0)};
  const std::unique_ptr<Cursor> cursor = SEMEL_TRY(store_.cursor());
  Cursor& at = *cursor;
  for (at.seek(old.first); at.valid() && old.contains(at.key()); at.next()) {
    const JournalRecord record =
        SEMEL_TRY(JournalRecord::decode(bytes_of(at.value()), recogniser.wants_content()));
    for (const Recogniser::Query& query : record.ids) {
      if (query.id.kind != OperationId::Kind::numbered) continue;
      const std::string key = forgotten_key(query.id.digest);
      if (const std::optional<std::uint64_t> highest = recogniser.forgotten(query.id.digest)) {
        Bytes value;
        Writer(value).varint(*highest);
        batch_.put(key, value);
      } else {
        batch_.remove(key);
      }
    }
    batch_.remove(at.key());
  }
  SEMEL_TRY(at.status());
  return commit();
}

// Makes entries of the operations of a site that are only in the journal.
void StoreWriter::share_operations(SiteId site) {
  ledger_.log().operations_of(site, start_.shared + 1, [this](const Operation& operation) {
    batch_.put(operation_key(operation.dot), bytes_of(entry_of(operation)));
  });
  start_.unshared_since_ms.reset();
}

Result<void> StoreWriter::publish() {
  const OperationLog& log = ledger_.log();
  if (log.superseded()) return log.in_force();
  SEMEL_TRY(commit());
  if (unsynced()) SEMEL_TRY(sync());
  const SiteView view = log.view();
  const SiteView* published = log.view_of(log.site());
  if (published != nullptr && *published == view) return {};
  share_operations(log.site());
  start_.shared = log.held().at(log.site());
  batch_.put(view_key(log.site()), bytes_of(entry_of(log.site(), view)));
  ledger_.record_published(view, batch_);
  return commit();
}

Result<void> StoreWriter::become(SiteId site, TimeMs now_ms) {
  const SiteId member = ledger_.log().site();
  SEMEL_TRY(ledger_.become(site, now_ms));
  // If the files were copied, the copy may have operations of the member only in its journal.
  share_operations(member);
  start_.shared = 0;
  batch_.set_site(site);
  put_state();
  return publish();
}

}  // namespace semel::tally::internal
