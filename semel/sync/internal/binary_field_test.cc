// GF(2^32): the definition, that it is a field, and that all kernels agree with it.
#include "semel/sync/internal/binary_field.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "semel/core/internal/random.h"

namespace semel::sync_internal::binary_field {
namespace {

// Reduces by long division, bit by bit.
Element reduce_by_definition(Product product) {
  for (int bit = 63; bit >= 32; --bit) {
    if ((product >> bit & 1) != 0) product ^= Product{0x1'0000'008d} << (bit - 32);
  }
  return static_cast<Element>(product);
}

Product product_by_definition(Element a, Element b) {
  Product product = 0;
  for (int bit = 0; bit < 32; ++bit) product ^= (b >> bit & 1) * (Product{a} << bit);
  return product;
}

std::vector<Element> random_elements(Random& random, std::size_t size) {
  std::vector<Element> elements(size);
  // Some of the elements are zeros and ones.
  for (Element& element : elements) {
    element = static_cast<Element>(random() >> random.below(33)) >> random.below(8);
  }
  return elements;
}

class AllKernels : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Kernel& kernel = kernels()[GetParam()];
  Random random{GetParam() + 1};
};
INSTANTIATE_TEST_SUITE_P(BinaryField, AllKernels,
                         ::testing::Range<std::size_t>(0, kernels().size()), [](const auto& which) {
                           return std::string(kernels()[which.param].name);
                         });

TEST(BinaryField, ReducesAsLongDivisionDoes) {
  for (int bit = 0; bit < 64; ++bit) {
    const Product power = Product{1} << bit;
    ASSERT_EQ(reduce(power), reduce_by_definition(power)) << bit;
  }
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    const Product product = random();
    ASSERT_EQ(reduce(product), reduce_by_definition(product)) << product;
  }
}

TEST(BinaryField, SquareIsTheProductWithItself) {
  Random random(2);
  for (int i = 0; i < 100'000; ++i) {
    const auto a = static_cast<Element>(random());
    ASSERT_EQ(square(a), reduce_by_definition(product_by_definition(a, a))) << a;
  }
}

// Rabin's test: z^(2^32) = z, and z^(2^16) - z has no common factor with the modulus, which means
// that it has an inverse.
TEST(BinaryField, IsAField) {
  const auto z_to_two_to_the = [](int squarings) {
    Element power = 2;
    for (int i = 0; i < squarings; ++i) power = square(power);
    return power;
  };
  EXPECT_EQ(z_to_two_to_the(32), 2u);
  const Element difference = z_to_two_to_the(16) ^ 2;
  EXPECT_EQ(best_kernel().multiply(difference, best_kernel().inverse(difference)), 1u);
}

TEST_P(AllKernels, MultipliesByDefinition) {
  for (int i = 0; i < 100'000; ++i) {
    const auto a = static_cast<Element>(random());
    const auto b = static_cast<Element>(random() >> random.below(40));
    ASSERT_EQ(kernel.product(a, b), product_by_definition(a, b)) << a << " " << b;
  }
}

TEST_P(AllKernels, InverseTimesElementIsOne) {
  EXPECT_EQ(kernel.inverse(1), 1u);
  for (int i = 0; i < 10'000; ++i) {
    const auto a = static_cast<Element>(random() | 1);
    ASSERT_EQ(kernel.multiply(a, kernel.inverse(a)), 1u) << a;
  }
}

TEST_P(AllKernels, AddsRowsOfEveryLengthAndTouchesNothingBeyond) {
  for (std::size_t size = 1; size <= 40; ++size) {
    for (const std::size_t count : {0, 1, 2, 7}) {
      const auto rows = random_elements(random, size * count);
      const auto factors = random_elements(random, count);
      std::vector<Product> sums(size + 1);
      for (Product& sum : sums) sum = random() >> 1;
      std::vector<Product> expected = sums;
      for (std::size_t i = 0; i < size * count; ++i) {
        expected[i % size] ^= product_by_definition(rows[i], factors[i / size]);
      }
      kernel.add_rows(std::span(sums).first(size), rows.data(), factors);
      ASSERT_EQ(sums, expected) << size << " " << count;
    }
  }
}

TEST_P(AllKernels, InnerProductsOfEveryLength) {
  for (std::size_t size = 0; size <= 40; ++size) {
    const auto a = random_elements(random, size), b = random_elements(random, size);
    Product expected = 0;
    for (std::size_t i = 0; i < size; ++i) expected ^= product_by_definition(a[i], b[i]);
    ASSERT_EQ(kernel.inner_product(a.data(), b.data(), size), expected) << size;
  }
}

// Tests all sizes around the widths of the kernels, all capacities around theirs, one sketch and
// several.
TEST_P(AllKernels, TogglesOddPowers) {
  constexpr std::size_t kSketches = 5;
  for (std::size_t count = 0; count <= 70; ++count) {
    for (const std::size_t capacity : {1, 2, 3, 4, 5, 7, 8, 9, 16, 19}) {
      const auto numbers = random_elements(random, count);
      std::vector<std::uint32_t> places(count);
      for (std::uint32_t& place : places) place = random.below(kSketches);
      std::vector<Element> expected = random_elements(random, kSketches * capacity + 1);
      std::vector<Element> placed = expected;
      std::vector<Element> one(capacity), expected_one(capacity);
      for (std::size_t i = 0; i < count; ++i) {
        Element power = numbers[i];
        for (std::size_t k = 0; k < capacity; ++k) {
          expected[places[i] * capacity + k] ^= power;
          expected_one[k] ^= power;
          for (int twice = 0; twice < 2; ++twice) {
            power = reduce_by_definition(product_by_definition(power, numbers[i]));
          }
        }
      }
      kernel.toggle({placed.data(), capacity, places.data(), numbers});
      ASSERT_EQ(placed, expected) << count << " " << capacity;
      kernel.toggle({one.data(), capacity, nullptr, numbers});
      ASSERT_EQ(one, expected_one) << count << " " << capacity;
    }
  }
}

}  // namespace
}  // namespace semel::sync_internal::binary_field
