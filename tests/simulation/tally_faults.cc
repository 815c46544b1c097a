#include "tests/simulation/tally_faults.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <variant>

#include "semel/core/codec.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/ledger.h"
#include "semel/tally/internal/logged_operation.h"
#include "semel/tally/members.h"
#include "semel/tally/store/internal/store_batch.h"

namespace semel::simulation {

Result<void> IdFirstStore::write(std::span<const RecordWrite> writes) {
  for (const RecordWrite& write : writes) {
    if (!write.value || !tally::internal::journal_of_key(write.key)) continue;
    const Result<tally::internal::JournalRecord> record =
        tally::internal::JournalRecord::decode(bytes_of(*write.value), with_content_);
    if (!record) return record.error();
    tally::internal::StoreBatch ids(below(), with_content_);
    for (const tally::internal::Recogniser::Query& query : record->ids) ids.remember(query);
    ids.close_journal(write.key);
    if (Result<void> written = ids.write(); !written) return written;
  }
  return below().write(writes);
}

namespace {

std::string encoded(const auto& value) {
  Bytes out;
  value.encode(out);
  return std::string(text_of(out));
}

// Rewrites the record of the journal with these ids.
Result<void> rewrite(OrderedStore& store, std::string_view key,
                     const tally::internal::JournalRecord& record, bool with_content) {
  tally::internal::StoreBatch batch(store, with_content);
  for (const tally::internal::Recogniser::Query& query : record.ids) batch.remember(query);
  for (const tally::internal::Operation& operation : record.operations) {
    batch.set_site(operation.dot.site);
    batch.hold(operation);
  }
  if (batch.has_journal()) {
    batch.close_journal(key);
  } else {
    batch.remove(key);
  }
  return batch.write();
}

}  // namespace

Result<void> ForgetfulStore::write(std::span<const RecordWrite> writes) {
  if (fault_ == TallyFault::folded_not_kept) return write_unkept(writes);
  if (fault_ == TallyFault::out_of_order_forgotten) return write_in_order(writes);
  return below().write(writes);
}

// An operation of this site becomes an entry only once the site says that it holds the operation.
Result<void> ForgetfulStore::write_unkept(std::span<const RecordWrite> writes) {
  const bool says = std::any_of(writes.begin(), writes.end(), [this](const RecordWrite& write) {
    return tally::internal::site_of_key(write.key) == site_;
  });
  std::vector<RecordWrite> kept(writes.begin(), writes.end());
  std::erase_if(kept, [&](const RecordWrite& write) {
    const std::optional<Dot> dot = tally::internal::dot_of_key(write.key);
    return !says && write.value && dot && dot->site == site_;
  });
  return below().write(kept);
}

Result<void> ForgetfulStore::write_in_order(std::span<const RecordWrite> writes) {
  const bool arrives = std::any_of(writes.begin(), writes.end(), [this](const RecordWrite& write) {
    const std::optional<Dot> dot = tally::internal::dot_of_key(write.key);
    return write.value && dot && dot->site != site_;
  });
  if (Result<void> written = below().write(writes); !written) return written;
  for (const RecordWrite& write : writes) {
    if (!write.value || !tally::internal::journal_of_key(write.key)) continue;
    Result<tally::internal::JournalRecord> record =
        tally::internal::JournalRecord::decode(bytes_of(*write.value), with_content_);
    if (!record) return record.error();
    const std::size_t removed =
        std::erase_if(record->ids, [&](const tally::internal::Recogniser::Query& query) {
          if (query.id.kind != tally::OperationId::Kind::numbered) return false;
          std::uint64_t& highest = highest_[query.id.digest.lo];
          const bool below_it = query.id.sequence < highest;
          highest = std::max(highest, query.id.sequence);
          return arrives && below_it;
        });
    if (removed == 0) continue;
    if (Result<void> less = rewrite(below(), write.key, *record, with_content_); !less) return less;
  }
  return {};
}

Result<void> forget_beyond_cap(OrderedStore& store, const tally::Recognition& goal) {
  const bool with_content = goal.kind == tally::Recognition::Kind::exact;
  std::vector<std::pair<std::string, std::string>> records;
  {
    const Result<std::unique_ptr<Cursor>> cursor = store.cursor();
    if (!cursor) return cursor.error();
    Cursor& at = **cursor;
    for (at.seek({&tally::internal::kJournalPrefix, 1});
         at.valid() && tally::internal::journal_of_key(at.key()); at.next()) {
      records.emplace_back(at.key(), at.value());
    }
  }
  if (records.empty()) return {};
  Result<tally::internal::Recogniser> recogniser = tally::internal::Recogniser::make(
      goal, tally::internal::journal_of_key(records.front().first)->at_ms);
  if (!recogniser) return recogniser.error();
  for (const auto& [key, value] : records) {
    const TimeMs at_ms = tally::internal::journal_of_key(key)->at_ms;
    Result<tally::internal::JournalRecord> record =
        tally::internal::JournalRecord::decode(bytes_of(value), with_content);
    if (!record) return record.error();
    recogniser->advance(at_ms);
    const std::size_t refused =
        std::erase_if(record->ids, [&](const tally::internal::Recogniser::Query& query) {
          return recogniser->insert(query, at_ms) == tally::Outcome::full;
        });
    if (refused == 0) continue;
    if (Result<void> less = rewrite(store, key, *record, with_content); !less) return less;
  }
  return store.sync();
}

Result<void> become_blindly(OrderedStore& store, SiteId site) {
  const Result<std::optional<std::string>> bytes = store.get(tally::internal::kStateKey);
  if (!bytes) return bytes.error();
  Reader r(bytes_of(**bytes));
  Result<tally::internal::Ledger::State> state = tally::internal::Ledger::State::decode(r);
  if (!state) return state.error();
  state->log.site = site;
  state->log.ready = false;
  const std::string value = encoded(*state);
  const RecordWrite write{tally::internal::kStateKey, value};
  return store.write({&write, 1});
}

namespace {

tally::internal::SiteView view_of(std::string_view key, std::string_view value) {
  return std::get<tally::internal::ViewOfSite>(*tally::internal::decode_entry(key, bytes_of(value)))
      .view;
}

// Changes what a view says of one log: that only `own` operations of it are held.
void understate(tally::internal::SiteView& view, SiteId site, std::uint64_t own) {
  VersionVector held;
  for (const VersionVector::Site& log : view.held.sites()) {
    const std::uint64_t number = log.site == site ? own : log.counter;
    if (number > 0) held.advance({log.site, number});
  }
  view.held = held;
  view.heads.set(site, 0);  // unknown
}

}  // namespace

Entries believed(const Entries& entries, const tally::internal::OperationLog::State& state) {
  Entries believed;
  VersionVector next = state.held;
  tally::internal::LogHeads heads = state.heads;
  for (const auto& [key, value] : entries) {
    if (const std::optional<Dot> dot = tally::internal::dot_of_key(key)) {
      tally::internal::Operation operation = std::get<tally::internal::Operation>(
          *tally::internal::decode_entry(key, bytes_of(value)));
      if (dot->site == state.site || dot->counter != next.at(dot->site) + 1) continue;
      operation.previous = heads.at(dot->site);
      for (const auto& member : state.members.all()) {
        operation.known.advance({member.site, Dot::kLastCounter});
      }
      next.advance(*dot);
      heads.set(dot->site, operation.head());
      believed.emplace_back(key, tally::internal::entry_of(operation));
    } else if (const std::optional<SiteId> site = tally::internal::site_of_key(key)) {
      if (*site == state.site) continue;
      tally::internal::SiteView view = view_of(key, value);
      understate(view, state.site, std::min(view.held.at(state.site), state.held.at(state.site)));
      view.heads = {};
      view.group = state.group;
      believed.emplace_back(key, tally::internal::entry_of(*site, view));
    }
  }
  return believed;
}

std::string understated(std::string_view view, SiteId site, std::uint64_t own) {
  tally::internal::SiteView said = view_of(tally::internal::view_key(site), view);
  understate(said, site, own);
  return tally::internal::entry_of(site, said);
}

std::string overstated(std::string_view view, SiteId site, const VersionVector& more) {
  tally::internal::SiteView said = view_of(tally::internal::view_key(site), view);
  said.held.merge(more);
  return tally::internal::entry_of(site, said);
}

Result<void> drop_journal(OrderedStore& store, TimeMs before_ms) {
  return store.remove_range({std::string(1, tally::internal::kJournalPrefix),
                             tally::internal::journal_key(before_ms, 0)});
}

}  // namespace semel::simulation
