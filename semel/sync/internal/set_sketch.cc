#include "semel/sync/internal/set_sketch.h"

#include <algorithm>
#include <array>
#include <functional>

#include "semel/core/assert.h"
#include "semel/sync/internal/binary_field.h"

namespace semel::sync_internal {
namespace {

using binary_field::Element;
using binary_field::Kernel;
using binary_field::Product;
using binary_field::reduce;
using binary_field::square;

// Coefficients in rising order. The last one is not 0. The polynomial 0 has none.
using Polynomial = std::vector<Element>;

constexpr std::size_t kFieldBits = 32;

std::size_t degree(const Polynomial& p) { return p.size() - 1; }

void trim(Polynomial& p) {
  while (!p.empty() && p.back() == 0) p.pop_back();
}

void reduce_into(Polynomial& p, std::span<const Product> sums) {
  p.resize(sums.size());
  std::transform(sums.begin(), sums.end(), p.begin(), reduce);
}

// Solves y^2 + y = c for every c whose trace is 0. The solution is a linear function of c; these
// are its values for each bit. The trace of `one` is 1: docs/math/set_sketch.md, 'Quadratics'.
constexpr std::array<Element, kFieldBits> kHalfTraces = [] {
  const auto multiply = [](Element a, Element b) {
    Product product = 0;
    for (std::size_t bit = 0; bit < kFieldBits; ++bit) {
      if ((b >> bit & 1) != 0) product ^= Product{a} << bit;
    }
    return reduce(product);
  };
  const auto trace = [](Element a) {
    Element sum = 0;
    for (std::size_t i = 0; i < kFieldBits; ++i, a = square(a)) sum ^= a;
    return sum;
  };
  Element one = 1;
  while (trace(one) != 1) one <<= 1;
  std::array<Element, kFieldBits> table{};
  for (std::size_t bit = 0; bit < kFieldBits; ++bit) {
    Element power = Element{1} << bit;
    Element conjugate = one;
    Element conjugates_left = 1;  // sum of those after the present one; all sum to 1
    for (std::size_t i = 0; i + 1 < kFieldBits; ++i) {
      conjugates_left ^= conjugate;
      table[bit] ^= multiply(conjugates_left, power);
      power = square(power);
      conjugate = square(conjugate);
    }
  }
  return table;
}();

Element half_trace(Element c) {
  Element sum = 0;
  for (std::size_t bit = 0; bit < kFieldBits; ++bit) {
    sum ^= kHalfTraces[bit] & (Element{0} - (c >> bit & 1));
  }
  return sum;
}

// The steps of decode(). They share memory: a step no longer needs its data when the next begins.
class Decoder {
 public:
  explicit Decoder(const Kernel& kernel) : kernel_(kernel) {}

  // Returns the monic polynomial of least degree L whose roots r give all 2t power sums as the sum
  // of c_r * r^k: docs/math/set_sketch.md, 'Locator'. Empty if L > t, or if a root is 0.
  Polynomial locator(std::span<const Element> syndromes);

  // Returns the roots in no order. Empty unless all lie in the field and differ. REQUIRES: p is
  // monic, of degree 1 or more.
  std::vector<Element> roots(const Polynomial& p);

 private:
  // Adds: sums_[first + i] += factor * row[i].
  void add_row(std::size_t first, std::span<const Element> row, Element factor) {
    kernel_.add_rows(std::span(sums_).subspan(first, row.size()), row.data(), {&factor, 1});
  }
  void fill_powers(const Polynomial& p, std::size_t count);
  bool powers_return_to_x(std::size_t n) const;
  void find_roots(const Polynomial& p, std::size_t first_bit, std::vector<Element>& found);
  void part_roots(const Polynomial& p, std::size_t first_bit, std::vector<Element>& found);
  std::array<Element, 2> roots_of_quadratic(const Polynomial& p) const;
  Polynomial trace(const Polynomial& p, Element factor);
  void make_monic(Polynomial& p) const;
  void take_remainder(Polynomial& a, const Polynomial& b);
  Polynomial common_divisor(Polynomial a, Polynomial b);
  Polynomial quotient(const Polynomial& a, const Polynomial& b);

  const Kernel& kernel_;
  std::vector<Product> sums_;
  std::vector<Element> factors_;
  std::vector<Element> even_rows_;  // x^k modulo p, for the even k from the degree n to 2n - 2
  std::vector<Element> powers_;     // x^(2^i) modulo p, for i = 0, 1, 2, ...
};

// Runs the Berlekamp-Massey algorithm without divisions. Every even power sum is the square of
// another, so the discrepancy of every second step is 0. These steps are skipped.
Polynomial Decoder::locator(std::span<const Element> syndromes) {
  const std::size_t capacity = syndromes.size();
  const std::size_t sums = 2 * capacity;
  std::vector<Element> falling(sums);  // power sum k at sums - k
  for (std::size_t k = 1; k <= sums; ++k) {
    falling[sums - k] = k % 2 != 0 ? syndromes[k / 2] : square(falling[sums - k / 2]);
  }
  Polynomial current = {1}, previous = {1};
  Element previous_discrepancy = 1;
  std::size_t length = 0, shift = 1;
  for (std::size_t n = 0; n < sums; n += 2) {
    const Element discrepancy = reduce(
        kernel_.inner_product(current.data(), falling.data() + (sums - 1 - n), current.size()));
    if (discrepancy == 0) {
      shift += 2;
      continue;
    }
    sums_.assign(std::max(current.size(), previous.size() + shift), 0);
    add_row(0, current, previous_discrepancy);
    add_row(shift, previous, discrepancy);
    if (2 * length <= n) {
      length = n + 1 - length;
      if (length > capacity) return {};
      previous.swap(current);
      previous_discrepancy = discrepancy;
      shift = 2;
    } else {
      shift += 2;
    }
    reduce_into(current, sums_);
    trim(current);
  }
  if (degree(current) != length) return {};
  std::reverse(current.begin(), current.end());  // its roots are the inverses
  make_monic(current);
  return current;
}

void Decoder::make_monic(Polynomial& p) const {
  const Element factor = kernel_.inverse(p.back());
  for (Element& coefficient : p) coefficient = kernel_.multiply(coefficient, factor);
}

// Squares a row: the square of a polynomial has the squares of its coefficients at the even powers.
// Powers from n on are replaced by their remainders.
void Decoder::fill_powers(const Polynomial& p, std::size_t count) {
  const std::size_t n = degree(p);
  even_rows_.resize((n / 2) * n);
  Polynomial row(p.begin(), p.end() - 1);  // x^n
  auto next_row = even_rows_.begin();
  for (std::size_t k = n; k <= 2 * n - 2; ++k) {
    if (k % 2 == 0) next_row = std::copy(row.begin(), row.end(), next_row);
    const Element top = row.back();
    std::rotate(row.begin(), row.end() - 1, row.end());
    row.front() = 0;
    sums_.assign(row.begin(), row.end());
    add_row(0, std::span(p).first(n), top);
    reduce_into(row, sums_);
  }

  powers_.assign(count * n, 0);
  powers_[1] = 1;
  for (std::size_t i = 1; i < count; ++i) {
    const Element* const power = powers_.data() + (i - 1) * n;
    sums_.assign(n, 0);
    for (std::size_t k = 0; 2 * k < n; ++k) sums_[2 * k] = square(power[k]);
    factors_.resize(n / 2);
    std::transform(power + (n + 1) / 2, power + n, factors_.begin(), square);
    kernel_.add_rows(sums_, even_rows_.data(), factors_);
    std::transform(sums_.begin(), sums_.end(), powers_.begin() + static_cast<std::ptrdiff_t>(i * n),
                   reduce);
  }
}

// x^(2^32) - x is the product of (x - r) over all r of the field. So p divides it if and only if
// all roots of p are in the field and differ.
bool Decoder::powers_return_to_x(std::size_t n) const {
  const std::span all(powers_);
  return std::ranges::equal(all.first(n), all.subspan(kFieldBits * n));
}

// Returns the trace of factor * x modulo p, from powers_. It is 0 at half of the roots, and 1 at
// the others.
Polynomial Decoder::trace(const Polynomial& p, Element factor) {
  const std::size_t n = degree(p);
  sums_.assign(n, 0);
  factors_.resize(kFieldBits);
  for (Element& conjugate : factors_) {
    conjugate = factor;
    factor = square(factor);
  }
  kernel_.add_rows(sums_, powers_.data(), factors_);
  Polynomial result;
  reduce_into(result, sums_);
  trim(result);
  return result;
}

// The remainder is correct up to a factor. REQUIRES: b is not 0.
void Decoder::take_remainder(Polynomial& a, const Polynomial& b) {
  while (a.size() >= b.size()) {
    sums_.assign(a.size() - 1, 0);
    add_row(0, std::span(a).first(degree(a)), b.back());
    add_row(a.size() - b.size(), std::span(b).first(degree(b)), a.back());
    reduce_into(a, sums_);
    trim(a);
  }
}

// The divisor is correct up to a factor.
Polynomial Decoder::common_divisor(Polynomial a, Polynomial b) {
  while (!b.empty()) {
    take_remainder(a, b);
    a.swap(b);
  }
  return a;
}

// REQUIRES: b is monic and divides a.
Polynomial Decoder::quotient(const Polynomial& a, const Polynomial& b) {
  Polynomial result(a.size() - degree(b));
  sums_.assign(a.begin(), a.end());
  for (std::size_t i = result.size(); i-- > 0;) {
    result[i] = reduce(sums_[i + degree(b)]);
    add_row(i, std::span(b).first(degree(b)), result[i]);
  }
  return result;
}

// Substitutes x = b y, which turns x^2 + b x + c into y^2 + y + c / b^2. REQUIRES: two roots in the
// field.
std::array<Element, 2> Decoder::roots_of_quadratic(const Polynomial& p) const {
  const Element b_inverse = kernel_.inverse(p[1]);
  const Element root =
      kernel_.multiply(p[1], half_trace(kernel_.multiply(p[0], square(b_inverse))));
  return {root, root ^ p[1]};
}

// REQUIRES: all roots are in the field and differ, and for bits before first_bit their traces are
// equal.
void Decoder::find_roots(const Polynomial& p, std::size_t first_bit, std::vector<Element>& found) {
  if (degree(p) == 1) return found.push_back(p[0]);
  if (degree(p) == 2) {
    const auto both = roots_of_quadratic(p);
    found.insert(found.end(), both.begin(), both.end());
    return;
  }
  fill_powers(p, kFieldBits);
  part_roots(p, first_bit, found);
}

// Two different roots differ in the trace of z^bit * x for some bit. So 32 bits separate all roots.
// REQUIRES: as above, and powers_ are those of p.
void Decoder::part_roots(const Polynomial& p, std::size_t first_bit, std::vector<Element>& found) {
  for (std::size_t bit = first_bit; bit < kFieldBits; ++bit) {
    Polynomial part = common_divisor(p, trace(p, Element{1} << bit));
    if (part.size() == 1 || part.size() == p.size()) continue;
    make_monic(part);
    const Polynomial rest = quotient(p, part);
    find_roots(part, bit + 1, found);
    return find_roots(rest, bit + 1, found);
  }
  SEMEL_ASSERT(false);
}

std::vector<Element> Decoder::roots(const Polynomial& p) {
  if (degree(p) == 1) return {p[0]};
  fill_powers(p, kFieldBits + 1);
  std::vector<Element> found;
  if (powers_return_to_x(degree(p))) part_roots(p, 0, found);
  return found;
}

}  // namespace

SetSketch::SetSketch(std::uint32_t capacity) : syndromes_(capacity) {
  SEMEL_ASSERT(capacity >= 1 && capacity <= kMostCapacity);
}

SetSketch SetSketch::of_bytes(ByteView bytes) {
  SEMEL_ASSERT(bytes.size() % 4 == 0);
  SetSketch sketch(static_cast<std::uint32_t>(bytes.size() / 4));
  Reader reader(bytes);
  for (std::uint32_t& syndrome : sketch.syndromes_) syndrome = reader.u32();
  return sketch;
}

void SetSketch::toggle(std::span<std::uint32_t> syndromes, std::uint32_t number) {
  toggle_many(syndromes, {&number, 1});
}

void SetSketch::toggle_many(std::span<std::uint32_t> syndromes,
                            std::span<const std::uint32_t> numbers) {
  binary_field::best_kernel().toggle({syndromes.data(), syndromes.size(), nullptr, numbers});
}

void SetSketch::toggle_many(std::span<std::uint32_t> sketches, std::uint32_t capacity,
                            std::span<const std::uint32_t> places,
                            std::span<const std::uint32_t> numbers) {
  SEMEL_ASSERT(places.size() == numbers.size());
  binary_field::best_kernel().toggle({sketches.data(), capacity, places.data(), numbers});
}

SetSketch& SetSketch::operator^=(const SetSketch& other) {
  SEMEL_ASSERT(capacity() == other.capacity());
  std::transform(syndromes_.begin(), syndromes_.end(), other.syndromes_.begin(), syndromes_.begin(),
                 std::bit_xor());
  return *this;
}

Result<std::vector<std::uint32_t>> SetSketch::decode(std::span<const std::uint32_t> syndromes) {
  SEMEL_ASSERT(!syndromes.empty() && syndromes.size() <= kMostCapacity);
  std::vector<std::uint32_t> numbers;
  if (std::all_of(syndromes.begin(), syndromes.end(), [](auto s) { return s == 0; })) {
    return numbers;
  }
  Decoder decoder(binary_field::best_kernel());
  const Polynomial locator = decoder.locator(syndromes);
  if (!locator.empty()) numbers = decoder.roots(locator);
  if (numbers.empty())
    return Error{Errc::limit, "a set sketch of more numbers than it has room for"};
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace semel::sync_internal
