#include "semel/papers/forgetful_bloom_math.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace semel::papers {
namespace {

// A lane of 500 positions and 2 probes with n ids.
double alone(double n) { return std::pow(1 - std::exp(-2 * n / 500), 2); }

TEST(ForgetfulBloomMath, Equation3IsAsThePaperHasIt) {
  const LaneShape shape{BloomLayout::plain, 4, 2, 500};
  // Lanes hold 10 + 20, 20 + 30, 30 + 40 and, in the future lane, 40 ids.
  const std::array<double, 4> ids = {10, 20, 30, 40};
  const double none =
      (1 - alone(40)) * (1 - alone(30) * alone(50)) * (1 - alone(50) * alone(70)) * (1 - alone(30));
  EXPECT_NEAR(equation_3(shape, ids), 1 - none, 1e-12);
}

}  // namespace
}  // namespace semel::papers
