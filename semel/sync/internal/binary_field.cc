#include "semel/sync/internal/binary_field.h"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#define SEMEL_PCLMUL [[gnu::target("avx,pclmul")]]
#define SEMEL_VPCLMUL [[gnu::target("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul")]]
#endif

// The intrinsics of g++ 12 read their own variables before they set them.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace semel::sync_internal::binary_field {
namespace {

// The products of one element with every number of four bits.
class Multiples {
 public:
  explicit Multiples(Element factor) {
    for (std::size_t i = 1; i < table_.size(); ++i) {
      table_[i] = table_[i / 2] << 1 ^ (i % 2 != 0 ? factor : 0);
    }
  }
  Product operator*(Element other) const {
    Product product = 0;
    for (int shift = 28; shift >= 0; shift -= 4) {
      product = product << 4 ^ table_[other >> shift & 15];
    }
    return product;
  }

 private:
  std::array<Product, 16> table_{};
};

Product product_portable(Element a, Element b) { return Multiples(a) * b; }

void add_rows_portable(std::span<Product> sums, const Element* rows,
                       std::span<const Element> factors) {
  for (const Element factor : factors) {
    const Multiples multiples(factor);
    for (Product& sum : sums) sum ^= multiples * *rows++;
  }
}

Product inner_product_portable(const Element* a, const Element* b, std::size_t size) {
  Product sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum ^= product_portable(a[i], b[i]);
  return sum;
}

void toggle_portable(const Toggles& toggles) {
  for (std::size_t i = 0; i < toggles.numbers.size(); ++i) {
    Element power = toggles.numbers[i];
    const Multiples step(square(power));
    Element* const sketch = toggles.sketch_of(i);
    for (std::size_t k = 0; k < toggles.capacity; ++k) {
      sketch[k] ^= power;
      power = reduce(step * power);
    }
  }
}

constexpr Kernel kPortable = {"portable", product_portable, add_rows_portable,
                              inner_product_portable, toggle_portable};

#if defined(__x86_64__)

// Loads two elements into a register, each into the lower half of 64 bits.
SEMEL_PCLMUL inline __m128i load_two(const Element* row) {
  return _mm_cvtepu32_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row)));
}

SEMEL_PCLMUL inline __m128i products(__m128i a, __m128i b) {
  return _mm_unpacklo_epi64(_mm_clmulepi64_si128(a, b, 0x00), _mm_clmulepi64_si128(a, b, 0x11));
}

SEMEL_PCLMUL inline __m128i reduced(__m128i product) {
  const __m128i upper = _mm_srli_epi64(product, 32);
  const __m128i folded =
      _mm_xor_si128(_mm_xor_si128(upper, _mm_srli_epi64(upper, 25)),
                    _mm_xor_si128(_mm_srli_epi64(upper, 29), _mm_srli_epi64(upper, 30)));
  const __m128i times =
      _mm_xor_si128(_mm_xor_si128(folded, _mm_slli_epi64(folded, 2)),
                    _mm_xor_si128(_mm_slli_epi64(folded, 3), _mm_slli_epi64(folded, 7)));
  return _mm_and_si128(_mm_xor_si128(product, times), _mm_set1_epi64x(0xffffffff));
}

SEMEL_PCLMUL Product product_pclmul(Element a, Element b) {
  return static_cast<Product>(
      _mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi64_si128(a), _mm_cvtsi64_si128(b), 0x00)));
}

// Works column by column, so the sums stay in registers.
SEMEL_PCLMUL void add_rows_pclmul(std::span<Product> sums, const Element* rows,
                                  std::span<const Element> factors) {
  const std::size_t size = sums.size();
  std::size_t column = 0;
  for (; column + 2 <= size; column += 2) {
    __m128i first = _mm_setzero_si128(), second = _mm_setzero_si128();
    const Element* row = rows + column;
    for (const Element factor : factors) {
      const __m128i two = load_two(row);
      first = _mm_xor_si128(first, _mm_clmulepi64_si128(two, _mm_cvtsi64_si128(factor), 0x00));
      second = _mm_xor_si128(second, _mm_clmulepi64_si128(two, _mm_cvtsi64_si128(factor), 0x01));
      row += size;
    }
    auto* const to = reinterpret_cast<__m128i*>(sums.data() + column);
    _mm_storeu_si128(to, _mm_xor_si128(_mm_loadu_si128(to), _mm_unpacklo_epi64(first, second)));
  }
  if (column == size) return;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    sums[column] ^= product_pclmul(rows[i * size + column], factors[i]);
  }
}

SEMEL_PCLMUL Product inner_product_pclmul(const Element* a, const Element* b, std::size_t size) {
  __m128i sums = _mm_setzero_si128();  // products have 63 bits: the upper half stays empty
  std::size_t i = 0;
  for (; i + 2 <= size; i += 2) {
    const __m128i two_a = load_two(a + i);
    const __m128i two_b = load_two(b + i);
    sums = _mm_xor_si128(sums, _mm_clmulepi64_si128(two_a, two_b, 0x00));
    sums = _mm_xor_si128(sums, _mm_clmulepi64_si128(two_a, two_b, 0x11));
  }
  const auto sum = static_cast<Product>(_mm_cvtsi128_si64(sums));
  return i < size ? sum ^ product_pclmul(a[i], b[i]) : sum;
}

// Adds the first `size` powers of a row to a sketch. The compiler knows the size of a whole row.
template <std::size_t kPowers>
[[gnu::always_inline]] inline void add_powers(Element* sketch,
                                              const std::array<Element, kPowers>& row,
                                              std::size_t size) {
  if (size == kPowers) {
    for (std::size_t k = 0; k < kPowers; ++k) sketch[k] ^= row[k];
  } else {
    for (std::size_t k = 0; k < size; ++k) sketch[k] ^= row[k];
  }
}

// Takes eight numbers at a time in four registers, so that a multiplication does not wait for the
// one before. Two powers share 64 bits, and four are stored at once for each number.
SEMEL_PCLMUL void toggle_pclmul(const Toggles& toggles) {
  constexpr std::size_t kNumbers = 8, kRegisters = 4, kPowers = 4;
  for (std::size_t first = 0; first < toggles.numbers.size(); first += kNumbers) {
    const std::size_t count = std::min(kNumbers, toggles.numbers.size() - first);
    std::array<Element, kNumbers> numbers{};  // a number 0 has powers 0
    std::copy_n(toggles.numbers.data() + first, count, numbers.begin());
    __m128i power[kRegisters], step[kRegisters];
    for (std::size_t r = 0; r < kRegisters; ++r) {
      power[r] = load_two(numbers.data() + 2 * r);
      step[r] = reduced(products(power[r], power[r]));
    }
    for (std::size_t k = 0; k < toggles.capacity; k += kPowers) {
      __m128i powers[kPowers][kRegisters];
      for (auto& four : powers) {
        for (std::size_t r = 0; r < kRegisters; ++r) {
          four[r] = power[r];
          power[r] = reduced(products(power[r], step[r]));
        }
      }
      alignas(16) std::array<std::array<Element, kPowers>, kNumbers> rows;
      for (std::size_t r = 0; r < kRegisters; ++r) {
        const __m128i low = _mm_or_si128(powers[0][r], _mm_slli_epi64(powers[1][r], 32));
        const __m128i high = _mm_or_si128(powers[2][r], _mm_slli_epi64(powers[3][r], 32));
        _mm_store_si128(reinterpret_cast<__m128i*>(rows[2 * r].data()),
                        _mm_unpacklo_epi64(low, high));
        _mm_store_si128(reinterpret_cast<__m128i*>(rows[2 * r + 1].data()),
                        _mm_unpackhi_epi64(low, high));
      }
      const std::size_t left = std::min(kPowers, toggles.capacity - k);
      for (std::size_t n = 0; n < count; ++n) {
        add_powers(toggles.sketch_of(first + n) + k, rows[n], left);
      }
    }
  }
}

constexpr Kernel kPclmul = {"pclmul", product_pclmul, add_rows_pclmul, inner_product_pclmul,
                            toggle_pclmul};

// Loads eight elements into a register, each into the lower half of 64 bits.
SEMEL_VPCLMUL inline __m512i products(__m512i a, __m512i b) {
  return _mm512_unpacklo_epi64(_mm512_clmulepi64_epi128(a, b, 0x00),
                               _mm512_clmulepi64_epi128(a, b, 0x11));
}

SEMEL_VPCLMUL inline __m512i sum_of(__m512i a, __m512i b, __m512i c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

SEMEL_VPCLMUL inline __m512i reduced(__m512i product) {
  const __m512i upper = _mm512_srli_epi64(product, 32);
  const __m512i folded =
      _mm512_xor_si512(upper, sum_of(_mm512_srli_epi64(upper, 25), _mm512_srli_epi64(upper, 29),
                                     _mm512_srli_epi64(upper, 30)));
  const __m512i times = sum_of(_mm512_slli_epi64(folded, 2), _mm512_slli_epi64(folded, 3),
                               _mm512_slli_epi64(folded, 7));
  return _mm512_and_si512(sum_of(product, folded, times), _mm512_set1_epi64(0xffffffff));
}

SEMEL_VPCLMUL void add_rows_vpclmul(std::span<Product> sums, const Element* rows,
                                    std::span<const Element> factors) {
  const std::size_t size = sums.size();
  for (std::size_t column = 0; column < size; column += 8) {
    const auto inside =
        static_cast<__mmask8>(0xff >> (8 - std::min<std::size_t>(8, size - column)));
    __m512i even = _mm512_setzero_si512(), odd = _mm512_setzero_si512();
    const Element* row = rows + column;
    for (const Element factor : factors) {
      const __m512i eight = _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(inside, row));
      const __m512i factors_of_eight = _mm512_set1_epi64(factor);
      even = _mm512_xor_si512(even, _mm512_clmulepi64_epi128(eight, factors_of_eight, 0x00));
      odd = _mm512_xor_si512(odd, _mm512_clmulepi64_epi128(eight, factors_of_eight, 0x11));
      row += size;
    }
    Product* const to = sums.data() + column;
    const __m512i before = _mm512_maskz_loadu_epi64(inside, to);
    _mm512_mask_storeu_epi64(to, inside,
                             _mm512_xor_si512(before, _mm512_unpacklo_epi64(even, odd)));
  }
}

// Works like toggle_pclmul(), with 32 numbers at a time and eight powers stored for each. For up to
// 16 numbers the narrow registers are as fast.
SEMEL_VPCLMUL void toggle_vpclmul(const Toggles& toggles) {
  constexpr std::size_t kNumbers = 32, kRegisters = 4, kPowers = 8;
  for (std::size_t first = 0; first < toggles.numbers.size(); first += kNumbers) {
    const std::size_t count = std::min(kNumbers, toggles.numbers.size() - first);
    if (count <= kNumbers / 2) return toggle_pclmul(toggles.from(first));
    std::array<Element, kNumbers> numbers{};
    std::copy_n(toggles.numbers.data() + first, count, numbers.begin());
    __m512i power[kRegisters], step[kRegisters];
    for (std::size_t r = 0; r < kRegisters; ++r) {
      power[r] = _mm512_cvtepu32_epi64(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers.data() + 8 * r)));
      step[r] = reduced(products(power[r], power[r]));
    }
    for (std::size_t k = 0; k < toggles.capacity; k += kPowers) {
      __m512i pairs[kPowers / 2][kRegisters];
      for (auto& pair : pairs) {
        for (std::size_t r = 0; r < kRegisters; ++r) {
          const __m512i next = reduced(products(power[r], step[r]));
          pair[r] = _mm512_or_si512(power[r], _mm512_slli_epi64(next, 32));
          power[r] = reduced(products(next, step[r]));
        }
      }
      // Each step stores two numbers of a register: 0 and 2, 4 and 6, then 1 and 3, 5 and 7. All
      // four pairs of powers of the first number come before those of the second.
      alignas(64) std::array<std::array<Element, kPowers>, kNumbers> rows;
      const __m512i halves_of_first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
      const __m512i halves_of_last = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
      for (std::size_t r = 0; r < kRegisters; ++r) {
        const __m512i even_low = _mm512_unpacklo_epi64(pairs[0][r], pairs[1][r]);
        const __m512i even_high = _mm512_unpacklo_epi64(pairs[2][r], pairs[3][r]);
        const __m512i odd_low = _mm512_unpackhi_epi64(pairs[0][r], pairs[1][r]);
        const __m512i odd_high = _mm512_unpackhi_epi64(pairs[2][r], pairs[3][r]);
        auto* const row = rows[8 * r].data();
        _mm512_store_si512(row, _mm512_permutex2var_epi64(even_low, halves_of_first, even_high));
        _mm512_store_si512(row + 16,
                           _mm512_permutex2var_epi64(even_low, halves_of_last, even_high));
        _mm512_store_si512(row + 32, _mm512_permutex2var_epi64(odd_low, halves_of_first, odd_high));
        _mm512_store_si512(row + 48, _mm512_permutex2var_epi64(odd_low, halves_of_last, odd_high));
      }
      const std::size_t left = std::min(kPowers, toggles.capacity - k);
      for (std::size_t n = 0; n < count; ++n) {
        const std::size_t row = n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
        add_powers(toggles.sketch_of(first + n) + k, rows[row], left);
      }
    }
  }
}

constexpr Kernel kVpclmul = {"vpclmul", product_pclmul, add_rows_vpclmul, inner_product_pclmul,
                             toggle_vpclmul};

constexpr std::array kKernels = {kPortable, kPclmul, kVpclmul};

std::size_t count_kernels() {
  if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("avx")) return 1;
  const bool wide = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("vpclmulqdq");
  return wide ? 3 : 2;
}

#else

constexpr std::array kKernels = {kPortable};

std::size_t count_kernels() { return 1; }

#endif

}  // namespace

// Computes a^(2^32 - 2): finds a^(2^n - 1) for n = 1, 2, 4, 8, 16, 24, 28, 30, 31, and squares the
// last.
Element Kernel::inverse(Element a) const {
  const auto raised = [](Element base, int squarings) {
    for (int i = 0; i < squarings; ++i) base = square(base);
    return base;
  };
  const Element a2 = multiply(raised(a, 1), a);
  const Element a4 = multiply(raised(a2, 2), a2);
  const Element a8 = multiply(raised(a4, 4), a4);
  const Element a16 = multiply(raised(a8, 8), a8);
  const Element a24 = multiply(raised(a16, 8), a8);
  const Element a28 = multiply(raised(a24, 4), a4);
  const Element a30 = multiply(raised(a28, 2), a2);
  return square(multiply(square(a30), a));
}

std::span<const Kernel> kernels() {
  static const std::size_t kCount = count_kernels();
  return std::span(kKernels).first(kCount);
}

const Kernel& best_kernel() { return kernels().back(); }

}  // namespace semel::sync_internal::binary_field
