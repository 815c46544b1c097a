// ClaimTable: one owner at a time, beside a plain map; deadlines, commits, and bytes.
#include "semel/sift/claim_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/allocation.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kFirst = std::numeric_limits<TimeMs>::min();
constexpr TimeMs kLast = std::numeric_limits<TimeMs>::max();
constexpr TimeMs kKeep = 1000;
constexpr std::uint64_t kAnn = 1, kBen = 2;

// Encodes claims that are current, overdue and taken over, and commits. One is of the digest that
// is all zeros.
struct BytesCase {
  using Type = ClaimTable;
  static constexpr std::size_t kHeaderSize = 36;
  static constexpr char kFile[] = "claims_v1.bin";
  static Type make() {
    ClaimTable table(kKeep, kNow);
    EXPECT_EQ(table.claim({0, 0}, kAnn, kNow + 5000), ClaimAnswer::fresh);
    for (std::uint64_t n = 0; n < 6; ++n) {
      EXPECT_EQ(table.claim(key(n), kAnn, kNow + 100 * static_cast<TimeMs>(n)), ClaimAnswer::fresh);
    }
    table.advance(kNow + 250);
    EXPECT_EQ(table.claim(key(1), kBen, kNow + 2000), ClaimAnswer::fresh);
    EXPECT_EQ(table.commit(key(2), kAnn), ClaimAnswer::done);
    EXPECT_EQ(table.commit(key(5), kAnn), ClaimAnswer::done);
    return table;
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Claims, HostileBytes, BytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Claims, Golden, BytesCase);

TEST(ClaimTable, GivesAnIdToOneOwnerUntilTheDeadline) {
  ClaimTable table(kKeep, kNow);
  EXPECT_EQ(table.look(key(1)), ClaimAnswer::fresh);
  EXPECT_EQ(table.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
  EXPECT_EQ(table.owner(key(1)), kAnn);
  for (const TimeMs now_ms : {kNow, kNow + 99}) {
    table.advance(now_ms);
    EXPECT_EQ(table.look(key(1)), ClaimAnswer::pending);
    EXPECT_EQ(table.claim(key(1), kBen, kNow + 200), ClaimAnswer::pending);
    EXPECT_EQ(table.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
  }
  table.advance(kNow + 100);
  EXPECT_EQ(table.look(key(1)), ClaimAnswer::fresh);
  EXPECT_EQ(table.claim(key(1), kBen, kNow + 200), ClaimAnswer::fresh);
  EXPECT_EQ(table.owner(key(1)), kBen);
  EXPECT_EQ(table.counts().taken_over, 1u);
  EXPECT_EQ(table.commit(key(1), kAnn), ClaimAnswer::lost);
  EXPECT_EQ(table.renew(key(1), kAnn, kNow + 300), ClaimAnswer::lost);
  EXPECT_EQ(table.release(key(1), kAnn), ClaimAnswer::lost);
  EXPECT_EQ(table.commit(key(1), kBen), ClaimAnswer::done);
}

TEST(ClaimTable, TakesALateCommitWhileNobodyElseAsked) {
  ClaimTable table(kKeep, kNow);
  EXPECT_EQ(table.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
  table.advance(kNow + 100 + kKeep);
  EXPECT_EQ(table.commit(key(1), kAnn), ClaimAnswer::done);
  EXPECT_EQ(table.claim(key(2), kAnn, kNow + 1200), ClaimAnswer::fresh);
  table.advance(kNow + 1201 + kKeep);
  EXPECT_EQ(table.commit(key(2), kAnn), ClaimAnswer::lost);
  EXPECT_EQ(table.counts().dropped, 2u);
  EXPECT_EQ(table.size(), 0u);
}

TEST(ClaimTable, TellsEveryLaterClaimOfACommitUntilItIsForgotten) {
  ClaimTable table(kKeep, kNow);
  EXPECT_EQ(table.commit(key(1), kAnn), ClaimAnswer::lost);
  EXPECT_EQ(table.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
  EXPECT_EQ(table.forget(key(1), kAnn), ClaimAnswer::lost);
  EXPECT_EQ(table.commit(key(1), kAnn), ClaimAnswer::done);
  EXPECT_EQ(table.commit(key(1), kAnn), ClaimAnswer::done);  // a retry
  EXPECT_EQ(table.commits(), 1u);
  table.advance(kNow + 500);
  EXPECT_EQ(table.look(key(1)), ClaimAnswer::seen);
  EXPECT_EQ(table.claim(key(1), kBen, kNow + 600), ClaimAnswer::seen);
  EXPECT_EQ(table.claim(key(1), kAnn, kNow + 600), ClaimAnswer::seen);
  EXPECT_EQ(table.commit(key(1), kBen), ClaimAnswer::lost);
  EXPECT_EQ(table.release(key(1), kAnn), ClaimAnswer::lost);
  EXPECT_EQ(table.renew(key(1), kAnn, kNow + 600), ClaimAnswer::lost);
  EXPECT_EQ(table.forget(key(1), kBen), ClaimAnswer::lost);
  EXPECT_EQ(table.forget(key(1), kAnn), ClaimAnswer::done);
  EXPECT_EQ(table.commits(), 0u);
  EXPECT_EQ(table.claim(key(1), kBen, kNow + 600), ClaimAnswer::fresh);
}

TEST(ClaimTable, KeepsACommitFromItsOwnTimeOn) {
  ClaimTable table(kKeep, kNow);
  EXPECT_EQ(table.claim(key(1), kAnn, kNow + 50'000), ClaimAnswer::fresh);
  table.advance(kNow + 10);
  EXPECT_EQ(table.commit(key(1), kAnn), ClaimAnswer::done);
  table.advance(kNow + 10 + kKeep);
  EXPECT_EQ(table.look(key(1)), ClaimAnswer::seen);
  table.advance(kNow + 11 + kKeep);
  EXPECT_EQ(table.look(key(1)), ClaimAnswer::fresh);
  EXPECT_EQ(table.commits(), 0u);
}

TEST(ClaimTable, LengthensADeadlineAndNeverShortensIt) {
  for (const bool by_claim : {false, true}) {
    ClaimTable table(kKeep, kNow);
    const auto extend = [&](TimeMs until_ms) {
      return by_claim ? table.claim(key(1), kAnn, until_ms) == ClaimAnswer::fresh
                      : table.renew(key(1), kAnn, until_ms) == ClaimAnswer::done;
    };
    EXPECT_EQ(table.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
    EXPECT_TRUE(extend(kNow + 300));
    EXPECT_TRUE(extend(kNow + 200));
    table.advance(kNow + 299);
    EXPECT_EQ(table.claim(key(1), kBen, kNow + 400), ClaimAnswer::pending);
    table.advance(kNow + 300);
    EXPECT_TRUE(extend(kNow + 400));  // overdue, but nobody else has claimed
    EXPECT_EQ(table.claim(key(1), kBen, kNow + 400), ClaimAnswer::pending);
  }
}

TEST(ClaimTable, FreesAReleasedIdAtOnce) {
  ClaimTable table(kKeep, kNow);
  EXPECT_EQ(table.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
  EXPECT_EQ(table.release(key(1), kBen), ClaimAnswer::lost);
  EXPECT_EQ(table.release(key(1), kAnn), ClaimAnswer::done);
  EXPECT_EQ(table.release(key(1), kAnn), ClaimAnswer::lost);
  EXPECT_EQ(table.claim(key(1), kBen, kNow + 100), ClaimAnswer::fresh);
}

TEST(ClaimTable, TakesADeadlineInThePastForNow) {
  ClaimTable table(kKeep, kNow);
  EXPECT_EQ(table.claim(key(1), kAnn, kFirst), ClaimAnswer::fresh);
  EXPECT_EQ(table.claim(key(1), kBen, kFirst), ClaimAnswer::fresh);
  EXPECT_EQ(table.commit(key(1), kBen), ClaimAnswer::done);
}

TEST(ClaimTable, TakesTimesOfEverySignAndSize) {
  for (const TimeMs start_ms : {kFirst, TimeMs{-1}, kLast}) {
    for (const TimeMs keep_ms : {TimeMs{0}, kKeep, kLast}) {
      ClaimTable table(keep_ms, start_ms);
      EXPECT_EQ(table.claim(key(1), kAnn, kLast), ClaimAnswer::fresh);
      EXPECT_EQ(table.claim(key(2), kAnn, kFirst), ClaimAnswer::fresh);
      EXPECT_EQ(*ClaimTable::decode(encoded(table)), table);
      table.advance(kLast);
      table.advance(kFirst);
      EXPECT_EQ(table.now(), kLast);
      EXPECT_EQ(table.counts().backward_steps, 1u);
      EXPECT_EQ(table.claim(key(1), kBen, kLast), ClaimAnswer::fresh);
      EXPECT_EQ(table.owner(key(2)).has_value(), !older_than(start_ms, keep_ms, kLast));
    }
  }
}

ClaimAnswer ended(bool held) { return held ? ClaimAnswer::done : ClaimAnswer::lost; }

// Compares the table with a plain map. A difference between its heap and its entries shows here.
TEST(ClaimTable, IsWhatAPlainMapIsThroughRandomHistories) {
  struct Entry {
    std::uint64_t owner;
    TimeMs time_ms;
    bool committed;
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ClaimTable table(100, kNow);
    std::map<std::uint64_t, Entry> twin;
    TimeMs now_ms = kNow;
    for (int step = 0; step < 5000; ++step) {
      const std::uint64_t number = random.below(50), owner = random.below(3);
      const TimeMs asked_ms = now_ms + static_cast<TimeMs>(random.below(200)) - 20;
      const TimeMs until_ms = std::max(asked_ms, now_ms);
      const Digest id = key(number);
      const auto known = twin.find(number);
      Entry* const entry = known == twin.end() ? nullptr : &known->second;
      const bool mine = entry != nullptr && entry->owner == owner;
      const bool held = mine && !entry->committed;
      switch (random.below(seed % 2 == 0 ? 12 : 9)) {  // with more or less time between calls
        case 0:
          ASSERT_EQ(table.commit(id, owner), ended(mine));
          if (held) *entry = {owner, now_ms, true};
          break;
        case 1:
          ASSERT_EQ(table.release(id, owner), ended(held));
          if (held) twin.erase(known);
          break;
        case 2:
          ASSERT_EQ(table.forget(id, owner), ended(mine && entry->committed));
          if (mine && entry->committed) twin.erase(known);
          break;
        case 3:
          ASSERT_EQ(table.renew(id, owner, asked_ms), ended(held));
          if (held) entry->time_ms = std::max(entry->time_ms, until_ms);
          break;
        case 4:
          table = *ClaimTable::decode(encoded(table));
          break;
        default: {
          const ClaimAnswer others = entry == nullptr          ? ClaimAnswer::fresh
                                     : entry->committed        ? ClaimAnswer::seen
                                     : now_ms < entry->time_ms ? ClaimAnswer::pending
                                                               : ClaimAnswer::fresh;
          ASSERT_EQ(table.look(id), others);
          const ClaimAnswer answer = held ? ClaimAnswer::fresh : others;
          ASSERT_EQ(table.claim(id, owner, asked_ms), answer);
          if (held) {
            entry->time_ms = std::max(entry->time_ms, until_ms);
          } else if (answer == ClaimAnswer::fresh) {
            twin[number] = {owner, until_ms, false};
          }
          break;
        }
        case 9:
        case 10:
        case 11:
          now_ms += static_cast<TimeMs>(random.below(20));
          table.advance(now_ms);
          std::erase_if(twin, [&](const auto& e) { return e.second.time_ms < now_ms - 100; });
          break;
      }
      ASSERT_EQ(table.size(), twin.size());
      const auto commits =
          std::count_if(twin.begin(), twin.end(), [](const auto& e) { return e.second.committed; });
      ASSERT_EQ(table.commits(), static_cast<std::uint64_t>(commits));
      const auto after = twin.find(number);
      ASSERT_EQ(table.owner(id),
                after == twin.end() ? std::nullopt : std::optional(after->second.owner));
    }
  }
}

TEST(ClaimTable, GivesEqualBytesWhateverTheOrder) {
  ClaimTable forwards(kKeep, kNow), backwards(kKeep, kNow);
  for (std::uint64_t n = 0; n < 500; ++n) {
    EXPECT_EQ(forwards.claim(key(n), n, kNow + 10), ClaimAnswer::fresh);
    EXPECT_EQ(backwards.claim(key(499 - n), 499 - n, kNow + 10), ClaimAnswer::fresh);
  }
  EXPECT_EQ(forwards, backwards);
  EXPECT_EQ(encoded(forwards), encoded(backwards));
  EXPECT_EQ(backwards.release(key(7), 7), ClaimAnswer::done);
  EXPECT_NE(forwards, backwards);
}

// Claims that end soon leave nothing behind, however distant their deadlines are.
TEST(ClaimTable, TakesMemoryForTheClaimsThatAreOnAlone) {
  ClaimTable table(kKeep, kNow);
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    ASSERT_EQ(table.claim(key(n), kAnn, kNow + 1'000'000), ClaimAnswer::fresh);
    ASSERT_EQ(table.release(key(n), kAnn), ClaimAnswer::done);
  }
  EXPECT_EQ(table.size(), 0u);
  EXPECT_LT(table.bytes(), 8000u);
  for (std::uint64_t n = 0; n < 1000; ++n) {
    ASSERT_EQ(table.claim(key(n), kAnn, kNow + 1'000'000), ClaimAnswer::fresh);
  }
  EXPECT_LT(table.bytes(), 1000 * 160u);
}

TEST(ClaimTable, GivesBackWhatAPeakTook) {
  for (const bool released : {true, false}) {
    const LiveAllocation live;
    ClaimTable table(kKeep, kNow);
    for (std::uint64_t n = 0; n < 100'000; ++n) {
      ASSERT_EQ(table.claim(key(n), kAnn, kNow + 1), ClaimAnswer::fresh);
    }
    EXPECT_GT(table.bytes(), 100'000 * 50u);
    for (std::uint64_t n = 0; released && n < 100'000; ++n) table.release(key(n), kAnn);
    if (!released) table.advance(kNow + 2 + kKeep);
    EXPECT_EQ(table.size(), 0u);
    EXPECT_LT(table.bytes(), 10'000u);
    EXPECT_LT(live.bytes(), 10'000u);
  }
}

TEST(ClaimTable, RefusesBytesThatNoTableWrites) {
  ClaimTable table(kKeep, kNow);
  EXPECT_EQ(table.claim({5, 1}, kAnn, kNow + 100), ClaimAnswer::fresh);
  EXPECT_EQ(table.claim({5, 2}, kBen, kNow), ClaimAnswer::fresh);
  EXPECT_EQ(table.commit({5, 2}, kBen), ClaimAnswer::done);
  const Bytes sound = encoded(table);
  constexpr std::size_t kFirstEntry = 36, kSecondEntry = kFirstEntry + 33;
  const auto refusal = [&](std::size_t at, std::uint64_t value) -> std::string {
    Bytes bytes = sound;
    store_u64(bytes.data() + at, value);
    store_u64(bytes.data() + bytes.size() - 8, checksum(ByteView(bytes).first(bytes.size() - 8)));
    const Result<ClaimTable> read = ClaimTable::decode(bytes);
    return read ? "" : read.error().message();
  };
  const auto time = [](TimeMs time_ms) { return static_cast<std::uint64_t>(time_ms); };
  EXPECT_EQ(refusal(12, time(kKeep)), "");
  EXPECT_EQ(refusal(12, time(-1)), "claims: header");
  EXPECT_EQ(refusal(28, 1), "claims: size");
  EXPECT_EQ(refusal(28, 3), "claims: size");
  EXPECT_EQ(refusal(kSecondEntry + 8, 1), "claims: order of ids");
  EXPECT_EQ(refusal(kSecondEntry + 8, 0), "claims: order of ids");
  EXPECT_EQ(refusal(kFirstEntry + 24, time(kNow - kKeep)), "");
  EXPECT_EQ(refusal(kFirstEntry + 24, time(kNow - kKeep - 1)), "claims: time of an entry");
  EXPECT_EQ(refusal(kFirstEntry + 24, time(kLast)), "");
  EXPECT_EQ(refusal(kSecondEntry + 24, time(kNow + 1)), "claims: time of an entry");
  EXPECT_EQ(refusal(kSecondEntry + 24, time(kNow - kKeep - 1)), "claims: time of an entry");
  EXPECT_EQ(refusal(kSecondEntry + 25, time(kNow) >> 8 | std::uint64_t{2} << 56),
            "claims: state of an entry");
}

TEST(ClaimTableDeathTest, RefusesANegativeTimeToKeep) {
  EXPECT_DEATH(ClaimTable(-1, kNow), "keep_ms >= 0");
}

TEST(ClaimTable, LooksAheadOfTimeAsACopyThatWentThere) {
  const ClaimTable table = BytesCase::make();
  for (TimeMs now_ms = kNow; now_ms < kNow + 7000; ++now_ms) {
    ClaimTable later = table;
    later.advance(now_ms);
    for (std::uint64_t n = 0; n < 8; ++n) {
      EXPECT_EQ(table.look(key(n), now_ms), later.look(key(n))) << n << " at " << now_ms;
      EXPECT_EQ(table.owner(key(n), now_ms), later.owner(key(n))) << n << " at " << now_ms;
    }
  }
}

}  // namespace
}  // namespace semel
