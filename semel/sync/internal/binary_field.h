// The field GF(2^32): 32-bit words, added by XOR, multiplied as polynomials over GF(2) modulo
// x^32 + x^7 + x^3 + x^2 + 1. FROZEN, because sketches of two sites are compared.
//
// Contract  A carry-less product of two words has 63 bits. Products are added unreduced, and the
//           sum is reduced once. There are three kernels: portable, PCLMUL, and AVX-512 with
//           VPCLMUL. All give the same bits. The processor decides at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace semel::sync_internal::binary_field {

using Element = std::uint32_t;
using Product = std::uint64_t;

// Folds the upper half onto the lower by z^32 = z^7 + z^3 + z^2 + 1. Up to seven bits overflow
// again and are folded too.
constexpr Element reduce(Product product) {
  const std::uint64_t upper = product >> 32;
  const std::uint64_t folded = upper ^ upper >> 25 ^ upper >> 29 ^ upper >> 30;
  return static_cast<Element>(product ^ folded ^ folded << 2 ^ folded << 3 ^ folded << 7);
}

// Puts a zero before every bit, because that squares a polynomial over GF(2).
constexpr Element square(Element a) {
  std::uint64_t spread = a;
  spread = (spread | spread << 16) & 0x0000ffff0000ffff;
  spread = (spread | spread << 8) & 0x00ff00ff00ff00ff;
  spread = (spread | spread << 4) & 0x0f0f0f0f0f0f0f0f;
  spread = (spread | spread << 2) & 0x3333333333333333;
  spread = (spread | spread << 1) & 0x5555555555555555;
  return reduce(spread);
}

// Toggles many numbers in sketches that lie one after another: sketch places[i] gets numbers[i].
// Without places the first sketch gets all numbers.
struct Toggles {
  Element* sketches;
  std::size_t capacity;
  const std::uint32_t* places;  // may be null
  std::span<const Element> numbers;

  Element* sketch_of(std::size_t i) const {
    return places == nullptr ? sketches : sketches + places[i] * capacity;
  }
  Toggles from(std::size_t i) const {
    return {sketches, capacity, places == nullptr ? nullptr : places + i, numbers.subspan(i)};
  }
};

struct Kernel {
  std::string_view name;
  Product (*product)(Element a, Element b);
  // Adds every row, multiplied by its factor, to the sums. Rows are as long as `sums`, and lie one
  // after another.
  void (*add_rows)(std::span<Product> sums, const Element* rows, std::span<const Element> factors);
  // Returns the sum of a[i] * b[i].
  Product (*inner_product)(const Element* a, const Element* b, std::size_t size);
  // Adds x, x^3, x^5 and so on to the sketch of every number x.
  void (*toggle)(const Toggles& toggles);

  Element multiply(Element a, Element b) const { return reduce(product(a, b)); }
  Element inverse(Element a) const;  // REQUIRES: a != 0
};

std::span<const Kernel> kernels();  // those that this processor can run, the best one last
const Kernel& best_kernel();

}  // namespace semel::sync_internal::binary_field
