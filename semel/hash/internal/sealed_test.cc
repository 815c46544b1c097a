// The envelope: its contents come back, and every damage is reported.
#include "semel/hash/internal/sealed.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

namespace semel {
namespace {

constexpr Format kInner{"TIN", 1, "inner"};
constexpr Format kOuter{"TOU", 1, "outer"};

void write_nested(Sink out, const Bytes& first, const Bytes& second) {
  seal(out, kOuter, [&](Writer& w) {
    w.u8(7);
    seal(w.sink(), kInner, [&](Writer& inner) { inner.bytes(first); });
    seal(w.sink(), kInner, [&](Writer& inner) { inner.bytes(second); });
  });
}

Bytes rest_of(Reader& in) {
  Bytes bytes(in.rest());
  in.bytes(bytes);
  return bytes;
}

RC_GTEST_PROP(Sealed, GivesBackWhatItHolds, (const Bytes& first, const Bytes& second)) {
  Bytes bytes = {1, 2, 3};  // an encoding is appended
  write_nested(bytes, first, second);
  auto outer = open_sealed(ByteView(bytes).subspan(3), kOuter);
  RC_ASSERT(outer.has_value());
  RC_ASSERT(outer->u8() == 7);
  auto inner = open_sealed(*outer, kInner);
  RC_ASSERT(inner.has_value());
  RC_ASSERT(rest_of(*inner) == first);
  inner = open_sealed(*outer, kInner);
  RC_ASSERT(inner.has_value());
  RC_ASSERT(rest_of(*inner) == second);
  RC_ASSERT(outer->at_end());
}

RC_GTEST_PROP(Sealed, IsTheSameInPieces, (const Bytes& first, const Bytes& second)) {
  class Collect final : public Pieces {
   public:
    explicit Collect(std::span<std::uint8_t> buffer) : Pieces(buffer) {}
    Bytes all;

   private:
    void take(ByteView piece) override { all.insert(all.end(), piece.begin(), piece.end()); }
  };
  Bytes whole;
  write_nested(whole, first, second);
  for (const std::size_t size : {1, 7, 64}) {
    Bytes buffer(size);
    Collect pieces(buffer);
    write_nested(pieces, first, second);
    pieces.finish();
    RC_ASSERT(pieces.all == whole);
  }
  RC_ASSERT(measured([&](Sink out) { write_nested(out, first, second); }) == whole.size());
}

TEST(Sealed, TellsEveryDamage) {
  Bytes bytes;
  write_nested(bytes, {1, 2, 3}, {});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(open_sealed(ByteView(bytes).first(size), kOuter).error().code, Errc::truncated);
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Bytes damaged = bytes;
    damaged[at] ^= 1;
    EXPECT_FALSE(open_sealed(damaged, kOuter)) << at;
  }
  Bytes longer = bytes;
  longer.push_back(0);
  EXPECT_EQ(open_sealed(longer, kOuter).error().code, Errc::corrupt);
}

TEST(Sealed, NamesTheFormatInItsErrors) {
  Bytes bytes;
  write_nested(bytes, {}, {});
  EXPECT_EQ(open_sealed(bytes, kInner).error().code, Errc::unsupported);
  EXPECT_EQ(open_sealed(bytes, kInner).error().message(), "inner: these bytes are something else");
  constexpr Format kNext{"TOU", 2, "outer"};
  EXPECT_EQ(open_sealed(bytes, kNext).error().message(), "outer: version 1 is not known here");
  bytes.back() ^= 1;
  EXPECT_EQ(open_sealed(bytes, kOuter).error().message(), "outer: checksum");
  EXPECT_EQ(open_sealed({}, kOuter).error().message(), "outer: cut short");
}

}  // namespace
}  // namespace semel
