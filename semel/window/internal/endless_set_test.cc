// EndlessSet: beside an exact twin, through growth, and bytes.
#include "semel/window/internal/endless_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "semel/hash/internal/checksum.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/oracle/endless_twin.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel::window_internal {

// The steps of WindowHistory are parts of the window, and this one has no end.
// tests/oracle/endless_twin.h takes its place.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WindowHistory);

namespace {

std::uint64_t count_fresh(EndlessSet& set, std::span<const Digest> ids) {
  std::vector<Verdict> verdicts(ids.size());
  set.test_and_insert(ids, verdicts);
  return static_cast<std::uint64_t>(std::count(verdicts.begin(), verdicts.end(), Verdict::fresh));
}

struct TwinCase {
  using Type = EndlessSet;
  static constexpr bool kFalsePositives = false, kStaleById = false;
  static Digest id(std::uint64_t number) {
    return number == 7 ? Digest{0, 0} : Digest{mix(number), mix(~number)};
  }
  static Type make(int, TimeMs now_ms) { return EndlessSet(kTestHash, now_ms); }
  static std::uint64_t cap(int) { return kNoCap; }
  static OnFull on_full(int) { return OnFull::refuse; }
  static std::optional<TimeMs> upper_edge(const Type&) { return std::nullopt; }
};

// Includes the digest that marks free slots, and digests that wrap around the end. The table is
// full, so that its memory is in proportion to the bytes.
struct BytesCase {
  using Type = EndlessSet;
  static constexpr std::size_t kHeaderSize = 29;
  static constexpr char kFile[] = "endless_set_v1.bin";
  static Type make() {
    EndlessSet set(kTestHash, 5);
    EXPECT_EQ(set.test_and_insert({0, 0}), Verdict::fresh);
    for (std::uint64_t n = 0; n < 4; ++n) {
      EXPECT_EQ(set.test_and_insert({~n, n}), Verdict::fresh);
    }
    for (std::uint64_t n = 0; n < 19; ++n) EXPECT_EQ(set.test_and_insert(key(n)), Verdict::fresh);
    return set;
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(EndlessSet, HostileBytes, BytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(EndlessSet, Golden, BytesCase);

// Draws each half from a few values only: the digests share their home, wrap around the end, and
// include zero.
rc::Gen<Digest> crowded_digest() {
  const auto half = rc::gen::element<std::uint64_t>(0, 1, 2, 1ull << 60, 15ull << 60, ~1ull, ~0ull);
  return rc::gen::build<Digest>(rc::gen::set(&Digest::lo, half), rc::gen::set(&Digest::hi, half));
}

RC_GTEST_PROP(EndlessSet, AgreesWithAnExactTwinOnCrowdedDigests, ()) {
  EndlessSet set(kTestHash, 0);
  std::set<std::pair<std::uint64_t, std::uint64_t>> twin;
  const auto batches = *rc::gen::container<std::vector<std::vector<Digest>>>(
      rc::gen::container<std::vector<Digest>>(crowded_digest()));
  for (const std::vector<Digest>& batch : batches) {
    std::vector<Verdict> verdicts(batch.size());
    set.test_and_insert(batch, verdicts);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const bool is_new = twin.emplace(batch[i].lo, batch[i].hi).second;
      RC_ASSERT(verdicts[i] == (is_new ? Verdict::fresh : Verdict::duplicate));
    }
    RC_ASSERT(set.ids() == twin.size());
    const Bytes bytes = encoded(set);
    Result<EndlessSet> copy = EndlessSet::decode(bytes);
    RC_ASSERT(copy.has_value());
    RC_ASSERT(*copy == set);
    RC_ASSERT(encoded(*copy) == bytes);
    set = *std::move(copy);  // go on with the copy
  }
}

TEST(EndlessSet, KeepsThePromiseForEver) { check_endless<TwinCase>(0, 1, 200'000); }

TEST(EndlessSet, RemembersThroughGrowth) {
  EndlessSet set(kTestHash, 0);
  std::vector<Digest> all = keys(0, 200'000);
  all[7] = {0, 0};  // stored separately from the others
  for (const bool is_new : {true, false}) {
    for (std::size_t start = 0; start < all.size(); start += 1000) {
      EXPECT_EQ(count_fresh(set, std::span(all).subspan(start, 1000)), is_new ? 1000u : 0u);
    }
    EXPECT_EQ(set.ids(), all.size());
  }
  EndlessSet copy = *EndlessSet::decode(encoded(set));
  EXPECT_EQ(copy, set);
  EXPECT_EQ(copy.bytes(), set.bytes());
  EXPECT_EQ(count_fresh(copy, all), 0u);
}

TEST(EndlessSet, TakesTheMemoryItSays) {
  EndlessSet set(kTestHash, 0);
  const std::vector<Digest> all = keys(0, 100'000);
  for (std::size_t n = 1; n <= all.size(); ++n) {
    EXPECT_EQ(set.test_and_insert(all[n - 1]), Verdict::fresh);
    const double per_id = static_cast<double>(set.bytes()) / static_cast<double>(n);
    if (n > 1000) {
      ASSERT_GE(per_id, 21) << n;
      ASSERT_LE(per_id, 43) << n;
    }
  }
}

// Neither the room nor the order of the bytes may come from what was asked.
TEST(EndlessSet, DoesNotGrowForDuplicates) {
  EndlessSet set(kTestHash, 0);
  EXPECT_EQ(count_fresh(set, keys(0, 12)), 12u);
  const std::uint64_t before = set.bytes();
  for (int round = 0; round < 100; ++round) EXPECT_EQ(count_fresh(set, keys(0, 12)), 0u);
  EXPECT_EQ(set.bytes(), before);
}

TEST(EndlessSet, GivesEqualBytesWhateverTheOrder) {
  std::vector<Digest> all = keys(0, 1000);
  EndlessSet forwards(kTestHash, 0), backwards(kTestHash, 9);
  EXPECT_EQ(count_fresh(forwards, all), 1000u);
  std::reverse(all.begin(), all.end());
  EXPECT_EQ(count_fresh(backwards, all), 1000u);
  EXPECT_EQ(forwards, backwards);
  EXPECT_EQ(encoded(forwards), encoded(backwards));
  EXPECT_EQ(backwards.insert(key(1000)), Verdict::fresh);
  EXPECT_EQ(backwards.insert(key(1000)), Verdict::duplicate);
  EXPECT_NE(forwards, backwards);
  EXPECT_NE(EndlessSet({HashKind::fast, 1}, 0), EndlessSet({HashKind::fast, 2}, 0));
}

TEST(EndlessSet, RefusesBytesThatNoSetWrites) {
  EndlessSet set(kTestHash, 0);
  EXPECT_EQ(set.test_and_insert({5, 1}), Verdict::fresh);
  EXPECT_EQ(set.test_and_insert({5, 2}), Verdict::fresh);
  const auto refusal = [&](std::size_t at, std::uint64_t value) -> std::string {
    Bytes damaged = encoded(set);
    store_u64(damaged.data() + at, value);
    store_u64(damaged.data() + damaged.size() - 8,
              checksum(ByteView(damaged).first(damaged.size() - 8)));
    const Result<EndlessSet> read = EndlessSet::decode(damaged);
    return read ? "none" : read.error().message();
  };
  EXPECT_EQ(refusal(12, 2), "endless set: hash");  // unknown kind
  EXPECT_EQ(refusal(21, 1), "endless set: size");
  EXPECT_EQ(refusal(21, 3), "endless set: size");
  EXPECT_EQ(refusal(37, 2), "endless set: order of ids");
  EXPECT_EQ(refusal(37, 0), "none");
  EXPECT_EQ(refusal(29, 6), "none");
}

}  // namespace
}  // namespace semel::window_internal
