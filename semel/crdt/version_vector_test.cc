// VersionVector and Dot: a set of dots without holes, beside an exact twin.
#include "semel/crdt/version_vector.h"

#include <gtest/gtest.h>

#include <map>

#include "semel/core/internal/random.h"

namespace semel {
namespace {

using Twin = std::map<SiteId, std::uint64_t>;

struct Pair {
  VersionVector vector;
  Twin twin;
};

Pair random_pair(Random& random) {
  Pair pair;
  for (std::uint64_t i = random.below(5); i > 0; --i) {
    const auto site = static_cast<SiteId>(random.below(3) * 32'767);
    const std::uint64_t counter = 1 + random.below(4);
    pair.vector.advance({site, counter});
    pair.twin[site] = std::max(pair.twin[site], counter);
  }
  return pair;
}

bool within(const Twin& a, const Twin& b) {
  for (const auto& [site, counter] : a) {
    if (!b.contains(site) || b.at(site) < counter) return false;
  }
  return true;
}

TEST(Dot, PacksIntoOneWordInItsOrder) {
  const std::vector<Dot> dots = {{0, 1},      {0, Dot::kLastCounter},     {1, 1}, {77, 5}, {77, 6},
                                 {65'535, 1}, {65'535, Dot::kLastCounter}};
  for (std::size_t i = 0; i < dots.size(); ++i) {
    EXPECT_EQ(Dot::unpacked(dots[i].packed()), dots[i]);
  }
  for (std::size_t i = 1; i < dots.size(); ++i) {
    EXPECT_LT(dots[i - 1].packed(), dots[i].packed());
    EXPECT_LT(dots[i - 1], dots[i]);
  }
}

TEST(VersionVector, MergesAndComparesAsTheSetsOfDotsThatItStandsFor) {
  Random random(1);
  for (int round = 0; round < 20'000; ++round) {
    const Pair a = random_pair(random), b = random_pair(random);
    const auto order = a.vector.compare(b.vector);
    const bool less = within(a.twin, b.twin), more = within(b.twin, a.twin);
    EXPECT_EQ(order == std::partial_ordering::equivalent, less && more);
    EXPECT_EQ(order == std::partial_ordering::less, less && !more);
    EXPECT_EQ(order == std::partial_ordering::greater, more && !less);
    EXPECT_EQ(a.vector == b.vector, less && more);
    VersionVector merged = a.vector;
    EXPECT_EQ(merged.merge(b.vector), !more);
    for (const SiteId site : {SiteId{0}, SiteId{1}, SiteId{32'767}, SiteId{65'534}}) {
      EXPECT_EQ(merged.at(site), std::max(a.vector.at(site), b.vector.at(site)));
      for (std::uint64_t counter = 1; counter < 6; ++counter) {
        EXPECT_EQ(merged.contains({site, counter}),
                  a.vector.contains({site, counter}) || b.vector.contains({site, counter}));
      }
    }
  }
}

TEST(VersionVector, CountsOnAndNeverWraps) {
  VersionVector vector;
  EXPECT_EQ(*vector.next(9), (Dot{9, 1}));
  vector.advance({9, 1});
  EXPECT_EQ(*vector.next(9), (Dot{9, 2}));
  EXPECT_EQ(*vector.next(65'535), (Dot{65'535, 1}));
  vector.advance({9, Dot::kLastCounter - 1});
  EXPECT_EQ(*vector.next(9), (Dot{9, Dot::kLastCounter}));
  vector.advance({9, Dot::kLastCounter});
  EXPECT_EQ(vector.next(9).error().code, Errc::limit);
  EXPECT_EQ(*vector.next(8), (Dot{8, 1}));
}

TEST(VersionVector, DecodesWhatItEncodedAndRefusesTheRest) {
  VersionVector vector;
  for (const SiteId site : {SiteId{3}, SiteId{0}, SiteId{65'535}})
    vector.advance({site, site + 1u});
  Bytes bytes;
  vector.encode(bytes);
  Reader reader(bytes);
  EXPECT_EQ(*VersionVector::decode(reader), vector);
  EXPECT_EQ(reader.rest(), 0u);

  const auto refusal = [](const std::vector<std::uint64_t>& dots, std::uint32_t count,
                          std::size_t most = 65'536) {
    Bytes out;
    Writer w(out);
    w.u32(count);
    for (const std::uint64_t dot : dots) w.u64(dot);
    Reader in(out);
    return VersionVector::decode(in, most).error().code;
  };
  EXPECT_EQ(refusal({Dot{1, 0}.packed()}, 1), Errc::corrupt);
  EXPECT_EQ(refusal({Dot{2, 1}.packed(), Dot{1, 1}.packed()}, 2), Errc::corrupt);
  EXPECT_EQ(refusal({Dot{1, 1}.packed(), Dot{1, 2}.packed()}, 2), Errc::corrupt);
  EXPECT_EQ(refusal({Dot{1, 1}.packed()}, 2), Errc::corrupt);
  EXPECT_EQ(refusal({}, 65'537), Errc::limit);
  EXPECT_EQ(refusal({Dot{1, 1}.packed(), Dot{2, 1}.packed()}, 2, 1), Errc::limit);
  Bytes none;
  Reader in(none);
  EXPECT_EQ(VersionVector::decode(in).error().code, Errc::truncated);
}

}  // namespace
}  // namespace semel
