#include "tests/simulation/tally_faults.h"

#include "semel/core/codec.h"
#include "semel/tally/entries.h"
#include "semel/tally/members.h"
#include "semel/tally/store_batch.h"

namespace semel::simulation {

Result<void> IdFirstStore::write(std::span<const Write> writes) {
  for (const Write& write : writes) {
    if (!write.value || !tally::journal_of_key(write.key)) continue;
    const Result<tally::JournalRecord> record =
        tally::JournalRecord::decode(bytes_of(*write.value), with_content_);
    if (!record) return record.error();
    tally::StoreBatch ids(below(), with_content_);
    for (const tally::Recogniser::Query& query : record->ids) ids.remember(query);
    ids.close_journal(write.key);
    if (Result<void> written = ids.write(); !written) return written;
  }
  return below().write(writes);
}

namespace {

std::string encoded(const tally::SiteView& view) {
  Bytes out;
  view.encode(out);
  return std::string(text_of(out));
}

}  // namespace

std::string understated(std::string_view view, SiteId site, std::uint64_t own) {
  tally::SiteView said = *tally::SiteView::decode(bytes_of(view));
  said.heads.set(site, 0);
  VersionVector held;
  for (const VersionVector::Site& log : said.held.sites()) {
    const std::uint64_t number = log.site == site ? own : log.counter;
    if (number > 0) held.advance({log.site, number});
  }
  said.held = held;
  return encoded(said);
}

std::string overstated(std::string_view view, const VersionVector& more) {
  tally::SiteView said = *tally::SiteView::decode(bytes_of(view));
  said.held.merge(more);
  return encoded(said);
}

Result<void> drop_journal(OrderedStore& store, TimeMs before_ms) {
  return store.remove_range(
      {std::string(1, tally::kJournalPrefix), tally::journal_key(before_ms, 0)});
}

}  // namespace semel::simulation
