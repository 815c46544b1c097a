// An exact twin of every approximate set. RapidCheck drives both with the same random history, and
// the structure may differ from the twin only where its contract allows.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <optional>
#include <unordered_map>

#include "tests/support/keys.h"

namespace semel {

// A TwinCase gives: `Type` with contains, one by one and batched; `static Type make()`, small
// enough to collide and to fill up; `static std::optional<bool> add(Type&, Digest)`: nothing if it
// was refused as full, else whether the key is certainly new (true where the type cannot tell);
// and, if keys can be removed, `static bool remove(Type&, Digest)`.
template <class TwinCase>
class SetTwin : public ::testing::Test {};

TYPED_TEST_SUITE_P(SetTwin);

TYPED_TEST_P(SetTwin, AgreesWithAnExactSetThroughAnyHistory) {
  const bool ok = rc::check([] {
    auto structure = TypeParam::make();
    std::unordered_map<std::uint64_t, int> twin;  // how often each key is inside
    constexpr bool kRemoves = requires { TypeParam::remove(structure, Digest{}); };

    struct Step {
      bool removes;
      std::uint64_t number;
    };
    const auto history = *rc::gen::container<std::vector<Step>>(
        rc::gen::construct<Step>(rc::gen::arbitrary<bool>(), rc::gen::inRange(0, 40)));
    for (const Step& step : history) {
      const Digest digest = key(step.number);
      int& inside = twin[step.number];
      if (kRemoves && step.removes) {
        if constexpr (kRemoves) {
          if (inside == 0) continue;  // removing what is not inside is outside the contract
          RC_ASSERT(TypeParam::remove(structure, digest));
          --inside;
        }
      } else {
        const auto before = structure;
        const std::optional<bool> added = TypeParam::add(structure, digest);
        if (!added) {
          RC_ASSERT(structure == before);  // refused, and unchanged
        } else {
          if constexpr (!kRemoves) RC_ASSERT(!(*added && inside > 0));  // 'new' is said only once
          ++inside;
        }
      }
    }

    const std::vector<Digest> all = keys(0, 40);
    Answers found(all.size());
    structure.contains(all, found.span());
    for (std::uint64_t number = 0; number < all.size(); ++number) {
      RC_ASSERT(found[number] == structure.contains(all[number]));
      if (twin[number] > 0) RC_ASSERT(found[number]);
    }
  });
  EXPECT_TRUE(ok);
}

REGISTER_TYPED_TEST_SUITE_P(SetTwin, AgreesWithAnExactSetThroughAnyHistory);

}  // namespace semel
