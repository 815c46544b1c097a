#include "tests/laws/causality.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "semel/core/internal/random.h"
#include "tests/support/keys.h"

namespace semel::laws {
namespace {

const Digest kE4 = key(4), kE5 = key(5);

VersionVector seen(const std::vector<Dot>& last) {
  VersionVector vector;
  for (const Dot& dot : last) vector.advance(dot);
  return vector;
}

// Figure 3.4: e4 and e5 are added at one site each and reach both sites. Then each site removes
// one.
std::vector<Operation> figure(Digest removed_at_1, Digest removed_at_2) {
  const VersionVector both = seen({{1, 1}, {2, 1}});
  return {{kE4, false, {1, 1}, seen({})},
          {kE5, false, {2, 1}, seen({})},
          {removed_at_1, true, {1, 2}, both},
          {removed_at_2, true, {2, 2}, both}};
}

TEST(CausallySafe, IsNeitherOfTwoRemovalsAtOnceOfAKeyAddedOnce) {  // figure 3.4 a
  const std::vector<Operation> history = figure(kE4, kE4);
  EXPECT_FALSE(causally_safe(history, 2));
  EXPECT_FALSE(causally_safe(history, 3));
}

TEST(CausallySafe, IsEachOfTwoRemovalsOfDifferentKeys) {  // figure 3.4 b
  const std::vector<Operation> history = figure(kE4, kE5);
  EXPECT_TRUE(causally_safe(history, 2));
  EXPECT_TRUE(causally_safe(history, 3));
}

TEST(CausallySafe, AreBothIfTheKeyWasAddedTwice) {
  std::vector<Operation> history = figure(kE4, kE4);
  history[1].key = kE4;
  EXPECT_TRUE(causally_safe(history, 2));
  EXPECT_TRUE(causally_safe(history, 3));
}

TEST(CausallySafe, IsNoRemovalOfWhatItsSiteHasNotSeen) {
  std::vector<Operation> history = figure(kE5, kE5);
  history[2].seen = seen({{1, 1}});
  EXPECT_FALSE(causally_safe(history, 2));
}

TEST(CausallySafe, IsTheFirstOfTwoInARowAndNotTheSecond) {
  std::vector<Operation> history = figure(kE4, kE4);
  history[3].seen.advance({1, 2});
  EXPECT_TRUE(causally_safe(history, 2));
  EXPECT_FALSE(causally_safe(history, 3));
}

// A history whose happens-before edges are written out and followed one by one.
struct Graph {
  std::vector<Operation> history;
  std::vector<std::vector<bool>> before;  // before[a][b]: a happened before b

  explicit Graph(std::uint64_t seed) {
    constexpr std::size_t kSites = 4;
    Random random(seed);
    std::array<VersionVector, kSites> known;
    std::array<std::vector<std::size_t>, kSites> direct;  // operations that a site has heard of
    for (int step = 0; step < 60; ++step) {
      const std::size_t site = random.below(kSites);
      if (random.below(3) == 0) {
        const std::size_t from = random.below(kSites);
        known[site].merge(known[from]);
        if (from != site) {
          direct[site].insert(direct[site].end(), direct[from].begin(), direct[from].end());
        }
        continue;
      }
      const Dot at = *known[site].next(static_cast<SiteId>(site));
      history.push_back({key(random.below(3)), random.below(2) == 0, at, known[site]});
      known[site].advance(at);
      before.emplace_back(60, false);
      for (const std::size_t other : direct[site]) before[other][history.size() - 1] = true;
      direct[site].push_back(history.size() - 1);
    }
  }

  bool safe(std::size_t which) const {
    int removals = 0, adds = 0;
    for (std::size_t i = 0; i < history.size(); ++i) {
      if (i == which || history[i].key != history[which].key) continue;
      const bool parallel = !before[i][which] && !before[which][i];
      if (history[i].removal && (before[i][which] || parallel)) ++removals;
      if (!history[i].removal && before[i][which]) ++adds;
    }
    return removals < adds;
  }
};

TEST(CausallySafe, AgreesWithTheDefinitionOnRandomHistories) {
  std::size_t safe = 0, unsafe = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph(seed);
    for (std::size_t a = 0; a < graph.history.size(); ++a) {
      for (std::size_t b = 0; b < graph.history.size(); ++b) {
        ASSERT_EQ(happened_before(graph.history[a], graph.history[b]), graph.before[a][b])
            << "seed " << seed;
      }
      if (!graph.history[a].removal) continue;
      ASSERT_EQ(causally_safe(graph.history, a), graph.safe(a)) << "seed " << seed << ", " << a;
      ++(graph.safe(a) ? safe : unsafe);
    }
  }
  EXPECT_GT(safe, 500u);
  EXPECT_GT(unsafe, 500u);
}

}  // namespace
}  // namespace semel::laws
