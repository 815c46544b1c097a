// SetSketch: exact recovery up to the capacity, and the answers beyond it.
#include "semel/sync/internal/set_sketch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "semel/core/internal/random.h"

namespace semel::sync_internal {
namespace {

using Numbers = std::vector<std::uint32_t>;

SetSketch sketch_of(std::uint32_t capacity, std::span<const std::uint32_t> numbers) {
  SetSketch sketch(capacity);
  for (const std::uint32_t number : numbers) sketch.toggle(number);
  return sketch;
}

Numbers random_set(Random& random, std::size_t size) {
  std::set<std::uint32_t> numbers;
  while (numbers.size() < size) {
    const auto number = static_cast<std::uint32_t>(random());
    if (number != 0) numbers.insert(number);
  }
  return {numbers.begin(), numbers.end()};
}

// Checks an answer to any syndromes: it must be the set of at most `capacity` members that has this
// sketch. There is no other (docs/math/set_sketch.md).
void expect_sound(const SetSketch& sketch) {
  const auto numbers = sketch.decode();
  if (!numbers) {
    EXPECT_EQ(numbers.error().code, Errc::limit);
    return;
  }
  EXPECT_LE(numbers->size(), sketch.capacity());
  EXPECT_TRUE(std::is_sorted(numbers->begin(), numbers->end()));
  EXPECT_EQ(sketch_of(sketch.capacity(), *numbers), sketch);
}

TEST(SetSketch, RecoversEverySetThatFits) {
  Random random(1);
  for (std::uint32_t capacity = 1; capacity <= 40; ++capacity) {
    for (std::uint32_t size = 0; size <= capacity; ++size) {
      const Numbers set = random_set(random, size);
      const auto decoded = sketch_of(capacity, set).decode();
      ASSERT_TRUE(decoded) << capacity << " " << size;
      ASSERT_EQ(*decoded, set) << capacity << " " << size;
    }
  }
}

TEST(SetSketch, RecoversLargeSets) {
  Random random(2);
  for (const std::uint32_t size : {64, 100, 257, 1024}) {
    const Numbers set = random_set(random, size);
    const auto decoded = sketch_of(size, set).decode();
    ASSERT_TRUE(decoded) << size;
    EXPECT_EQ(*decoded, set);
  }
}

// Numbers that span few bits are the hardest to separate: most traces are equal for all of them.
TEST(SetSketch, RecoversNumbersThatLieClose) {
  for (const std::uint32_t size : {2, 3, 31, 255, 1023}) {
    for (const std::uint32_t stride : {1u, 1u << 22}) {
      Numbers set(size);
      for (std::uint32_t i = 0; i < size; ++i) set[i] = (i + 1) * stride;
      const auto decoded = sketch_of(size, set).decode();
      ASSERT_TRUE(decoded) << size << " " << stride;
      EXPECT_EQ(*decoded, set);
    }
  }
}

TEST(SetSketch, TellsAllPairsOfSmallNumbersApart) {
  std::set<Numbers> seen;
  for (std::uint32_t a = 0; a < 64; ++a) {
    for (std::uint32_t b = a + 1; b < 64; ++b) {
      const Numbers set = a == 0 ? Numbers{b} : Numbers{a, b};
      const SetSketch sketch = sketch_of(2, set);
      EXPECT_TRUE(seen.emplace(sketch.syndromes().begin(), sketch.syndromes().end()).second);
      EXPECT_EQ(*sketch.decode(), set);
    }
  }
}

// Members of both cancel, in any order. Members that are toggled twice are absent.
RC_GTEST_PROP(SetSketch, OfTheDifferenceIsTheXorOfBoth,
              (std::set<std::uint32_t> a, std::set<std::uint32_t> b)) {
  a.erase(0);
  b.erase(0);
  Numbers difference;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                std::back_inserter(difference));
  const auto capacity = static_cast<std::uint32_t>(difference.size() + *rc::gen::inRange(1, 4));
  Numbers in_a(a.begin(), a.end()), in_b(b.rbegin(), b.rend());
  SetSketch sketch = sketch_of(capacity, in_a);
  sketch ^= sketch_of(capacity, in_b);
  RC_ASSERT(sketch == sketch_of(capacity, difference));
  RC_ASSERT(*sketch.decode() == difference);

  for (const std::uint32_t number : difference) sketch.toggle(number);
  RC_ASSERT(sketch == SetSketch(capacity));
}

TEST(SetSketch, TogglesManyAsItTogglesOne) {
  Random random(3);
  constexpr std::uint32_t kCapacity = 11, kSketches = 3;
  const Numbers numbers = random_set(random, 200);
  Numbers places(numbers.size()), together(kCapacity), apart(kSketches * kCapacity);
  for (std::uint32_t& place : places) place = static_cast<std::uint32_t>(random.below(kSketches));
  SetSketch::toggle_many(together, numbers);
  SetSketch::toggle_many(apart, kCapacity, places, numbers);

  Numbers expected(kSketches * kCapacity);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    SetSketch::toggle(std::span(expected).subspan(places[i] * kCapacity, kCapacity), numbers[i]);
  }
  EXPECT_EQ(apart, expected);
  EXPECT_TRUE(std::ranges::equal(together, sketch_of(kCapacity, numbers).syndromes()));
}

TEST(SetSketch, OfNothingIsEmpty) {
  EXPECT_TRUE(SetSketch(7).decode()->empty());
  EXPECT_EQ(*sketch_of(1, Numbers{0xffffffff}).decode(), Numbers{0xffffffff});
}

// A share of 1 / capacity! of all syndromes belongs to a set that fits.
TEST(SetSketch, RefusesMoreThanFitsButForOneInTheFactorial) {
  Random random(4);
  constexpr int kTrials = 3000;
  double factorial = 1;
  for (const std::uint32_t capacity : {2, 3, 4, 5, 6}) {
    factorial *= capacity;
    for (const std::uint32_t size : {capacity + 2, 3 * capacity}) {
      int answers = 0;
      for (int i = 0; i < kTrials; ++i) {
        const SetSketch sketch = sketch_of(capacity, random_set(random, size));
        answers += sketch.decode().has_value();
        expect_sound(sketch);
      }
      const double expected = kTrials / factorial;
      EXPECT_NEAR(answers, expected, 5 * std::sqrt(expected)) << capacity << " " << size;
    }
  }
}

// From capacity 16 on that share is below 1e-13.
TEST(SetSketch, RefusesMoreThanFitsInLargeSketches) {
  Random random(5);
  for (const std::uint32_t capacity : {16, 24, 32, 64}) {
    for (std::uint32_t more = 1; more <= 20; ++more) {
      const auto decoded = sketch_of(capacity, random_set(random, capacity + more)).decode();
      ASSERT_FALSE(decoded) << capacity << " " << more;
      EXPECT_EQ(decoded.error().code, Errc::limit);
    }
  }
}

TEST(SetSketch, AnswersSoundlyToAnySyndromes) {
  Random random(6);
  for (std::uint32_t capacity = 1; capacity <= 12; ++capacity) {
    for (int i = 0; i < 300; ++i) {
      Bytes bytes(4 * capacity);
      // Uses few bits and few syndromes: short recurrences, roots at 0, multiple roots.
      for (std::uint8_t& byte : bytes) {
        byte = random.below(3) == 0 ? static_cast<std::uint8_t>(random() >> random.below(60)) : 0;
      }
      expect_sound(SetSketch::of_bytes(bytes));
    }
  }
  for (const std::uint32_t capacity : {1u, 2u, 33u, SetSketch::kMostCapacity}) {
    for (const int fill : {1, 0x80, 0xff}) {
      expect_sound(SetSketch::of_bytes(Bytes(4 * capacity, static_cast<std::uint8_t>(fill))));
    }
    Bytes last(4 * capacity);
    last.back() = 1;
    expect_sound(SetSketch::of_bytes(last));
  }
}

// FROZEN, because sites of different releases meet. Uses only powers of z, which can be checked by
// hand: z^32 is z^7 + z^3 + z^2 + 1.
TEST(SetSketch, HasTheSyndromesThatTheFormatSays) {
  const SetSketch of_z = sketch_of(4, Numbers{2});
  EXPECT_TRUE(std::ranges::equal(of_z.syndromes(), Numbers{2, 8, 32, 128}));
  const SetSketch of_z11 = sketch_of(3, Numbers{1u << 11});  // z^11, z^33, z^55
  EXPECT_TRUE(std::ranges::equal(of_z11.syndromes(), Numbers{1u << 11, 0x8du << 1, 0x8du << 23}));
}

TEST(SetSketch, IsReadFromItsBytesInLittleEndian) {
  const SetSketch sketch = SetSketch::of_bytes(Bytes{1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(std::ranges::equal(sketch.syndromes(), Numbers{0x04030201, 0x08070605}));
}

TEST(SetSketchDeathTest, RefusesAnImpossibleCapacity) {
  EXPECT_DEATH(SetSketch(0), "capacity");
  EXPECT_DEATH(SetSketch(SetSketch::kMostCapacity + 1), "capacity");
  EXPECT_DEATH(SetSketch::of_bytes(Bytes(5)), "size");
  EXPECT_DEATH(SetSketch(2) ^= SetSketch(3), "capacity");
}

}  // namespace
}  // namespace semel::sync_internal
