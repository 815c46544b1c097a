#include "cli/digest_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/keys.h"

namespace semel::cli {
namespace {

// Halves from a few values only: they share their home, wrap around the end, and zero is among them.
rc::Gen<Digest> crowded_digest() {
  const auto half = rc::gen::element<std::uint64_t>(0, 1, 2, 1022, 1023, 1024, ~std::uint64_t{0});
  return rc::gen::build<Digest>(rc::gen::set(&Digest::lo, half), rc::gen::set(&Digest::hi, half));
}

RC_GTEST_PROP(DigestSet, AgreesWithAnExactTwinOnCrowdedDigests, ()) {
  DigestSet set;
  std::set<std::pair<std::uint64_t, std::uint64_t>> twin;
  const auto batches = *rc::gen::container<std::vector<std::vector<Digest>>>(
      rc::gen::container<std::vector<Digest>>(crowded_digest()));
  for (const std::vector<Digest>& batch : batches) {
    Answers added(batch.size());
    set.add(batch, added.span());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      RC_ASSERT(added[i] == twin.emplace(batch[i].lo, batch[i].hi).second);
    }
    RC_ASSERT(set.keys() == twin.size());
  }
}

TEST(DigestSet, RemembersThroughGrowth) {
  DigestSet set;
  std::vector<Digest> all = keys(0, 200'000);
  all[7] = {0, 0};  // kept apart from the others
  for (const bool is_new : {true, false}) {
    for (std::size_t start = 0; start < all.size(); start += 1000) {
      Answers added(1000);
      set.add(std::span(all).subspan(start, 1000), added.span());
      EXPECT_EQ(added.count(), is_new ? 1000u : 0u);
    }
    EXPECT_EQ(set.keys(), all.size());
  }
}

TEST(DigestSet, TakesTheMemoryItSays) {
  DigestSet set;
  const std::vector<Digest> all = keys(0, 100'000);
  for (std::size_t n = 1; n <= all.size(); ++n) {
    bool added = false;
    set.add({&all[n - 1], 1}, {&added, 1});
    const double per_key = static_cast<double>(set.bytes()) / static_cast<double>(n);
    if (n > 1000) {
      ASSERT_GE(per_key, 21) << n;
      ASSERT_LE(per_key, 43) << n;
    }
  }
}

}  // namespace
}  // namespace semel::cli
