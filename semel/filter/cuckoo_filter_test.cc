// CuckooFilter: membership, removal, load, rate, and sound and hostile bytes, in every kind.
#include "semel/filter/cuckoo_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "semel/bits/internal/packed_array.h"
#include "semel/core/internal/random.h"
#include "semel/core/limits.h"
#include "semel/filter/internal/cuckoo_bucket.h"
#include "semel/filter/internal/cuckoo_shape.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/oracle/set_twin.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"
#include "tests/support/reseal.h"

namespace semel {

using filter_internal::CuckooPlaces;
using filter_internal::CuckooSpot;
namespace cuckoo_bucket = filter_internal::cuckoo_bucket;

namespace {

template <class Check>
void for_each_kind(Check check) {
  for (const std::uint32_t size : {4u, 8u}) {
    for (const std::uint32_t bits : cuckoo_bucket::kWidths) {
      SCOPED_TRACE(std::to_string(size) + " x " + std::to_string(bits));
      check(size, bits);
    }
  }
}

CuckooFilter filter_of(std::uint64_t first, std::uint64_t last, const CuckooShape& shape) {
  CuckooFilter filter(shape);
  EXPECT_EQ(filter.insert(keys(first, last)), last - first);
  return filter;
}

template <std::uint32_t kSize, std::uint32_t kBits, std::uint32_t kPayload>
struct Case {
  using Type = CuckooFilter;
  static constexpr std::size_t kHeaderSize = 40;
  static constexpr CuckooShape kShape = {kSize, kBits, kPayload, 5, kTestHash};

  // A filter of some dozen slots, three quarters full, for hostile bytes and golden files.
  static Type make() {
    CuckooFilter filter(kShape);
    const std::uint64_t most = kPayload == 64 ? ~0ull : (1ull << kPayload) - 1;
    for (std::uint64_t n = 0; n < 5 * kSize * 3 / 4; ++n) {
      EXPECT_TRUE(filter.insert(key(n), kPayload == 0 ? 0 : mix(n + 1) & most));
    }
    return filter;
  }
  // A filter of six buckets for the twin. Its 40 keys are added again and again, so that it fills
  // up.
  static std::optional<bool> add(Type& filter, Digest key) {
    if (filter.insert(key)) return true;
    return std::nullopt;
  }
  static bool remove(Type& filter, Digest key) { return filter.remove(key); }
};

template <std::uint32_t kSize, std::uint32_t kBits>
struct TwinCase : Case<kSize, kBits, 3> {
  static CuckooFilter make() { return CuckooFilter({kSize, kBits, 3, 6, kTestHash}); }
};

struct Golden12 : Case<4, 12, 0> {
  static constexpr char kFile[] = "cuckoo_v1_4x12.bin";
};
struct Golden16 : Case<8, 16, 37> {
  static constexpr char kFile[] = "cuckoo_v1_8x16_payload37.bin";
};

using BytesCases =
    ::testing::Types<Case<4, 8, 0>, Case<4, 9, 3>, Case<4, 12, 7>, Case<8, 16, 64>, Case<8, 32, 1>>;
using TwinCases = ::testing::Types<TwinCase<4, 8>, TwinCase<4, 11>, TwinCase<8, 12>,
                                   TwinCase<4, 16>, TwinCase<8, 32>>;
using GoldenCases = ::testing::Types<Golden12, Golden16>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cuckoo, HostileBytes, BytesCases);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuckoo, SetTwin, TwinCases);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuckoo, Golden, GoldenCases);

// Tries zero lanes with every kind of neighbour, and borrows that run into the next lane.
TEST(CuckooBucket, FindsExactlyTheSlotsThatHoldAFingerprint) {
  for_each_kind([](std::uint32_t size, std::uint32_t bits) {
    const CuckooPlaces shape(CuckooShape{size, bits, 0, 3, {}});
    Random random(size * bits);
    for (int round = 0; round < 20'000; ++round) {
      PackedArray table(shape.slots(), bits);
      const std::uint64_t wanted = random.below(4);
      for (std::uint64_t slot = 0; slot < shape.slots(); ++slot) {
        const std::uint64_t high = std::uint64_t{1} << (bits - 1);
        table.set(slot, random.below(3) == 0 ? high + random.below(3) - 1 : random.below(4));
      }
      for (std::uint64_t bucket = 0; bucket < shape.buckets; ++bucket) {
        std::uint32_t expected = 0;
        for (std::uint32_t slot = 0; slot < size; ++slot) {
          expected |= std::uint32_t{table.get(bucket * size + slot) == wanted} << slot;
        }
        cuckoo_bucket::visit(shape, [&](auto kind) {
          ASSERT_EQ(kind.matches(table.data(), bucket, wanted), expected);
          ASSERT_EQ(kind.any(table.data(), bucket, wanted) != 0, expected != 0);
        });
      }
    }
  });
}

TEST(CuckooBucket, OtherBucketLeadsBack) {
  for (const std::uint64_t buckets : {1ull, 2ull, 3ull, 1000ull, (1ull << 40) + 7}) {
    Random random(buckets);
    for (int round = 0; round < 10'000; ++round) {
      const std::uint64_t bucket = random.below(buckets), fingerprint = 1 + random.below(65535);
      const std::uint64_t other = cuckoo_bucket::other(bucket, fingerprint, buckets);
      ASSERT_LT(other, buckets);
      ASSERT_EQ(cuckoo_bucket::other(other, fingerprint, buckets), bucket);
    }
  }
}

TEST(CuckooShape, HasRoomForItsKeysAndMeetsItsError) {
  for (const std::uint32_t size : {4u, 8u}) {
    for (const std::uint64_t count : {1ull, 10ull, 1000ull, 100'000ull}) {
      for (const double fpr : {0.1, 0.01, 1e-3, 1e-5}) {
        const CuckooShape shape = *CuckooShape::for_goal({count, fpr, size, 0, kTestHash});
        EXPECT_LE(shape.expected_fpr(count), fpr);
        const CuckooFilter filter = filter_of(0, count, shape);
        EXPECT_TRUE(count < 100'000 || filter.load() > 0.94);
      }
    }
  }
}

TEST(CuckooShape, TakesTheShortestFingerprintThatWillDo) {
  const auto bits = [](double fpr) {
    return CuckooShape::for_goal({100'000, fpr})->fingerprint_bits;
  };
  EXPECT_EQ(bits(0.03), 8u);
  EXPECT_EQ(bits(0.02), 9u);
  EXPECT_EQ(bits(0.0015), 13u);
  EXPECT_EQ(bits(1e-4), 20u);
  EXPECT_EQ(bits(1e-12), 48u);
}

TEST(CuckooShape, RefusesAnImpossibleGoal) {
  for (const auto& goal : {CuckooShape::Goal{.keys = 0, .fpr = 0.01},
                           {.keys = 1, .fpr = 0},
                           {.keys = 1, .fpr = 1},
                           {.keys = 1, .fpr = std::nan("")},
                           {.keys = 1, .fpr = 0.01, .bucket_size = 5},
                           {.keys = 1, .fpr = 0.01, .bucket_size = 4, .payload_bits = 65}}) {
    const Result<CuckooShape> shape = CuckooShape::for_goal(goal);
    ASSERT_FALSE(shape);
    EXPECT_EQ(shape.error().code, Errc::invalid);
  }
  EXPECT_EQ(CuckooShape::for_goal({~0ull, 0.01}).error().code, Errc::limit);
  EXPECT_EQ(CuckooShape::for_goal({limits::kFilterBits / 8, 0.01}).error().code, Errc::limit);
  EXPECT_EQ(CuckooShape::for_goal({1000, 1e-18}).error().code, Errc::limit);
}

TEST(CuckooShape, NumbersEveryPairOfBucketsOnceAndWastesNoNumber) {
  for (const std::uint64_t buckets : {1, 2, 3, 4, 5, 8, 13, 64, 101}) {
    const CuckooPlaces shape(CuckooShape{4, 8, 0, buckets, kTestHash});
    for (std::uint64_t f = 1; f < 256; ++f) {
      std::map<std::uint64_t, std::set<std::uint64_t>> pairs;
      for (std::uint64_t bucket = 0; bucket < buckets; ++bucket) {
        const CuckooSpot spot{bucket, f};
        const std::uint64_t pair = shape.pair_of(spot);
        ASSERT_LT(pair, shape.pairs());
        ASSERT_TRUE(shape.is_pair(pair, f));
        ASSERT_EQ(shape.pair_of(shape.other(spot)), pair);
        pairs[pair].insert({bucket, shape.other(spot).bucket});
        const std::uint64_t lesser = shape.spot_of(pair, f).bucket;
        ASSERT_EQ(lesser, std::min(bucket, shape.other(spot).bucket));
      }
      for (std::uint64_t pair = 0; pair < shape.pairs() + 2; ++pair) {
        ASSERT_EQ(shape.is_pair(pair, f), pairs.contains(pair));
        ASSERT_TRUE(!pairs.contains(pair) || pairs[pair].size() <= 2);
      }
      ASSERT_GE(pairs.size() + 1, shape.pairs());  // at most one number names no pair
    }
  }
}

TEST(CuckooShape, HasTheCapacityThatItWasMadeFor) {
  for (const std::uint32_t size : {4u, 8u}) {
    for (std::uint64_t keys = 1; keys < 1'000'000'000; keys += keys / 7 + 1) {
      const CuckooShape shape =
          *CuckooShape::for_goal({.keys = keys, .fpr = 0.01, .bucket_size = size});
      ASSERT_GE(shape.capacity(), keys);
      if (keys < 10) continue;  // no table has fewer than three buckets
      const auto more =
          CuckooShape::for_goal({.keys = shape.capacity() + 1, .fpr = 0.01, .bucket_size = size});
      ASSERT_GT(more->buckets, shape.buckets);
    }
  }
}

TEST(CuckooFilter, NeverForgetsAKeyUpToALoadOf95Percent) {
  for_each_kind([](std::uint32_t size, std::uint32_t bits) {
    const CuckooShape shape{size, bits, 0, (1u << 17) / size, kTestHash};
    const std::uint64_t count = shape.slots() * 95 / 100;
    const CuckooFilter filter = filter_of(0, count, shape);
    EXPECT_EQ(count_found(filter, keys(0, count)), count);
    EXPECT_GE(filter.load(), 0.9499);
  });
}

TEST(CuckooFilter, FillsUpBeyond96PercentAndThenStaysAsItWas) {
  for_each_kind([](std::uint32_t size, std::uint32_t bits) {
    CuckooFilter filter({size, bits, 0, (1u << 14) / size, kTestHash});
    std::uint64_t n = 0;
    while (filter.insert(key(n))) ++n;
    EXPECT_GT(filter.load(), size == 4 ? 0.96 : 0.98);
    const CuckooFilter full = filter;
    Bytes before, after;
    filter.encode(before);
    const Result<void> refused = filter.insert(key(n));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::full);
    filter.encode(after);
    EXPECT_EQ(before, after);  // equality is not enough: nothing may move
    EXPECT_EQ(count_found(filter, keys(0, n)), n);
    EXPECT_EQ(filter.insert(keys(n, n + 3)), 0u);
  });
}

TEST(CuckooFilter, ForgetsWhatIsRemovedAndNothingElse) {
  for_each_kind([](std::uint32_t size, std::uint32_t bits) {
    const CuckooShape shape{size, bits, 0, (1u << 12) / size, kTestHash};
    const std::uint64_t count = shape.slots() * 9 / 10;
    CuckooFilter filter = filter_of(0, count, shape);
    for (std::uint64_t n = 0; n < count / 2; ++n) ASSERT_TRUE(filter.remove(key(n)));
    EXPECT_EQ(count_found(filter, keys(count / 2, count)), count - count / 2);
    EXPECT_EQ(filter, filter_of(count / 2, count, shape));
    for (std::uint64_t n = count / 2; n < count; ++n) ASSERT_TRUE(filter.remove(key(n)));
    EXPECT_EQ(filter.size(), 0u);
    EXPECT_FALSE(filter.remove(key(0)));
    EXPECT_EQ(filter, CuckooFilter(shape));
  });
}

TEST(CuckooFilter, HoldsAKeyAsOftenAsItWasInserted) {
  for_each_kind([](std::uint32_t size, std::uint32_t bits) {
    CuckooFilter filter({size, bits, 0, 1000, kTestHash});
    std::uint32_t copies = 0;
    while (filter.insert(key(1))) ++copies;
    EXPECT_EQ(copies, 2 * size);
    EXPECT_TRUE(filter.insert(key(2)));  // the filter is full for one key only
    for (; copies > 0; --copies) {
      EXPECT_TRUE(filter.contains(key(1)));
      EXPECT_TRUE(filter.remove(key(1)));
    }
    EXPECT_FALSE(filter.contains(key(1)));
  });
}

TEST(CuckooFilter, CarriesPayloadsThroughEveryMove) {
  for_each_kind([](std::uint32_t size, std::uint32_t bits) {
    for (const std::uint32_t payload_bits : {1u, 13u, 64u}) {
      const std::uint64_t most = payload_bits == 64 ? ~0ull : (1ull << payload_bits) - 1;
      CuckooFilter filter({size, bits, payload_bits, (1u << 11) / size, kTestHash});
      const std::uint64_t count = filter.shape().slots() * 95 / 100;
      for (std::uint64_t n = 0; n < count; ++n) ASSERT_TRUE(filter.insert(key(n), mix(n) & most));
      for (std::uint64_t n = 0; n < count; ++n) {
        const std::vector<std::uint64_t> found = filter.payloads(key(n));
        ASSERT_NE(std::find(found.begin(), found.end(), mix(n) & most), found.end());
      }
      for (std::uint64_t n = 0; n < count; ++n) {
        ASSERT_TRUE(filter.remove(key(n), mix(n) & most)) << n;
      }
      EXPECT_EQ(filter.size(), 0u);
    }
  });
}

TEST(CuckooFilter, RemovesTheEntryWithThePayloadThatIsNamed) {
  CuckooFilter filter({4, 16, 8, 100, kTestHash});
  for (const std::uint64_t payload : {7, 3, 5}) ASSERT_TRUE(filter.insert(key(1), payload));
  EXPECT_FALSE(filter.remove(key(1), 4));
  EXPECT_TRUE(filter.remove(key(1), 3));
  EXPECT_FALSE(filter.remove(key(1), 3));
  std::vector<std::uint64_t> left = filter.payloads(key(1));
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::uint64_t>{5, 7}));
}

TEST(CuckooFilter, IsEqualWhateverOrderItWasFilledIn) {
  const CuckooShape shape{4, 12, 0, 256, kTestHash};
  std::vector<Digest> all = keys(0, 960);
  CuckooFilter forwards(shape), backwards(shape);
  EXPECT_EQ(forwards.insert(all), all.size());
  std::reverse(all.begin(), all.end());
  EXPECT_EQ(backwards.insert(all), all.size());
  EXPECT_EQ(forwards, backwards);
  EXPECT_TRUE(forwards.remove(key(5)));
  EXPECT_NE(forwards, backwards);
}

TEST(CuckooFilter, AnswersBatchesOfAnySizeAsOneByOne) {
  for_each_kind([](std::uint32_t size, std::uint32_t bits) {
    const CuckooFilter filter = filter_of(0, 900, {size, bits, 0, 1000 / size, kTestHash});
    for (const std::size_t count : {0, 1, 47, 48, 49, 500}) {
      const std::vector<Digest> batch = keys(800, 800 + count);
      Answers found(count);
      filter.contains(batch, found.span());
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(found[i], filter.contains(batch[i]));
    }
  });
}

TEST(CuckooFilter, FalsePositiveRateIsWhatTheFormulaSays) {
  constexpr std::uint64_t kKeys = 100'000, kTrials = 1'000'000;
  const std::vector<Digest> absent = keys(kKeys, kKeys + kTrials);
  for (const std::uint32_t size : {4u, 8u}) {
    for (const double fpr : {1e-1, 1e-2, 1e-3, 1e-4, 1e-5}) {
      const CuckooShape shape = *CuckooShape::for_goal({kKeys, fpr, size, 0, kTestHash});
      const CuckooFilter filter = filter_of(0, kKeys, shape);
      const double live = filter.live_fpr();
      EXPECT_LE(live, fpr);
      EXPECT_NEAR(static_cast<double>(count_found(filter, absent)), kTrials * live,
                  five_deviations(kTrials, live))
          << size << " " << fpr;
    }
  }
}

// This damage would encode to the same bytes again. It shows only because no filter writes such
// bytes.
TEST(CuckooFilter, RefusesBytesThatNoFilterWrites) {
  Bytes bytes;
  CuckooFilter({4, 8, 3, 3, kTestHash}).encode(bytes);  // 12 slots: 36 bits of payload in 5 bytes
  const std::size_t payloads = 40 + 12;
  const auto refusal = [&](std::size_t at, std::uint8_t value) -> std::string {
    Bytes damaged = bytes;
    damaged[at] = value;
    const Result<CuckooFilter> filter = CuckooFilter::decode(resealed(damaged));
    return filter ? "none" : filter.error().message();
  };
  EXPECT_EQ(refusal(12, 4), "none");
  EXPECT_EQ(refusal(12, 5), "cuckoo filter: shape");
  EXPECT_EQ(refusal(15, 4), "cuckoo filter: size");
  EXPECT_EQ(refusal(32, 1), "cuckoo filter: number of entries");
  EXPECT_EQ(refusal(40, 7), "cuckoo filter: number of entries");
  EXPECT_EQ(refusal(payloads, 1), "cuckoo filter: a payload in a free slot");
  EXPECT_EQ(refusal(payloads + 4, 0x10), "cuckoo filter: bits past the last packed number");
}

TEST(CuckooFilterDeathTest, RefusesAnInvalidShapeAndTooWideAPayload) {
  EXPECT_DEATH(CuckooFilter({5, 8, 0, 10, {}}), "shape.valid");
  EXPECT_DEATH(CuckooFilter({4, 17, 0, 10, {}}), "shape.valid");
  EXPECT_DEATH(CuckooFilter({4, 8, 0, 0, {}}), "shape.valid");
  CuckooFilter filter({4, 8, 3, 10, kTestHash});
  EXPECT_DEATH((void)filter.insert(key(1), 8), "payload");
}

}  // namespace
}  // namespace semel
