#include "tests/simulation/tally_site.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "semel/tally/internal/entries.h"
#include "semel/tally/store/counter_merger.h"

namespace semel::simulation {

using tally::TallyStore;

namespace {

constexpr TimeMs kEpochMs = 1'000'000'000;

bool covers(const VersionVector& all, const VersionVector& part) {
  VersionVector both = all;
  return !both.merge(part);
}

}  // namespace

TallySite::TallySite(SiteId id, const TallyStore::Settings& settings, TallyFault fault,
                     const Skew& skew)
    : id_(id),
      settings_(settings),
      fault_(fault),
      skew_(skew),
      latest_ms_(clock(0)),
      disk_(&tally::counter_merger()),
      failing_(disk_),
      id_first_(failing_, settings.recognition->kind == tally::Recognition::Kind::exact),
      forgetful_(failing_, id, fault,
                 settings.recognition->kind == tally::Recognition::Kind::exact) {
  settings_.site = id;
  settings_.clock = &shown_;
}

OrderedStore& TallySite::store() {
  if (fault_ == TallyFault::id_before_effect) return id_first_;
  const bool forgets =
      fault_ == TallyFault::folded_not_kept || fault_ == TallyFault::out_of_order_forgotten;
  if (forgets) return forgetful_;
  return failing_;
}

TimeMs TallySite::clock(TimeMs now_ms) const {
  return kEpochMs + now_ms + skew_.offset_ms +
         static_cast<TimeMs>(skew_.drift * static_cast<double>(now_ms));
}

TimeMs TallySite::see(TimeMs now_ms) {
  if (fault_ != TallyFault::arrivals_without_time) shown_.set(clock(now_ms));
  return latest_ms_ = std::max(latest_ms_, clock(now_ms));
}

void TallySite::open(TimeMs now_ms) {
  see(now_ms);
  shown_.set(clock(now_ms));
  if (fault_ == TallyFault::recall_within_cap) {
    require(forget_beyond_cap(disk_, *settings_.recognition), "journal");
  }
  Result<std::unique_ptr<TallyStore>> opened = TallyStore::open(store(), settings_, clock(now_ms));
  require(opened, "a table cannot be opened");
  table_ = *std::move(opened);
  broken_ = false;
}

Result<void> TallySite::open_as_copy_of(TallySite& member, TimeMs now_ms) {
  see(now_ms);
  shown_.set(clock(now_ms));
  if (fault_ == TallyFault::retired_copied) return open_as_blind_copy_of(member, now_ms);
  if (Result<void> copied = member.table().copy_to(disk_); !copied) return copied;
  Result<std::unique_ptr<TallyStore>> opened =
      TallyStore::open_as(store(), id_, settings_, clock(now_ms));
  if (!opened) return opened.error();
  table_ = *std::move(opened);
  durable_ = held();
  return {};
}

Result<void> TallySite::open_as_blind_copy_of(TallySite& member, TimeMs now_ms) {
  if (Result<void> said = member.table().publish(); !said) return said;
  std::vector<std::pair<std::string, std::string>> records;
  const auto cursor = *member.disk_.cursor();
  for (cursor->seek({}); cursor->valid(); cursor->next()) {
    records.emplace_back(cursor->key(), cursor->value());
  }
  std::vector<RecordWrite> writes;
  for (const auto& [key, value] : records) writes.push_back({key, value});
  if (Result<void> copied = disk_.write(writes); !copied) return copied;
  if (Result<void> became = become_blindly(disk_, id_); !became) return became;
  if (Result<void> synced = disk_.sync(); !synced) return synced;
  open(now_ms);
  require(table_->publish(), "publish");
  durable_ = held();
  return {};
}

void TallySite::find_broken(TimeMs now_ms) {
  broken_ = true;
  for (const Result<void>& told : {table_->publish(), table_->tick(clock(now_ms))}) {
    require(!told && told.error().code == Errc::io, "a table goes on after its disk has failed");
  }
}

void TallySite::crash(bool power_fails, Random& random) {
  held_at_crash_ = held();
  fail_next(std::nullopt);
  power_failed_ = power_fails;
  table_.reset();
  if (power_fails) disk_.crash(random);
}

std::uint64_t TallySite::restart(TimeMs now_ms) {
  const bool was_broken = broken_;
  open(now_ms);
  const VersionVector now = held();
  require(covers(now, durable_), "a site lost what was durable", Violation::Kind::lost);
  require(power_failed_ || was_broken || now == held_at_crash_,
          "a site that was killed lost what it wrote", Violation::Kind::lost);
  note();
  return now.at(id_);
}

void TallySite::note() {
  if (disk_.unsynced() == 0) durable_ = held();
}

void TallySite::tick(TimeMs now_ms) {
  see(now_ms);
  shown_.set(clock(now_ms));
  require(table_->tick(clock(now_ms)), "tick");
  note();
  if (fault_ == TallyFault::journal_dropped) {
    require(drop_journal(disk_, table_->info().promise.forgotten_before_ms), "journal");
  }
}

void TallySite::publish() {
  const VersionVector said = held();
  require(table_->publish(), "publish");
  durable_ = said;
  if (said.at(id_) != said_) said_before_ = std::exchange(said_, said.at(id_));
}

Entries TallySite::entries(bool honest) {
  Entries entries;
  const auto cursor = *table_->entries().cursor();
  for (cursor->seek(tally::internal::kSharedFirst);
       cursor->valid() && cursor->key() < tally::internal::kSharedEnd; cursor->next()) {
    std::string value(cursor->value());
    if (fault_ == TallyFault::no_second_rule && !honest &&
        tally::internal::site_of_key(cursor->key()) == id_) {
      value = understated(value, id_, said_before_);
    }
    if (fault_ == TallyFault::acknowledged_while_full && !honest &&
        tally::internal::site_of_key(cursor->key()) == id_) {
      value = overstated(value, id_, refused_);
    }
    entries.emplace_back(cursor->key(), std::move(value));
  }
  return entries;
}

// Notes the next entries of a log that were refused because there was no room.
void TallySite::note_refused(const Entries& entries) {
  const VersionVector now = held();
  for (const auto& [key, value] : entries) {
    const std::optional<Dot> dot = tally::internal::dot_of_key(key);
    if (dot && dot->counter == now.at(dot->site) + 1) refused_.advance(*dot);
  }
}

void TallySite::take(const Entries& entries, bool join, TimeMs now_ms) {
  see(now_ms);
  if (join) {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : entries) keys.emplace_back(key);
    const auto become = [&](std::size_t i, std::optional<std::string_view> now) {
      const auto& [key, value] = entries[i];
      return std::optional(now ? tally::internal::join_entries(key, *now, value) : value);
    };
    require(table_->entries().update(keys, become), "entries of another site");
  } else {
    std::vector<RecordWrite> writes;
    for (const auto& [key, value] : entries) writes.push_back({key, value});
    require(table_->entries().write(writes), "entries of another site");
  }
  note();
  if (fault_ == TallyFault::acknowledged_while_full) note_refused(entries);
}

}  // namespace semel::simulation
