// EntryStore and PackedEntries beside an exact twin: few entries, a table, overflow and back.
#include "semel/crdt/internal/entry_store.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/crdt/internal/packed_entries.h"
#include "tests/support/keys.h"

namespace semel {

using crdt_internal::EntryStore;
using crdt_internal::PackedEntries;
using filter_internal::CuckooEntry;
using filter_internal::CuckooPlaces;
using filter_internal::CuckooSpot;

namespace {

using Twin = std::set<CuckooEntry>;

const CuckooPlaces kSmall = CuckooShape{4, 8, 16, 16, kTestHash};

CuckooEntry entry_of(const CuckooPlaces& shape, Digest key, std::uint64_t payload) {
  const CuckooSpot spot = shape.spot_of(key);
  return {shape.pair_of(spot), spot.fingerprint, payload};
}

std::vector<CuckooEntry> sorted(std::vector<CuckooEntry> entries) {
  std::sort(entries.begin(), entries.end());
  return entries;
}

void expect_same(const EntryStore& store, const Twin& twin) {
  ASSERT_EQ(store.size(), twin.size());
  ASSERT_EQ(sorted(store.entries()), std::vector<CuckooEntry>(twin.begin(), twin.end()));
  for (const CuckooEntry& entry : twin) {
    const CuckooSpot spot = store.shape().spot_of(entry.pair, entry.fingerprint);
    ASSERT_TRUE(store.holds(spot, entry.payload));
    ASSERT_TRUE(store.holds(store.shape().other(spot), entry.payload));
    ASSERT_TRUE(store.contains(spot));
  }
}

TEST(PackedEntries, IsABagThroughInsertsAndErasures) {
  Random random(1);
  PackedEntries packed(kSmall);
  std::multiset<CuckooEntry> twin;
  for (int step = 0; step < 20'000; ++step) {
    // Grows to some hundred, shrinks to none, and again. Half of the entries equal another.
    const bool grow = step / 1000 % 2 == 0 ? random.below(4) != 0 : random.below(4) == 0;
    if (grow || twin.empty()) {
      const CuckooEntry entry = entry_of(kSmall, key(random.below(300)), random.below(2));
      packed.insert(entry);
      twin.insert(entry);
    } else {
      const auto victim = std::next(twin.begin(), static_cast<long>(random.below(twin.size())));
      const auto slot = packed.find(victim->pair, victim->fingerprint, [&](std::uint64_t at) {
        return packed.payload(at) == victim->payload;
      });
      ASSERT_TRUE(slot);
      packed.erase(*slot);
      packed.trim();
      twin.erase(victim);
    }
    ASSERT_EQ(packed.size(), twin.size());
    std::multiset<CuckooEntry> there;
    if (step % 50 != 0) continue;
    for (std::uint64_t slot = 0; slot < packed.slots(); ++slot) {
      if (!packed.free(slot)) there.insert(packed.at(slot));
    }
    ASSERT_EQ(there, twin);
    for (const CuckooEntry& entry : twin) {
      ASSERT_TRUE(packed.contains(entry.pair, entry.fingerprint));
    }
  }
}

TEST(PackedEntries, TakesAtMostTwiceTheBitsOfItsEntries) {
  PackedEntries packed(kSmall);
  for (std::uint64_t n = 0; n < 100'000; ++n) packed.insert(entry_of(kSmall, key(n), n % 65'536));
  const double bits = 8.0 * static_cast<double>(packed.bytes()) / 100'000;
  EXPECT_GE(bits, (4 + 8 + 16) / 0.75);
  EXPECT_LE(bits, (4 + 8 + 16) / 0.49);
  for (std::uint64_t slot = 0; packed.size() != 0;) {
    if (slot >= packed.slots()) slot = 0;
    packed.free(slot) ? void(++slot) : packed.erase(slot);
    packed.trim();
  }
  EXPECT_LE(packed.bytes(), 64u);
}

class EntryStoreTwin : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Reserved, EntryStoreTwin, ::testing::Bool());

TEST_P(EntryStoreTwin, HoldsTheSameWhateverIsAddedPutAndRemoved) {
  for (const std::uint32_t bucket_size : {4u, 8u}) {
    const CuckooPlaces shape = CuckooShape{bucket_size, 8, 16, 64 / bucket_size, kTestHash};
    Random random(bucket_size);
    EntryStore store(shape);
    if (GetParam()) store.reserve();
    const std::uint64_t reserved = store.bytes();
    Twin twin;
    bool overflowed = false, refused = false;
    for (std::uint64_t step = 0; step < 30'000; ++step) {
      const CuckooEntry entry = entry_of(shape, key(random.below(100)), random.below(8));
      const CuckooSpot lesser = shape.spot_of(entry.pair, entry.fingerprint);
      const CuckooSpot spot = random.below(2) == 0 ? lesser : shape.other(lesser);
      const bool grow = random.below(100) < (step / 3000 % 2 == 0 ? 60 : 35);
      if (!grow) {
        ASSERT_EQ(store.remove(spot, entry.payload), twin.erase(entry) == 1);
      } else if (!twin.contains(entry) && random.below(2) == 0) {
        std::uint64_t quota = random.below(100);
        store.put(spot, entry.payload, quota);
        twin.insert(entry);
      } else if (!twin.contains(entry)) {
        // A refusal depends on the entries, wherever they lie.
        const auto copies = std::count_if(twin.begin(), twin.end(), [&](const CuckooEntry& e) {
          return e.pair == entry.pair && e.fingerprint == entry.fingerprint;
        });
        const bool single = shape.other(spot).bucket == spot.bucket;
        const bool fits = twin.size() < shape.slots() && copies < bucket_size * (single ? 1 : 2);
        ASSERT_EQ(store.add(spot, entry.payload), fits);
        if (fits) twin.insert(entry);
        refused = refused || !fits;
      }
      overflowed = overflowed || store.overflow() > 0;
      if (step % 50 == 0) expect_same(store, twin);
      if (GetParam()) {
        ASSERT_GE(store.bytes(), reserved);
      }
    }
    EXPECT_TRUE(overflowed);
    EXPECT_TRUE(refused);
  }
}

TEST(EntryStore, MemoryFollowsTheEntries) {
  const CuckooPlaces shape = CuckooShape{8, 16, 64, 1 << 20, kTestHash};  // 80 MiB when full
  EntryStore store(shape);
  EXPECT_LT(store.bytes(), 200u);
  std::uint64_t quota = 0;
  for (std::uint64_t n = 0; n < 1000; ++n) store.put(shape.spot_of(key(n)), n, quota);
  EXPECT_LT(store.bytes(), 1000 * 30u);
  for (std::uint64_t n = 0; n < 1000; ++n) ASSERT_TRUE(store.remove(shape.spot_of(key(n)), n));
  EXPECT_LT(store.bytes(), 200u);
}

TEST(EntryStore, GivesTheTableUpWhenFewEntriesAreLeft) {
  const CuckooPlaces shape = CuckooShape{4, 12, 0, 1 << 12, kTestHash};
  EntryStore store(shape);
  std::uint64_t full = 0;
  while (store.add(shape.spot_of(key(full)), 0)) ++full;
  EXPECT_GT(full, shape.slots() * 95 / 100);
  const std::uint64_t most = store.bytes();
  for (std::uint64_t n = 0; n < full - 10; ++n) {
    ASSERT_TRUE(store.remove(shape.spot_of(key(n)), 0));
  }
  EXPECT_LT(store.bytes(), most / 50);
  for (std::uint64_t n = full - 10; n < full; ++n) EXPECT_TRUE(store.contains(key(n)));
}

TEST(EntryStore, OverflowEmptiesAgainAsEntriesAreRemoved) {
  const CuckooPlaces shape = CuckooShape{4, 16, 0, 1 << 10, kTestHash};
  EntryStore store(shape);
  std::uint64_t quota = EntryStore::quota_for(0);
  for (std::uint64_t n = 0; n < shape.slots() * 3 / 2; ++n) {
    store.put(shape.spot_of(key(n)), 0, quota);
  }
  EXPECT_GE(store.overflow(), shape.slots() / 2);
  for (std::uint64_t n = 0; n < shape.slots(); ++n) {
    ASSERT_TRUE(store.remove(shape.spot_of(key(n)), 0));
  }
  EXPECT_EQ(store.overflow(), 0u);
  for (std::uint64_t n = shape.slots(); n < shape.slots() * 3 / 2; ++n) {
    EXPECT_TRUE(store.contains(key(n)));
  }
}

TEST(EntryStore, RefusesACopyMoreThanTwoBucketsHoldHoweverFewEntriesThereAre) {
  for (const std::uint64_t buckets : {8, 100'000}) {
    const CuckooPlaces shape = CuckooShape{4, 8, 64, buckets, kTestHash};
    EntryStore store(shape);
    const CuckooSpot spot = shape.spot_of(key(1));
    const std::uint64_t most = shape.other(spot).bucket == spot.bucket ? 4 : 8;
    for (std::uint64_t copy = 0; copy < most; ++copy) EXPECT_TRUE(store.add(spot, copy));
    EXPECT_FALSE(store.add(spot, most));
    EXPECT_EQ(store.payloads(spot).size(), most);
    std::uint64_t quota = 1000;
    store.put(spot, most, quota);  // a merge takes it
    EXPECT_EQ(store.payloads(spot).size(), most + 1);
    EXPECT_TRUE(store.holds(spot, most));
  }
}

// Two stores with common entries, in any stage, and a third store of entries to be removed.
RC_GTEST_PROP(EntryStore, TakesAndRemovesAsSetsDo, ()) {
  const auto few = [](std::uint64_t most) {
    return rc::gen::container<std::set<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, most));
  };
  const CuckooPlaces shape =
      CuckooShape{4, 8, 16, *rc::gen::element<std::uint64_t>(1, 2, 5, 12), kTestHash};
  const std::set<std::uint64_t> left = *few(120), right = *few(120);
  EntryStore a(shape), b(shape);
  Twin in_a, in_b;
  std::uint64_t quota = 200;
  for (const std::uint64_t n : left) {
    a.put(shape.spot_of(key(n)), n, quota);
    in_a.insert(entry_of(shape, key(n), n));
  }
  for (const std::uint64_t n : right) {
    b.put(shape.other(shape.spot_of(key(n))), n, quota);
    in_b.insert(entry_of(shape, key(n), n));
  }
  RC_ASSERT((a == b) == (in_a == in_b));
  RC_ASSERT(a.holds_all(b) == std::includes(in_a.begin(), in_a.end(), in_b.begin(), in_b.end()));

  const auto doomed = [](std::uint64_t payload) { return payload % 3 == 0; };
  const std::uint64_t removed = a.remove_unless_held(b, doomed);
  RC_ASSERT(removed == std::erase_if(in_a, [&](const CuckooEntry& entry) {
              return doomed(entry.payload) && !in_b.contains(entry);
            }));
  expect_same(a, in_a);

  const auto wanted = [&](std::uint64_t payload) {
    return payload % 2 == 0 && !in_a.contains(entry_of(shape, key(payload), payload));
  };
  std::uint64_t taken = 0;
  Twin after = in_a;
  for (const CuckooEntry& entry : in_b) {
    if (wanted(entry.payload)) taken += after.insert(entry).second;
  }
  RC_ASSERT(a.take(b, wanted) == taken);
  expect_same(a, after);
}

TEST(EntryStore, AnswersManyAtOnceAsOneByOne) {
  const CuckooPlaces shape = CuckooShape{4, 8, 0, 64, kTestHash};
  for (const std::uint64_t count : {0, 20, 200, 240, 400}) {  // few, a table, overflow
    EntryStore store(shape);
    std::uint64_t quota = 0;
    for (std::uint64_t n = 0; n < count; ++n) {
      if (!store.contains(shape.spot_of(key(n)))) store.put(shape.spot_of(key(n)), 0, quota);
    }
    const std::vector<Digest> asked = keys(0, 1000);
    Answers answers(asked.size());
    store.contains(asked, answers.span());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      ASSERT_EQ(answers[i], store.contains(asked[i]));
      ASSERT_EQ(answers[i], store.contains(shape.spot_of(asked[i])));
      ASSERT_TRUE(answers[i] || i >= count);
    }
  }
}

}  // namespace
}  // namespace semel
