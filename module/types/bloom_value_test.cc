// BloomValue: copies, chains, dumps, merges, and untrusted bytes. The series has its tests in
// semel/crdt.
#include "module/types/bloom_value.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/sealed.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/encoded.h"
#include "tests/support/held_value.h"
#include "tests/support/keys.h"

namespace semel::module {
namespace {

using Ptr = std::unique_ptr<BloomValue>;

Secret secret_of(std::uint8_t first) {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return Secret(bytes);
}

Ptr value_of(const BloomValue::Goal& goal, std::uint64_t tag, std::uint8_t secret = 1) {
  Result<Ptr> value = BloomValue::make(secret_of(secret), goal);
  EXPECT_TRUE(value) << value.error().message();
  EXPECT_TRUE((*value)->begin_chain(tag));
  return *std::move(value);
}

constexpr BloomValue::Goal kSmall{.error = 0.01, .capacity = 4, .expansion = 2};

Digest item(const BloomValue& value, std::uint64_t number) {
  return value.hasher()("item " + std::to_string(number));
}

void add_items(BloomValue& value, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t n = first; n < last; ++n) {
    ASSERT_TRUE(value.add(item(value, n), 0));
  }
}

bool holds(const BloomValue& value, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t n = first; n < last; ++n) {
    if (!value.contains(item(value, n))) return false;
  }
  return true;
}

Ptr read(ByteView bytes) {
  Result<std::unique_ptr<host::Value>> value = BloomValue::decode(bytes);
  EXPECT_TRUE(value) << value.error().message();
  return Ptr(static_cast<BloomValue*>((*std::move(value)).release()));
}

std::vector<Bytes> pieces_of(const BloomValue& value) {
  std::vector<Bytes> all;
  for (BloomValue::Chunk chunk = value.dump(1); chunk.next != 0; chunk = value.dump(chunk.next)) {
    all.push_back(chunk.bytes);
  }
  return all;
}

void merge(BloomValue& into, const BloomValue& from) {
  for (const Bytes& piece : pieces_of(from)) {
    const Result<bool> loaded = into.load(piece, 0);
    ASSERT_TRUE(loaded) << loaded.error().message();
  }
}

using Held = HeldValue<BloomValue>;

struct BloomBytes {
  using Type = Held;
  static constexpr std::size_t kHeaderSize = kSealedHeader + Secret::kSize;
  static constexpr const char* kFile = "module_bloom_v1.bin";
  static Held make() {
    Ptr value = value_of(kSmall, 77);
    add_items(*value, 0, 7);
    Ptr other = value_of(kSmall, 78);
    add_items(*other, 20, 22);
    merge(*value, *other);
    return Held(std::move(value));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(BloomValue, HostileBytes, BloomBytes);
INSTANTIATE_TYPED_TEST_SUITE_P(BloomValue, Golden, BloomBytes);

// The law of values: a copy that was encoded and decoded at any point continues in the same way.
RC_GTEST_PROP(BloomValue, GoesOnFromTheMiddleOfAnyHistory, ()) {
  const BloomValue::Goal goal{.error = 0.05,
                              .capacity = *rc::gen::inRange<std::uint64_t>(1, 20),
                              .expansion = *rc::gen::inRange<std::uint32_t>(0, 4)};
  const std::uint64_t max_bytes = *rc::gen::element<std::uint64_t>(0, 300, 2000);
  Ptr one = value_of(goal, 1), other = value_of(goal, 1), source = value_of(goal, 1000);
  const auto calls = *rc::gen::container<std::vector<std::pair<int, std::uint64_t>>>(
      rc::gen::pair(rc::gen::inRange(0, 20), rc::gen::inRange<std::uint64_t>(0, 400)));
  std::uint64_t next_tag = 2;
  for (const auto& [call, n] : calls) {
    if (call == 0) {
      other = read(encoded(*other));
    } else if (call == 1) {
      one->disown();
      other->disown();
    } else if (call == 2) {
      (void)source->add(item(*source, n), 0);
      for (const Bytes& piece : pieces_of(*source)) {
        const Result<bool> a = one->load(piece, max_bytes), b = other->load(piece, max_bytes);
        RC_ASSERT(a.has_value() == b.has_value());
        if (a) RC_ASSERT(*a == *b);
      }
    } else {
      if (!one->chains().own()) {
        RC_ASSERT(one->begin_chain(next_tag).has_value());
        RC_ASSERT(other->begin_chain(next_tag++).has_value());
      }
      std::vector<Digest> keys;
      for (std::uint64_t i = 0; i < n % 40; ++i) keys.push_back(item(*one, n + i));
      Answers a(keys.size()), b(keys.size());
      std::size_t done = 0, other_done = 0;
      const Result<void> all = one->add(keys, a.span(), max_bytes, done);
      const Result<void> other_all = other->add(keys, b.span(), max_bytes, other_done);
      RC_ASSERT(all.has_value() == other_all.has_value());
      if (!all) RC_ASSERT(all.error().code == other_all.error().code);
      RC_ASSERT(done == other_done);
      for (std::size_t i = 0; i < done; ++i) RC_ASSERT(a[i] == b[i]);
    }
    RC_ASSERT(one->items() == other->items());
  }
  RC_ASSERT(encoded(*one) == encoded(*other));
}

TEST(BloomValue, AddsOneByOneAsItAddsMany) {
  for (const std::uint64_t max_bytes : {std::uint64_t{0}, std::uint64_t{4000}}) {
    const Ptr one = value_of(kSmall, 1), many = value_of(kSmall, 1);
    std::vector<Digest> keys;
    for (std::uint64_t n = 0; n < 2000; ++n) keys.push_back(item(*one, n * 7 % 1500));
    Answers added(keys.size());
    std::size_t done = 0;
    const Result<void> all = many->add(keys, added.span(), max_bytes, done);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Result<bool> answer = one->add(keys[i], max_bytes);
      if (i >= done) {
        EXPECT_EQ(answer.error().code, all.error().code);
        break;
      }
      ASSERT_TRUE(answer);
      ASSERT_EQ(*answer, added[i]) << i;
    }
    ASSERT_EQ(all.has_value(), max_bytes == 0);
    if (!all) {
      EXPECT_EQ(all.error().code, Errc::full);
    }
    EXPECT_EQ(encoded(*one), encoded(*many));
    EXPECT_LE(many->bytes(), max_bytes == 0 ? 20'000 : max_bytes + 4000);
  }
}

TEST(BloomValue, IsFullWhenItDoesNotGrow) {
  const Ptr value = value_of({.error = 0.01, .capacity = 50, .expansion = 0}, 1);
  std::uint64_t n = 0;
  while (value->items() < 50) ASSERT_TRUE(value->add(item(*value, n++), 0));
  while (value->contains(item(*value, n))) ++n;
  EXPECT_EQ(value->add(item(*value, n), 0).error().code, Errc::limit);
  EXPECT_FALSE(*value->add(item(*value, 0), 0));
  EXPECT_EQ(value->filters(), 1u);
  EXPECT_EQ(value->capacity(), 50u);
}

TEST(BloomValue, ACopyHasAllButAnOwnChain) {
  const Ptr value = value_of(kSmall, 5);
  add_items(*value, 0, 30);
  const std::unique_ptr<host::Value> copied = value->copy();
  auto& copy = static_cast<BloomValue&>(*copied);
  EXPECT_TRUE(holds(copy, 0, 30));
  EXPECT_EQ(copy.items(), value->items());
  EXPECT_FALSE(copy.chains().own());
  EXPECT_FALSE(copy.begin_chain(5));  // not with the tag of a chain that it has
  ASSERT_TRUE(copy.begin_chain(6));
  add_items(copy, 100, 110);
  EXPECT_FALSE(holds(*value, 100, 110));
  EXPECT_EQ(copy.error_bound(), 2 * value->error_bound());

  // Merge back: the common chain joins, and the other becomes a second one.
  merge(*value, copy);
  EXPECT_TRUE(holds(*value, 0, 30) && holds(*value, 100, 110));
  EXPECT_EQ(value->items(), copy.items());
  EXPECT_EQ(value->chains().size(), 2u);
  EXPECT_EQ(value->chains().own(), 0);
}

TEST(BloomValue, MergesInAnyOrderAndAnyNumberOfTimes) {
  std::array<Ptr, 3> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    parts[i] = value_of(kSmall, 10 + i);
    add_items(*parts[i], 50 * i, 50 * i + 60);
  }
  const auto united = [&](std::vector<std::size_t> order) {
    Ptr all = *BloomValue::make(secret_of(1), kSmall);
    for (const std::size_t i : order) merge(*all, *parts[i]);
    return all;
  };
  const Ptr all = united({0, 1, 2});
  EXPECT_TRUE(holds(*all, 0, 160));
  EXPECT_EQ(encoded(*united({0, 0, 1, 2, 1})), encoded(*all));
  const Ptr back = united({2, 1, 0});  // the same with other aliases
  EXPECT_EQ(back->items(), all->items());
  EXPECT_EQ(back->error_now(), all->error_now());
  const Bytes before = encoded(*all);
  for (const Bytes& piece : pieces_of(*all)) EXPECT_FALSE(*all->load(piece, 0));
  EXPECT_EQ(encoded(*all), before);
}

// A filter that began small has links that differ from the mean.
TEST(BloomValue, TellsItsErrorAsItIs) {
  for (const double error : {0.9, 0.5, 0.1}) {
    for (std::uint8_t secret = 1; secret <= 5; ++secret) {
      const Ptr value = value_of({.error = error, .capacity = 100, .expansion = 2}, 1, secret);
      add_items(*value, 0, 20'000);
      constexpr std::uint64_t kAsked = 100'000;
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < kAsked; ++i)
        wrong += value->contains(item(*value, 1'000'000 + i));
      const double expected = kAsked * value->error_now();
      EXPECT_NEAR(static_cast<double>(wrong), expected, 5 * std::sqrt(expected)) << error;
    }
  }
}

TEST(BloomValue, GivesItsChainUpWhenAnotherHasAddedToIt) {
  const Ptr value = value_of(kSmall, 5);
  add_items(*value, 0, 10);
  const Ptr twin = read(encoded(*value));  // as RESTORE under another name makes it
  add_items(*twin, 10, 20);
  merge(*value, *twin);
  EXPECT_TRUE(holds(*value, 0, 20));
  EXPECT_FALSE(value->chains().own());
}

TEST(BloomValue, ComesBackFromADump) {
  const Ptr value = value_of({.error = 1e-6, .capacity = 400'000, .expansion = 3}, 9);
  add_items(*value, 0, 300'000);  // more than one piece
  const BloomValue::Chunk header = value->dump(0);
  EXPECT_EQ(header.next, 1u);
  const Ptr loaded = *BloomValue::load_header(header.bytes);
  EXPECT_EQ(loaded->goal(), value->goal());
  EXPECT_FALSE(loaded->chains().own());
  std::size_t pieces = 0;
  for (BloomValue::Chunk chunk = value->dump(1); chunk.next != 0; chunk = value->dump(chunk.next)) {
    EXPECT_LT(chunk.next, std::uint64_t{1} << 53);
    EXPECT_LE(chunk.bytes.size(), std::size_t{16} << 20);
    EXPECT_TRUE(*loaded->load(chunk.bytes, 0));
    // Additions meanwhile do no harm.
    if (++pieces == 2) add_items(*value, 300'000, 300'100);
  }
  EXPECT_GT(pieces, value->filters());
  EXPECT_TRUE(holds(*loaded, 0, 300'000));
  merge(*loaded, *value);
  const std::unique_ptr<host::Value> copy = value->copy();
  EXPECT_EQ(encoded(*loaded), encoded(*copy));
  EXPECT_EQ(value->dump(~0ull).next, 0u);
  EXPECT_EQ(value->dump(std::uint64_t{1} << 40).next, 0u);
}

Errc refusal_of(BloomValue& value, ByteView chunk, std::uint64_t max_bytes = 0) {
  const Bytes before = encoded(value);
  const Result<bool> loaded = value.load(chunk, max_bytes);
  if (loaded) return Errc::io;  // no refusal has this code
  EXPECT_EQ(encoded(value), before);
  return loaded.error().code;
}

bool is_damage(Errc why) {
  return why == Errc::corrupt || why == Errc::truncated || why == Errc::unsupported;
}

Bytes repaired(Bytes chunk) {
  store_u64(chunk.data() + chunk.size() - 8, checksum(ByteView(chunk).first(chunk.size() - 8)));
  return chunk;
}

TEST(BloomValue, RefusesPiecesThatItCannotHave) {
  const Ptr source = value_of(kSmall, 3), value = value_of(kSmall, 4);
  add_items(*source, 0, 5);
  const Bytes piece = pieces_of(*source)[0];
  EXPECT_EQ(refusal_of(*value_of({0.02, 4, 2}, 4), piece), Errc::mismatch);
  EXPECT_EQ(refusal_of(*value_of(kSmall, 4, 9), piece), Errc::mismatch);
  EXPECT_EQ(refusal_of(*value, piece, 10), Errc::full);
  EXPECT_EQ(refusal_of(*value, value->dump(0).bytes), Errc::unsupported);
  const auto changed = [&](std::size_t at, std::uint8_t to) {
    Bytes bytes = piece;
    bytes[at] = to;
    return repaired(bytes);
  };
  EXPECT_EQ(refusal_of(*value, changed(28, 0)), Errc::invalid);    // link 0
  EXPECT_EQ(refusal_of(*value, changed(28, 255)), Errc::invalid);  // of 2^64 keys and more
  EXPECT_EQ(refusal_of(*value, changed(30, 1)), Errc::invalid);    // link 65,537
  EXPECT_EQ(refusal_of(*value, changed(40, 1)), Errc::limit);      // one word too far
  EXPECT_EQ(refusal_of(*value, changed(47, 255)), Errc::limit);
  for (std::size_t size = 0; size < piece.size(); ++size) {
    ASSERT_EQ(refusal_of(*value, ByteView(piece).first(size)), Errc::truncated);
  }
  Bytes damaged = piece;
  for (std::size_t bit = 0; bit < 8 * piece.size(); ++bit) {
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    ASSERT_TRUE(is_damage(refusal_of(*value, damaged)));
    // With the checksum made right: refused, or a piece of bits like any other.
    const std::unique_ptr<host::Value> copy = value->copy();
    (void)static_cast<BloomValue&>(*copy).load(repaired(damaged), 1 << 20);
    Bytes after;
    copy->encode(after);
    ASSERT_TRUE(BloomValue::decode(after));
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
  }
  EXPECT_TRUE(*value->load(piece, 0));

  Bytes header = source->dump(0).bytes;
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
    header[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    ASSERT_FALSE(BloomValue::load_header(header));
    (void)BloomValue::load_header(repaired(header));
    header[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
  }
}

TEST(ChainTags, GivesEachTagOneAliasUpToALimit) {
  ChainTags chains;
  EXPECT_EQ(*chains.admit(7), 0);
  EXPECT_EQ(*chains.admit(9), 1);
  EXPECT_EQ(*chains.admit(7), 0);
  EXPECT_TRUE(chains.begin(11));
  EXPECT_EQ(chains.own(), 2);
  EXPECT_EQ(chains.begin(9).error().code, Errc::invalid);
  for (std::uint64_t tag = 1000; chains.size() < ChainTags::kMost; ++tag)
    ASSERT_TRUE(chains.admit(tag));
  EXPECT_EQ(chains.admit(1).error().code, Errc::limit);
  EXPECT_TRUE(chains.admit(9));
  Bytes bytes;
  Writer w(bytes);
  chains.encode(w);
  Reader in(bytes);
  EXPECT_EQ(*ChainTags::decode(in), chains);
}

// This also holds if the filter has chains of others, whose memory counts against the limit.
RC_GTEST_PROP(BloomValueReach, IsWhereTheFilterStopsToGrow, ()) {
  const BloomValue::Goal goal{.error = *rc::gen::elementOf(std::vector<double>{0.1, 0.01, 1e-6}),
                              .capacity = *rc::gen::inRange<std::uint64_t>(1, 200),
                              .expansion = *rc::gen::inRange<std::uint32_t>(0, 4)};
  const Ptr value = value_of(goal, 1);
  if (*rc::gen::arbitrary<bool>()) {
    const Ptr other = value_of(goal, 2);
    for (std::uint64_t n = 0; n < 100; ++n) (void)other->add(item(*other, 1'000'000 + n), 0);
    merge(*value, *other);
  }
  const std::uint64_t most = value->first_bytes() + *rc::gen::inRange<std::uint64_t>(0, 20'000);
  constexpr std::uint64_t kAny = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t reach = value->reach(kAny, most);
  const std::uint64_t on_the_way = *rc::gen::inRange<std::uint64_t>(0, reach + 1);
  RC_ASSERT(value->reach(on_the_way, most) >= on_the_way);
  for (std::uint64_t n = 0; n < 200'000; ++n) {
    if (!value->add(item(*value, n), most)) break;
    if (value->items() == on_the_way) RC_ASSERT(value->reach(kAny, most) == reach);
  }
  RC_ASSERT(value->items() == reach);
  RC_ASSERT(value->reach(kAny, most) == value->items());
}

}  // namespace
}  // namespace semel::module
