// Figure: bits per key for a wanted error, for every structure, and the least that any could need.
//
// Prints TSV, computed from the shapes for ten million keys. A set that never forgets a key and
// errs with probability e needs log2(1 / e) bits for each.
#include <cmath>
#include <cstdio>

#include "semel/filter/bloom_filter.h"
#include "semel/filter/cuckoo_filter.h"

namespace semel::bench {
namespace {

constexpr std::uint64_t kKeys = 10'000'000;

void print_per_key(std::uint64_t bits) {
  std::printf("\t%.3f", static_cast<double>(bits) / static_cast<double>(kKeys));
}

void print_row(double error) {
  std::printf("%.3e\t%.3f", error, -std::log2(error));
  for (const BloomLayout layout :
       {BloomLayout::plain, BloomLayout::blocked, BloomLayout::blocked2, BloomLayout::blocked3}) {
    print_per_key(BloomShape::for_goal({.keys = kKeys, .fpr = error, .layout = layout})->bits);
  }
  for (const std::uint32_t size : {4u, 8u}) {
    const auto shape = CuckooShape::for_goal({.keys = kKeys, .fpr = error, .bucket_size = size});
    print_per_key(shape->slots() * shape->fingerprint_bits);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace semel::bench

int main() {
  std::printf("error\tlimit\tplain\tblocked\tblocked2\tblocked3\tcuckoo_4\tcuckoo_8\n");
  for (int step = 10; step <= 70; ++step) semel::bench::print_row(std::pow(10, -step / 10.0));
}
