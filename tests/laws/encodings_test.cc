// Every structure inside a value of the module, written in pieces: the bytes are those of one
// block, whatever the pieces, and memory is bounded.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "module/types/bloom_value.h"
#include "module/types/cuckoo_value.h"
#include "module/types/sift_value.h"
#include "module/types/tally_value.h"
#include "semel/core/internal/ascending.h"
#include "semel/core/internal/random.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/sift/sifter.h"
#include "semel/tally/internal/recogniser.h"
#include "semel/tally/table.h"
#include "semel/window/internal/endless_set.h"
#include "semel/window/internal/exact_window.h"
#include "semel/window/internal/forgetful_filter.h"
#include "semel/window/internal/sliding_filter.h"
#include "tests/support/allocation.h"
#include "tests/support/encoded.h"
#include "tests/support/held_value.h"
#include "tests/support/keys.h"
#include "tests/support/site_life.h"
#include "tests/support/table_probe.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000, kWindow = 10'000;

// Keeps the bytes that it gets, or only counts them.
class Kept final : public Pieces {
 public:
  explicit Kept(std::span<std::uint8_t> buffer, Bytes* out = nullptr)
      : Pieces(buffer), size_(buffer.size()), out_(out) {}
  bool whole() const { return whole_; }  // all pieces but the last had the size of the buffer

 private:
  void take(ByteView piece) override {
    whole_ = whole_ && !ended_;
    ended_ = piece.size() != size_;
    if (out_ != nullptr) out_->insert(out_->end(), piece.begin(), piece.end());
  }
  std::size_t size_;
  Bytes* out_;
  bool whole_ = true, ended_ = false;
};

template <class Filter>
Filter with_keys(Filter filter, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    if constexpr (requires { filter.add(key(i)); }) {
      (void)filter.add(key(i));
    } else {
      (void)filter.insert(key(i), 0);
    }
  }
  return filter;
}

template <class Series>
Series series_with(const SeriesGoal& goal, std::uint64_t n, Random& random) {
  Series series = *Series::make(goal);
  for (std::uint64_t i = 0; i < n; ++i) {
    (void)series.add(key(i), by<Series>(static_cast<SiteId>(random.below(goal.sites))));
  }
  return series;
}

ObservedCuckoo observed(std::uint64_t n, std::uint64_t sites, double removed, Random& random) {
  ObservedCuckoo filter(*ObservedCuckoo::shape_for(n + 1, 0.001, kTestHash));
  for (std::uint64_t i = 0; i < n; ++i) {
    (void)filter.add(key(i), at(static_cast<SiteId>(3 * random.below(sites))));
  }
  for (std::uint64_t i = 0; i < n; ++i) {
    if (random.unit() < removed) filter.remove(key(i));
  }
  return filter;
}

// Inserts ids spread over a window; some of them have left it.
template <class W>
W with_ids(W window, std::uint64_t n, Random& random) {
  const auto id = [&](std::uint64_t i) {
    if constexpr (std::is_same_v<typename W::Id, Digest>) {
      return key(i);
    } else {
      return ClientOperation{key(i / 2), random.below(1000)};
    }
  };
  for (std::uint64_t i = 0; i < n; ++i) {
    window.insert(id(i));
    if (random.below(n) < 12) window.advance(window.now() + kWindow / 8);
  }
  return window;
}

Sifter sifter(Window::Structure structure, std::uint64_t n, Random& random) {
  Sifter sifter = *Sifter::make({{.structure = structure,
                                  .window_ms = kWindow,
                                  .fpr = structure == Window::Structure::exact ? 0 : 0.001,
                                  .ids = n + 1,
                                  .hash = kTestHash},
                                 kWindow},
                                kNow);
  for (std::uint64_t i = 0; i < n; ++i) {
    random.below(3) == 0 ? sifter.claim(key(i), random.below(5), kNow + kWindow, kNow)
                         : sifter.test_and_insert(key(i), kNow);
  }
  return sifter;
}

tally::Table table(tally::Recognition::Kind kind, std::uint64_t n, Random& random) {
  tally::Table table = *tally::Table::make(
      {.recognition = {.kind = kind, .window_ms = kWindow, .ids = n + 1, .hash = kTestHash}}, kNow);
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto id = random.below(2) == 0 ? tally::OperationId::opaque(key(i))
                                         : tally::OperationId::numbered(key(i / 2), i);
    const std::string counter = "counter " + std::to_string(random.below(n));
    EXPECT_TRUE(table.add({counter, static_cast<std::int64_t>(random.below(9)), id}, kNow));
  }
  return table;
}

Secret secret() {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  bytes[0] = 7;
  return Secret(bytes);
}

// Calls visit(name, object) for each structure, with about n ids.
template <class Visit>
void for_each_structure(std::uint64_t n, Random& random, Visit visit) {
  visit(
      "Bloom filter",
      with_keys(BloomFilter(*BloomShape::for_goal({.keys = n + 1, .fpr = 1e-4, .hash = kTestHash})),
                n));
  const SeriesGoal goal{.fpr = 0.01, .first_keys = 1 + n / 8, .sites = 3, .hash = kTestHash};
  visit("series of Bloom filters", series_with<GrowBloomSeries>(goal, n, random));
  visit("series of cuckoo filters", series_with<GrowCuckooSeries>(goal, n, random));
  visit("series of observed filters", series_with<ObservedCuckooSeries>(goal, n, random));
  visit("cuckoo filter",
        with_keys(
            CuckooFilter(*CuckooShape::for_goal({.keys = n + 1, .fpr = 0.001, .hash = kTestHash})),
            n));
  visit("grow-only cuckoo filter",
        with_keys(GrowCuckoo(*GrowCuckoo::shape_for(n + 1, 1e-9, kTestHash)), n));
  visit("observed filter", observed(n, 1, 0, random));
  visit("observed filter, sparse", observed(n, 1, 0.9, random));
  visit("observed filter of sites", observed(n, 20, 0.3, random));

  visit("exact window",
        with_ids(*window_internal::ExactWindow::make({.window_ms = kWindow}, kNow), n, random));
  visit("client window", with_ids(*ClientWindow::make({.window_ms = kWindow}, kNow), n, random));
  visit("forgetful filter", with_ids(*window_internal::ForgetfulFilter::make(
                                         {.window_ms = kWindow, .fpr = 0.001, .ids = n + 1}, kNow),
                                     n, random));
  visit("sliding filter", with_ids(*window_internal::SlidingFilter::make(
                                       {.window_ms = kWindow, .fpr = 0.001, .ids = n + 1}, kNow),
                                   n, random));
  visit("endless set", with_ids(window_internal::EndlessSet(kTestHash, kNow), n, random));
  ClaimTable claims(kWindow, kNow);
  for (std::uint64_t i = 0; i < n; ++i) claims.claim(key(i), random.below(5), kNow + 1);
  visit("claims", claims);
  visit("sifter, forgetful", sifter(Window::Structure::forgetful, n, random));
  visit("sifter, timers", sifter(Window::Structure::timers, n, random));
  visit("sifter, exact", sifter(Window::Structure::exact, n, random));
  for (const auto kind : {tally::Recognition::Kind::clients, tally::Recognition::Kind::filter,
                          tally::Recognition::Kind::exact}) {
    const tally::Table made = table(kind, n, random);
    visit("recogniser", tally::TableProbe::recogniser(made));
    visit("table", made);
  }
}

// Visits the values, which have fewer encodings.
template <class Visit>
void for_each_value(std::uint64_t n, Visit visit) {
  auto bloom = *module::BloomValue::make(secret(), {0.001, 1 + n / 4, 2});
  ASSERT_TRUE(bloom->begin_chain(1));
  auto cuckoo = *module::CuckooValue::make(secret(), {0.001, 1 + n / 4, 2, 20, 2});
  ASSERT_TRUE(cuckoo->begin(1, 2, module::CuckooValue::Begun::here));
  auto sift = *module::SiftValue::make(secret(), {{.window_ms = kWindow, .fpr = 0.001}}, kNow);
  auto tally = *module::TallyValue::make(secret(), {.window_ms = kWindow}, kNow);
  for (std::uint64_t i = 0; i < n; ++i) {
    (void)bloom->add(key(i), 0);
    (void)cuckoo->add(key(i), 0);
    sift->sifter().test_and_insert(key(i), kNow);
    const std::string counter = std::to_string(i);
    (void)tally->table().add({counter, 1, tally::OperationId::opaque(key(i))}, kNow);
  }
  visit("value: Bloom", HeldValue<module::BloomValue>(std::move(bloom)));
  visit("value: cuckoo", HeldValue<module::CuckooValue>(std::move(cuckoo)));
  visit("value: sift", HeldValue<module::SiftValue>(std::move(sift)));
  visit("value: tally", HeldValue<module::TallyValue>(std::move(tally)));
}

RC_GTEST_PROP(Encodings, InPiecesAreThoseInABlock, ()) {
  const auto n = *rc::gen::inRange<std::uint64_t>(0, 200);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto sound = [&](const char* name, const auto& object) {
    const Bytes block = encoded(object);
    RC_LOG() << name << ", " << block.size() << " bytes\n";
    RC_ASSERT(encoded_size(object) == block.size());
    Bytes behind = {1, 2, 3};  // an encoding must not depend on the bytes before it
    object.encode(behind);
    RC_ASSERT(std::equal(behind.begin() + 3, behind.end(), block.begin(), block.end()));
    for (const std::uint64_t most : {9, 100, 5000}) {
      Bytes buffer(1 + random.below(most)), pieces;
      Kept kept(buffer, &pieces);
      object.encode(kept);
      kept.finish();
      RC_ASSERT(pieces == block);
      RC_ASSERT(kept.whole());
    }
    const auto decoded = std::decay_t<decltype(object)>::decode(block);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(encoded(*decoded) == block);
  };
  for_each_structure(n, random, sound);
  for_each_value(n, sound);
}

TEST(Encodings, NeedLittleMemoryInPieces) {
  constexpr std::uint64_t kIds = 300'000, kMost = std::uint64_t{2} << 20;
  Random random(1);
  Bytes buffer(1 << 16);
  const auto frugal = [&](const char* name, const auto& object) {
    const std::uint64_t size = encoded_size(object);
    const PeakAllocation peak;
    Kept kept(buffer);
    object.encode(kept);
    kept.finish();
    EXPECT_LE(peak.bytes(), kMost) << name << ", of " << size << " bytes";
    // Unordered entries take several windows here.
    const auto decoded = std::decay_t<decltype(object)>::decode(encoded(object));
    ASSERT_TRUE(decoded.has_value()) << name;
    EXPECT_TRUE(*decoded == object) << name;
  };
  for_each_structure(kIds, random, frugal);
  for_each_value(kIds, frugal);
}

// Sorts in rooms of any size, while memory runs out.
RC_GTEST_PROP(Ascending, EveryItemOnceInOrderWhateverTheRoom, ()) {
  const auto set = *rc::gen::container<std::set<std::uint32_t>>(rc::gen::inRange(0U, 5000U));
  std::vector<std::uint32_t> items(set.begin(), set.end());
  std::shuffle(items.begin(), items.end(), Random(*rc::gen::arbitrary<std::uint64_t>()));
  std::vector<std::uint32_t> room(*rc::gen::inRange<std::size_t>(2, 100)), visited;
  for_each_ascending(
      std::span(room), std::less<>(),
      [&](auto offer) {
        for (const std::uint32_t item : items) offer(item);
      },
      [&](std::uint32_t item) { visited.push_back(item); });
  RC_ASSERT(std::equal(visited.begin(), visited.end(), set.begin(), set.end()));
}

TEST(Ascending, RoomIsSmallerWhereMemoryIsShort) {
  const std::size_t whole = ScratchRoom<std::uint64_t>(1 << 22, 0).span().size();
  const FailingAllocation failing(0);
  EXPECT_EQ(ScratchRoom<std::uint64_t>(1 << 22, 0).span().size(), whole / 2);
}

// A table in which one run holds nearly everything: such digests do not come by chance.
TEST(Encodings, OfChosenDigestsAreInOrderToo) {
  for (const std::uint64_t lo : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    window_internal::EndlessSet set(kTestHash, kNow);
    window_internal::ExactWindow window =
        *window_internal::ExactWindow::make({.window_ms = kWindow}, kNow);
    Random random(lo);
    for (int i = 0; i < 1000; ++i) {
      const Digest id{i % 3 == 0 ? random() : lo, random()};
      set.insert(id);
      window.insert(id);
    }
    set.insert(Digest{0, 0});
    window.insert(Digest{0, 0});
    EXPECT_EQ(*window_internal::EndlessSet::decode(encoded(set)),
              set);  // which refuses what is out of order
    EXPECT_EQ(*window_internal::ExactWindow::decode(encoded(window)), window);
  }
}

}  // namespace
}  // namespace semel
