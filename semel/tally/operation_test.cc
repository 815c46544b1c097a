// Operation and OperationId: bytes, and ids of text.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "semel/core/limits.h"
#include "semel/tally/internal/logged_operation.h"
#include "tests/support/allocation.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel::tally {

using namespace internal;

namespace {

constexpr Dot kDot = {3, 7};

Operation operation(Operation::Kind kind, const OperationId& id, std::int64_t delta = 0) {
  Operation made{kDot, kind, id, "counter", delta, {}, 1'700'000'000'000, {}, 77};
  if (delta % 2 != 0) made.known.advance({5, 300});
  if (kind == Operation::Kind::add) return made;
  made.observed.advance({1, 300});
  made.observed.advance({3, Dot::kLastCounter});
  return made;
}

std::vector<Operation> operations() {
  std::vector<Operation> all;
  for (const OperationId& id :
       {OperationId::none(), OperationId::opaque(key(1)), OperationId::numbered(key(2), 0),
        OperationId::numbered(key(2), std::numeric_limits<std::uint64_t>::max())}) {
    for (const std::int64_t delta :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1},
          std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
      all.push_back(operation(Operation::Kind::add, id, delta));
    }
    all.push_back(operation(Operation::Kind::reset, id));
    all.push_back(operation(Operation::Kind::remove, id));
  }
  return all;
}

TEST(Operation, DecodesWhatItEncoded) {
  for (const Operation& operation : operations()) {
    const Result<Operation> decoded = Operation::decode(kDot, encoded(operation));
    ASSERT_TRUE(decoded) << decoded.error().message();
    EXPECT_EQ(*decoded, operation);
  }
}

TEST(Operation, NeverTakesDamageForAnotherEncoding) {
  for (const Operation& operation : operations()) {
    const Bytes good = encoded(operation);
    for (std::size_t at = 0; at < good.size(); ++at) {
      EXPECT_FALSE(Operation::decode(kDot, ByteView(good).first(at)));
      for (int value = 0; value < 256; ++value) {
        Bytes bytes = good;
        bytes[at] = static_cast<std::uint8_t>(value);
        const LargestAllocation largest;
        const Result<Operation> decoded = Operation::decode(kDot, bytes);
        EXPECT_LE(largest.bytes(), 2 * bytes.size() + 64);
        if (decoded) {
          EXPECT_EQ(encoded(*decoded), bytes);
        }
      }
    }
    Bytes longer = good;
    longer.push_back(0);
    EXPECT_FALSE(Operation::decode(kDot, longer));
  }
}

TEST(Operation, RefusesADeltaOfMoreThan64Bits) {
  for (const int128 beyond : {int128{std::numeric_limits<std::int64_t>::max()} + 1,
                              int128{std::numeric_limits<std::int64_t>::min()} - 1}) {
    Bytes bytes = {0, 0};  // add, without an id
    Writer w(bytes);
    w.text("counter");
    w.signed_varint(beyond);
    EXPECT_EQ(Operation::decode(kDot, bytes).error().code, Errc::corrupt);
  }
}

TEST(Operation, RefusesANameThatNoTableTakes) {
  Operation made = operation(Operation::Kind::add, {}, 1);
  made.counter.assign(limits::kCounterNameBytes, 'x');
  EXPECT_TRUE(Operation::decode(kDot, encoded(made)));
  made.counter.push_back('x');
  EXPECT_EQ(Operation::decode(kDot, encoded(made)).error().code, Errc::limit);
}

TEST(Operation, HasTheBytesOfItsDocument) {
  Operation added{kDot,
                  Operation::Kind::add,
                  OperationId::numbered({1, 2}, 300),
                  "x",
                  -5,
                  {},
                  5,
                  VersionVector{},
                  6};
  added.known.advance({3, 2});
  EXPECT_EQ(encoded(added),
            (Bytes{0,   2, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0xac, 0x02, 1,
                   'x', 9, 5, 0, 0, 0, 0, 0, 0, 0, 1, 3, 2, 6, 0, 0, 0, 0, 0,    0,    0}));
  Operation reset{kDot, Operation::Kind::reset, {}, "x", 0, {}};
  reset.observed.advance({3, 6});
  Bytes expected{1, 0, 1, 'x', 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 3, 0};
  expected.resize(expected.size() + 17);
  EXPECT_EQ(encoded(reset), expected);
}

TEST(OperationId, OfTextIsBounded) {
  const Hasher hasher = Hasher::fast(kTestSeed);
  const std::string longest(limits::kOperationIdBytes, 'i');
  const std::string longer = longest + 'i';
  EXPECT_EQ(*opaque_id(hasher, longest), OperationId::opaque(hasher(longest)));
  EXPECT_EQ(*numbered_id(hasher, longest, 7), OperationId::numbered(hasher(longest), 7));
  EXPECT_EQ(opaque_id(hasher, longer).error().code, Errc::limit);
  EXPECT_EQ(numbered_id(hasher, longer, 7).error().code, Errc::limit);
}

}  // namespace
}  // namespace semel::tally
