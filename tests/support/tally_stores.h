// Tables in stores, as the tests of one site and of several make them.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "semel/core/clock.h"
#include "semel/index/indexed_store.h"
#include "semel/store/ordered_store.h"
#include "semel/sync/responder.h"
#include "semel/tally/store/tally_store.h"
#include "tests/support/keys.h"

namespace semel::tally {

inline constexpr TimeMs kNow = 1'700'000'000'000;
inline constexpr TimeMs kWindow = 10'000;
inline constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// The clock of what arrives from other sites.
inline ManualClock& test_clock() {
  static ManualClock clock(kNow);
  return clock;
}

inline TallyStore::Settings settings_of(SiteId site = 1,
                                        Recognition::Kind kind = Recognition::Kind::clients,
                                        Durability durability = Durability::every_write) {
  TallyStore::Settings settings;
  settings.recognition = {.kind = kind, .window_ms = kWindow, .fpr = 1e-9, .ids = 256};
  settings.site = site;
  settings.durability = durability;
  settings.clock = &test_clock();
  return settings;
}

inline OperationId id(std::uint64_t number) { return OperationId::opaque(key(number)); }
inline OperationId numbered(std::uint64_t client, std::uint64_t sequence) {
  return OperationId::numbered(key(client), sequence);
}

inline std::unique_ptr<TallyStore> opened(OrderedStore& store, const TallyStore::Settings& settings,
                                          TimeMs now_ms = kNow) {
  Result<std::unique_ptr<TallyStore>> table = TallyStore::open(store, settings, now_ms);
  EXPECT_TRUE(table) << table.error().message();
  return std::move(*table);
}

inline Answer added(TallyStore& table, std::string_view counter, std::int64_t delta,
                    const OperationId& named, TimeMs now_ms = kNow) {
  const Result<Answer> answer = table.add({counter, delta, named}, now_ms);
  EXPECT_TRUE(answer) << answer.error().message();
  return answer ? *answer : Answer{Outcome::full};
}

inline std::optional<std::int64_t> value(const TallyStore& table, std::string_view counter) {
  return *table.get(counter);
}

// Makes two sites agree by a sync. The sync knows nothing of tables.
inline void sync(TallyStore& one, TallyStore& other) {
  for (int i = 0; i < 3; ++i) {
    const Result<IndexedStore*> here = one.ready_to_sync();
    const Result<IndexedStore*> there = other.ready_to_sync();
    ASSERT_TRUE(here && there);
    SyncSettings settings;
    settings.range = TallyStore::sync_rule().range;
    settings.resolver.join = TallyStore::sync_rule().join;
    Responder responder(**there, {settings.range, false, settings.resolver, {}});
    LocalPeer peer(responder);
    const Result<SyncReport> report = semel::sync(**here, peer, settings);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_TRUE(report->proved);
  }
}

}  // namespace semel::tally
