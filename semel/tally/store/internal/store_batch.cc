#include "semel/tally/store/internal/store_batch.h"

#include <utility>

#include "semel/core/assert.h"
#include "semel/hash/internal/sealed.h"
#include "semel/tally/internal/entries.h"

namespace semel::tally::internal {

void StoreBatch::append(std::string_view prefix, std::string_view key, ByteView value, bool removes,
                        bool merges) {
  const std::size_t start = text_.size();
  text_.append(prefix).append(key).append(text_of(value));
  const std::size_t key_size = prefix.size() + key.size();
  writes_.push_back({start, key_size, start + key_size, value.size(), removes, merges});
}

void StoreBatch::put(std::string_view key, ByteView value) { append(key, {}, value, false, false); }

void StoreBatch::remove(std::string_view key) { append(key, {}, {}, true, false); }

std::optional<int128> StoreBatch::fold(std::string_view counter, const Shard& shard) {
  folded_ = true;
  const auto at = folds_.lower_bound(counter);
  if (at != folds_.end() && at->first == counter) {
    at->second.add(shard);
  } else {
    folds_.emplace_hint(at, counter, CounterState(shard));
  }
  return std::nullopt;
}

void StoreBatch::fold_all(std::span<const NamedShard> shards, std::span<int128> sums) {
  SEMEL_ASSERT(sums.empty());
  for (const NamedShard& each : shards) fold(each.counter, each.shard);
}

void StoreBatch::clear(std::string_view counter) {
  folded_ = true;
  if (const auto at = folds_.find(counter); at != folds_.end()) folds_.erase(at);
  append({&kCounterPrefix, 1}, counter, {}, true, false);
}

void StoreBatch::hold(const Operation& operation) {
  if (operation.dot.site != site_) {
    put(operation_key(operation.dot), bytes_of(entry_of(operation)));
    return;
  }
  value_.clear();
  operation.encode(value_);
  ++operations_;
  Writer journal(journal_operations_);
  journal.u64(operation.dot.packed());
  journal.text(text_of(value_));
}

// A restart ignores folded operations of the journal, so an operation that is still needed becomes
// an entry. All members hold it, so they may see it.
void StoreBatch::keep(const Operation& operation) {
  if (operation.dot.site != site_) return;
  put(operation_key(operation.dot), bytes_of(entry_of(operation)));
}

void StoreBatch::drop(Dot dot) { remove(operation_key(dot)); }

void StoreBatch::remember(const Recogniser::Query& query) {
  ++ids_;
  query.id.encode(journal_ids_);
  if (!with_content_) return;
  Writer journal(journal_ids_);
  semel::write(journal, query.content);
}

Result<void> StoreBatch::sums_of(std::span<const std::string_view> counters,
                                 std::span<std::optional<int128>> sums) const {
  for (std::size_t i = 0; i < counters.size(); ++i) {
    sums[i].reset();
    const std::optional<std::string> value = SEMEL_TRY(store_.get(counter_key(counters[i])));
    if (!value) continue;
    const CounterState state = SEMEL_TRY(CounterState::decode(bytes_of(*value)));
    sums[i] = state.sum();
  }
  return {};
}

void StoreBatch::close_journal(std::string_view key) {
  if (!has_journal()) return;
  value_.clear();
  Writer record(value_);
  record.varint(ids_);
  record.bytes(journal_ids_);
  record.varint(operations_);
  record.bytes(journal_operations_);
  put(key, value_);
  journal_ids_.clear();
  journal_operations_.clear();
  ids_ = operations_ = 0;
}

void StoreBatch::count_merge(const std::string& counter) {
  const Digest name = digest(counter, 0);
  const auto tag = static_cast<std::uint32_t>(name.hi);
  Merges& merges = merges_[name.lo % kPlaces];
  if (merges.count == 0) merges.tag = tag;
  if (merges.tag != tag) {
    --merges.count;
  } else if (++merges.count == kHeavy) {
    merges.count = 0;
    heavy_.push_back(counter);
  }
}

Result<void> StoreBatch::write() {
  SEMEL_ASSERT(!has_journal());
  for (const auto& [counter, state] : folds_) {
    value_.clear();
    state.encode(value_);
    append({&kCounterPrefix, 1}, counter, value_, false, true);
    count_merge(counter);
  }
  folds_.clear();
  views_.clear();
  for (const Piece& piece : writes_) {
    const std::string_view key(text_.data() + piece.key, piece.key_size);
    std::optional<std::string_view> value;
    if (!piece.removes) value.emplace(text_.data() + piece.value, piece.value_size);
    views_.push_back({key, value, piece.merges});
  }
  Result<void> written = store_.write(views_);
  writes_.clear();
  text_.clear();
  folded_ = false;
  return written;
}

Result<JournalRecord> JournalRecord::decode(ByteView in, bool with_content) {
  const Error damaged{Errc::corrupt, "journal of a table: a damaged record"};
  Reader r(in);
  JournalRecord record;
  const std::uint64_t ids = r.varint();
  for (std::uint64_t i = 0; i < ids; ++i) {
    Recogniser::Query query{SEMEL_TRY(OperationId::decode(r))};
    if (with_content) query.content = read_digest(r);
    if (!r.ok()) return damaged;
    record.ids.push_back(query);
  }
  const std::uint64_t operations = r.varint();
  for (std::uint64_t i = 0; i < operations; ++i) {
    const Dot dot = Dot::unpacked(r.u64());
    const std::string_view value = r.text();
    if (!r.ok() || dot.counter == 0) return damaged;
    record.operations.push_back(SEMEL_TRY(Operation::decode(dot, bytes_of(value))));
  }
  if (!r.at_end()) return damaged;
  return record;
}

}  // namespace semel::tally::internal
