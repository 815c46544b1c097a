// Counters: compared with an exact twin, a std::map that adds up on request.
#include "semel/tally/counters/internal/counters.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/tally/counters/internal/counter_index.h"
#include "tests/support/allocation.h"

namespace semel::tally::internal {
namespace {

using Twin = std::map<std::string, CounterState, std::less<>>;

struct Range {
  std::string first;
  std::optional<std::string> end;
  NameRange view() const {
    return {first, end ? std::optional<std::string_view>(*end) : std::nullopt};
  }
};

bool inside(const Range& range, const std::string& name) {
  return name >= range.first && (!range.end || name < *range.end);
}

RangeSum sum_of(const Twin& twin, const Range& range) {
  RangeSum total;
  for (const auto& [name, state] : twin) {
    if (!inside(range, name)) continue;
    ++total.count;
    total.sum += state.sum();
  }
  return total;
}

bool same_content(const Counters& counters, const Twin& twin) {
  bool same = counters.size() == twin.size();
  auto next = twin.begin();
  counters.scan_states({}, [&](std::string_view name, const CounterState& state) {
    same = same && next != twin.end() && next->first == name && next->second == state;
    if (same) ++next;
    return same;
  });
  return same && next == twin.end() && counters.sum({}) == sum_of(twin, {});
}

bool same_range(const Counters& counters, const Twin& twin, const Range& range) {
  std::vector<std::pair<std::string, int128>> scanned, expected;
  counters.scan(range.view(), [&](std::string_view name, int128 sum) {
    scanned.emplace_back(name, sum);
    return true;
  });
  for (const auto& [name, state] : twin) {
    if (inside(range, name)) expected.emplace_back(name, state.sum());
  }
  return scanned == expected && counters.sum(range.view()) == sum_of(twin, range);
}

void expect_found(const Counters& counters, const Twin& twin,
                  const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::vector<std::optional<int128>> sums(names.size());
  counters.sums_of(views, sums);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = twin.find(names[i]);
    const bool there = found != twin.end();
    EXPECT_TRUE(sums[i] == (there ? std::optional(found->second.sum()) : std::nullopt));
    EXPECT_TRUE(sums[i] == counters.sum_of(names[i]));
    EXPECT_EQ(counters.find(names[i]), there ? std::optional(found->second) : std::nullopt);
  }
}

// Returns names that begin alike, with zeros, with bytes that no text has, or empty.
std::string any_name(Random& random, std::uint64_t different) {
  const std::uint64_t number = random.below(different);
  if (number == 0) return "";
  const std::array<std::string, 4> prefixes = {"user:", std::string("\0\0", 2), "\xff\xfe", ""};
  return prefixes[number % 4] + std::to_string(mix(number)) + std::string(number % 3, '\0');
}

Shard any_shard(Random& random) {
  const auto site = static_cast<SiteId>(random.below(10) < 9 ? 1 : random.below(4) * 20'000);
  return {site, 1 + random.below(Dot::kLastCounter), 1 + random.below(3),
          static_cast<std::int64_t>(random())};
}

Range any_range(Random& random, std::uint64_t different) {
  Range range{any_name(random, different), any_name(random, different)};
  if (random.below(4) == 0) range.first = range.first.substr(0, 3);
  if (random.below(4) == 0) range.end.reset();
  return range;
}

// Adds in batches of all sizes, with names that come twice, to the counters and the twin.
void add_some(Counters& counters, Twin& twin, Random& random, std::uint64_t different) {
  const std::size_t size = 1 + random.below(random.below(2) == 0 ? 5 : 300);
  std::vector<std::string> names(size);
  std::vector<NamedShard> additions(size);
  std::vector<int128> sums(size), expected(size);
  for (std::size_t i = 0; i < size; ++i) {
    names[i] = i > 0 && random.below(8) == 0 ? names[i - 1] : any_name(random, different);
    additions[i] = {names[i], any_shard(random)};
    twin[names[i]].add(additions[i].shard);
    expected[i] = twin[names[i]].sum();
  }
  counters.add(additions, sums);
  EXPECT_TRUE(sums == expected);
}

TEST(Counters, AreTheirTwinThroughGrowthAndRemoval) {
  constexpr std::uint64_t kDifferent = 12'000;  // three levels of pages
  Random random(1);
  Counters counters;
  Twin twin;
  for (int phase = 0; phase < 4; ++phase) {
    const bool grows = phase % 2 == 0;
    for (int round = 0; round < 300; ++round) {
      if (grows || round % 10 == 0) add_some(counters, twin, random, kDifferent);
      for (int i = 0; i < (grows ? 5 : 200); ++i) {
        const std::string name = any_name(random, kDifferent);
        EXPECT_EQ(counters.remove(name), twin.erase(name) == 1);
      }
      if (round % 20 != 0) continue;
      ASSERT_TRUE(same_content(counters, twin)) << "phase " << phase << ", round " << round;
      for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(same_range(counters, twin, any_range(random, kDifferent)));
      }
      expect_found(counters, twin,
                   {any_name(random, kDifferent), any_name(random, kDifferent),
                    any_name(random, 2 * kDifferent), "", "absent"});
    }
  }
}

// The pages above a counter get an addition some additions later.
TEST(Counters, TellSumsThatTheirPagesHaveNotHeardOf) {
  constexpr std::uint64_t kDifferent = 1500;  // some dozen leaves
  Random random(2);
  Counters counters;
  Twin twin;
  for (std::uint64_t i = 0; i < kDifferent; ++i) {
    const std::string name = "name:" + std::to_string(i);
    const Shard shard = any_shard(random);
    counters.add({name, shard});
    twin[name].add(shard);
  }
  for (int round = 0; round < 600; ++round) {
    const std::string name = "name:" + std::to_string(random.below(kDifferent));
    const Shard shard = any_shard(random);
    counters.add({name, shard});
    twin[name].add(shard);
    const std::string other = "name:" + std::to_string(random.below(kDifferent));
    for (const Range& range : {Range{"", {}}, Range{"", name}, Range{name, {}}, Range{"", other},
                               Range{std::min(name, other), std::max(name, other)}}) {
      ASSERT_TRUE(counters.sum(range.view()) == sum_of(twin, range)) << "round " << round;
    }
  }
}

RC_GTEST_PROP(Counters, AreTheirTwinWhateverFewThingsHappen, ()) {
  const auto seeds =
      *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::arbitrary<std::uint64_t>());
  Counters counters;
  Twin twin;
  for (const std::uint64_t seed : seeds) {
    Random random(seed);
    const std::uint64_t different = 1 + random.below(100);
    const std::string name = any_name(random, different);
    if (random.below(3) == 0) {
      RC_ASSERT(counters.remove(name) == (twin.erase(name) == 1));
    } else {
      const Shard shard = any_shard(random);
      counters.add({name, shard});
      twin[name].add(shard);
    }
    RC_ASSERT(same_content(counters, twin));
    RC_ASSERT(same_range(counters, twin, any_range(random, different)));
  }
}

TEST(Counters, TakeNamesThatAscendAndNamesThatDescend) {
  for (const bool ascending : {true, false}) {
    Counters counters;
    Twin twin;
    for (int i = 0; i < 10'000; ++i) {
      const std::string name = std::to_string(1'000'000 + (ascending ? i : -i));
      counters.add({name, {1, 1, 1, i}});
      twin[name].add({1, 1, 1, i});
    }
    EXPECT_TRUE(same_content(counters, twin));
    EXPECT_TRUE(same_range(counters, twin, {"1002", "1005"}));
    EXPECT_TRUE(same_range(counters, twin, {"995", "997"}));
    while (!twin.empty()) {  // from the front, so that the first counter of pages changes
      EXPECT_TRUE(counters.remove(twin.begin()->first));
      twin.erase(twin.begin());
      if (twin.size() % 1000 == 1) {
        EXPECT_TRUE(same_content(counters, twin));
        const Range range{twin.begin()->first, std::nullopt};
        EXPECT_TRUE(same_range(counters, twin, range));
      }
    }
    EXPECT_EQ(counters.size(), 0u);
    EXPECT_EQ(counters.sum({}), RangeSum{});
  }
}

// Whole pages are dropped, along with their entries in the pages above, and their memory is used
// again.
TEST(Counters, CloseTheGapThatAWholeRangeLeaves) {
  for (const bool ascending : {true, false}) {
    Counters counters;
    Twin twin;
    const auto add = [&](const std::string& name) {
      counters.add({name, {1, 1, 1, 1}});
      twin[name].add({1, 1, 1, 1});
    };
    for (int i = 0; i < 10'000; ++i) add(std::to_string(10'000 + i));
    for (int i = 3000; i < 7000; ++i) {
      const std::string name = std::to_string(10'000 + (ascending ? i : 9999 - i));
      EXPECT_TRUE(counters.remove(name));
      twin.erase(name);
    }
    EXPECT_TRUE(same_content(counters, twin));
    for (int i = 0; i < 4000; ++i) add(std::to_string(90'000 - i));
    EXPECT_TRUE(same_range(counters, twin, {"12999", "17001"}));
    EXPECT_TRUE(same_range(counters, twin, {"15", "89"}));
    for (int i = 6999; i >= 3000; i -= 7) add(std::to_string(10'000 + i));
    EXPECT_TRUE(same_content(counters, twin));
    EXPECT_TRUE(same_range(counters, twin, {"12999", "17001"}));
  }
}

TEST(Counters, AddUpARangeThatIsEmptyOrTurnedAroundToNothing) {
  Counters counters;
  EXPECT_EQ(counters.sum({}), RangeSum{});
  EXPECT_EQ(counters.sum({"a", "b"}), RangeSum{});
  counters.add({"b", {1, 1, 1, 5}});
  EXPECT_EQ(counters.sum({"b", "b"}), RangeSum{});
  EXPECT_EQ(counters.sum({"c", "a"}), RangeSum{});
  EXPECT_EQ(counters.sum({"b", std::string_view("b\0", 2)}), (RangeSum{1, 5}));
  EXPECT_EQ(counters.sum({"", "b"}), RangeSum{});
}

TEST(Counters, StopAScanWhenToldTo) {
  Counters counters;
  for (int i = 0; i < 1000; ++i) counters.add({std::to_string(1000 + i), {1, 1, 1, 1}});
  for (const int most : {1, 64, 65, 999}) {
    int visited = 0;
    counters.scan({}, [&](std::string_view name, int128) {
      EXPECT_EQ(name, std::to_string(1000 + visited));
      return ++visited < most;
    });
    EXPECT_EQ(visited, most);
  }
}

TEST(Counters, HoldWhatNoSingleCounterOfSixtyFourBitsHolds) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Counters counters;
  for (int i = 0; i < 200; ++i) counters.add({std::to_string(i), {1, 1, 1, kMost}});
  for (int i = 0; i < 200; ++i) counters.add({std::to_string(i), {2, 1, 1, kMost}});
  EXPECT_TRUE(counters.sum_of("7") == int128{2} * kMost);
  EXPECT_EQ(counters.sum({}), (RangeSum{200, int128{400} * kMost}));
}

TEST(Counters, StayAsTheyAreWhenTheyMove) {
  Random random(2);
  Counters first;
  Twin twin;
  for (int i = 0; i < 20; ++i) add_some(first, twin, random, 3000);
  Counters second(std::move(first));
  add_some(second, twin, random, 3000);
  Counters third;
  third.add({"gone", {1, 1, 1, 1}});
  third = std::move(second);
  add_some(third, twin, random, 3000);
  EXPECT_TRUE(same_content(third, twin));
}

// Returns names of one part of the directory, and of one line in its segment: more than the index
// takes.
std::vector<std::string> crowded_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; names.size() < count; ++i) {
    std::string name = std::to_string(i);
    const CounterIndex::Hash hash = CounterIndex::hash_of(name);
    if (hash >> 59 == 9 && (hash >> 16) % 64 == 62) names.push_back(std::move(name));
  }
  return names;
}

TEST(Counters, AreTheirTwinWhereNamesWereMadeToCollide) {
  const std::vector<std::string> names = crowded_names(150);
  Counters counters;
  Twin twin;
  for (int round = 0; round < 2; ++round) {
    for (const std::string& name : names) {
      counters.add({name, {1, 1, 1, 3}});
      twin[name].add({1, 1, 1, 3});
    }
  }
  expect_found(counters, twin, names);
  EXPECT_TRUE(same_content(counters, twin));
  expect_found(counters, twin, crowded_names(160));  // ten are absent
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const std::string& name = names[random.below(names.size())];
    if (random.below(2) == 0) {
      EXPECT_EQ(counters.remove(name), twin.erase(name) == 1);
    } else {
      counters.add({name, {1, 1, 1, 3}});
      twin[name].add({1, 1, 1, 3});
    }
  }
  expect_found(counters, twin, names);
  EXPECT_TRUE(same_content(counters, twin));
}

TEST(CounterIndex, DeclinesWhatWasMadeToCollideAndNothingElse) {
  Arena arena;
  std::vector<Counter::Owner> owners;
  const auto fill = [&](CounterIndex& index, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      owners.push_back(Counter::make(name, {1, 1, 1, 1}, arena));
      const CounterIndex::Hash hash = CounterIndex::hash_of(name);
      index.make_room(hash);
      index.put(hash, owners.back().get());
    }
  };
  std::vector<std::string> ordinary;
  for (int i = 0; i < 50'000; ++i) ordinary.push_back(std::to_string(i));
  CounterIndex good(arena), crowded(arena);
  fill(good, ordinary);
  EXPECT_TRUE(good.complete());
  owners.clear();
  fill(crowded, crowded_names(150));
  EXPECT_FALSE(crowded.complete());
  EXPECT_LE(crowded.bytes(), 1000u);
  for (const Counter::Owner& owner : owners) {
    crowded.erase(CounterIndex::hash_of(owner->name()), owner.get());
  }
  EXPECT_TRUE(crowded.complete());
}

// The set stays small while names come and go.
TEST(CounterIndex, DoesNotGrowWithNamesThatAreGone) {
  Counters counters;
  for (int i = 0; i < 100; ++i) counters.add({std::to_string(i), {1, 1, 1, 1}});
  const std::uint64_t bytes = counters.bytes();
  for (int i = 100; i < 20'000; ++i) {
    counters.add({std::to_string(i), {1, 1, 1, 1}});
    EXPECT_TRUE(counters.remove(std::to_string(i - 100)));
  }
  EXPECT_EQ(counters.size(), 100u);
  EXPECT_LE(counters.bytes(), bytes + 20'000);  // a piece of the arena
}

TEST(Counters, SayWhatMemoryTheyTakeAndUseItAgain) {
  constexpr int kCounters = 3000;
  Counters counters;
  const std::uint64_t none = counters.bytes();
  const auto add_all = [&](SiteId site) {
    for (int i = 0; i < kCounters; ++i) counters.add({std::to_string(i), {site, 1, 1, 1}});
  };
  add_all(1);
  const std::uint64_t one_site = counters.bytes();
  EXPECT_GT(one_site, none + kCounters * 80);
  EXPECT_LT(one_site, none + kCounters * 120);
  add_all(2);
  EXPECT_GT(counters.bytes(), one_site + kCounters * 2 * sizeof(Shard));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kCounters; ++i) EXPECT_TRUE(counters.remove(std::to_string(i)));
    EXPECT_EQ(counters.bytes(), one_site);
    add_all(1);
    EXPECT_EQ(counters.bytes(), one_site);
  }
}

// Memory runs out at every place where it is allocated.
TEST(Counters, AreUnchangedByAnAdditionThatMemoryStops) {
  Random random(4);
  Counters counters;
  Twin twin;
  int stopped = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string name = any_name(random, 8000);
    const Shard shard = any_shard(random);
    for (std::size_t good = 0;; ++good) {
      bool done = true;
      try {
        const FailingAllocation failing(good);
        counters.add({name, shard});
      } catch (const std::bad_alloc&) {
        done = false;
      }
      if (done) break;
      ++stopped;
      if (stopped % 100 == 0) {
        ASSERT_TRUE(same_content(counters, twin));
      }
      ASSERT_EQ(counters.find(name),
                twin.contains(name) ? std::optional(twin[name]) : std::nullopt);
    }
    twin[name].add(shard);
  }
  EXPECT_TRUE(same_content(counters, twin));
  EXPECT_GT(stopped, 500);
}

}  // namespace
}  // namespace semel::tally::internal
