// Members and SiteView: the laws of merging, and bytes.
#include <gtest/gtest.h>

#include <initializer_list>

#include "semel/tally/internal/site_view.h"
#include "tests/support/allocation.h"
#include "tests/support/encoded.h"

namespace semel::tally {

using namespace internal;

namespace {

constexpr int kSites = 3;
constexpr int kStates = 3 * 3 * 3;  // each site is unknown, admitted or retired

Members members(int state) {
  Members made;
  for (SiteId site = 1; site <= kSites; ++site, state /= 3) {
    if (state % 3 == 1) made.admit(site);
    if (state % 3 == 2) made.retire(site);
  }
  return made;
}

// Returns a view such that a merge of two of them takes something from both.
SiteView view(int state) {
  SiteView made;
  made.members = members(state);
  made.group = state % 7 == 6 ? 1 : 0;
  for (SiteId site = 1; site <= kSites; ++site, state /= 3) {
    if (state % 3 == 1) continue;
    made.held.advance({site, static_cast<std::uint64_t>(1 + state / 2)});
    made.heads.set(site,
                   static_cast<std::uint64_t>(state % 2));  // other heads for equal numbers
  }
  return made;
}

template <class Type>
Type merged(Type into, const Type& from) {
  const Type before = into;
  const bool changed = into.merge(from);
  EXPECT_EQ(changed, into != before);
  return into;
}

template <class Type>
void expect_laws(Type (*make)(int)) {
  for (int i = 0; i < kStates; ++i) {
    const Type a = make(i);
    EXPECT_EQ(merged(a, a), a);
    EXPECT_EQ(merged(a, Type{}), a);
    for (int j = 0; j < kStates; ++j) {
      const Type b = make(j);
      const Type both = merged(a, b);
      EXPECT_EQ(both, merged(b, a));
      EXPECT_EQ(encoded(both), encoded(merged(b, a)));
      EXPECT_EQ(merged(both, a), both);  // nothing of either side is lost
      for (int k = 0; k < kStates; ++k) {
        EXPECT_EQ(merged(both, make(k)), merged(a, merged(b, make(k))));
      }
    }
  }
}

TEST(Members, MergeByTheLaws) { expect_laws(members); }
TEST(SiteView, MergesByTheLaws) { expect_laws(view); }

TEST(Members, AreAdmittedOnceAndRetiredOnce) {
  Members some;
  EXPECT_TRUE(some.admit(2));
  EXPECT_FALSE(some.admit(2));
  EXPECT_TRUE(some.active(2));
  EXPECT_TRUE(some.retire(2));
  EXPECT_FALSE(some.retire(2));
  EXPECT_FALSE(some.admit(2));
  EXPECT_TRUE(some.contains(2) && some.retired(2) && !some.active(2));
  EXPECT_TRUE(some.retire(1));  // a site that was never heard of
  EXPECT_TRUE(some.admit(3));
  EXPECT_EQ(some.active(), 1U);
  EXPECT_EQ(some.all().front(), (Members::Member{1, true}));
  EXPECT_FALSE(some.contains(4) || some.retired(4) || some.active(4));
}

TEST(Members, KnowWhetherAllThatOthersRetiredAreRetired) {
  for (int i = 0; i < kStates; ++i) {
    for (int j = 0; j < kStates; ++j) {
      bool expected = true;
      for (SiteId site = 1; site <= kSites; ++site) {
        if (members(j).retired(site) && !members(i).retired(site)) expected = false;
      }
      EXPECT_EQ(members(i).retired_all_of(members(j)), expected);
    }
  }
}

TEST(SiteView, DecodesWhatItEncoded) {
  for (int i = 0; i < kStates; ++i) {
    const Result<SiteView> decoded = SiteView::decode(encoded(view(i)));
    ASSERT_TRUE(decoded) << decoded.error().message();
    EXPECT_EQ(*decoded, view(i));
  }
}

TEST(SiteView, NeverTakesDamageForAnotherEncoding) {
  for (int i = 0; i < kStates; ++i) {
    const Bytes good = encoded(view(i));
    for (std::size_t at = 0; at < good.size(); ++at) {
      EXPECT_FALSE(SiteView::decode(ByteView(good).first(at)));
      for (int value = 0; value < 256; ++value) {
        Bytes bytes = good;
        bytes[at] = static_cast<std::uint8_t>(value);
        const LargestAllocation largest;
        const Result<SiteView> decoded = SiteView::decode(bytes);
        EXPECT_LE(largest.bytes(), 4 * bytes.size() + 64);
        if (decoded) {
          EXPECT_EQ(encoded(*decoded), bytes);
        }
      }
    }
    Bytes longer = good;
    longer.push_back(0);
    EXPECT_FALSE(SiteView::decode(longer));
  }
}

TEST(SiteView, RefusesMembersThatAreNotInOrder) {
  const auto decoded = [](std::initializer_list<SiteId> sites) {
    Bytes bytes(4);  // nothing is held
    Writer w(bytes);
    w.varint(sites.size());
    for (const SiteId site : sites) {
      w.u16(site);
      w.u8(0);
    }
    w.varint(0);  // no heads
    w.u64(0);
    return SiteView::decode(bytes);
  };
  EXPECT_TRUE(decoded({}));
  EXPECT_TRUE(decoded({0, 1, 65'535}));
  EXPECT_EQ(decoded({1, 0}).error().code, Errc::corrupt);
  EXPECT_EQ(decoded({1, 1}).error().code, Errc::corrupt);
}

TEST(SiteView, HasTheBytesOfItsDocument) {
  SiteView view;
  view.held.advance({1, 300});
  view.members.admit(1);
  view.members.retire(2);
  view.heads.set(1, 9);
  view.group = 7;
  EXPECT_EQ(encoded(view), (Bytes{1, 0, 0, 0, 0x2c, 0x01, 0, 0, 0, 0, 1, 0, 2, 1, 0, 0, 2, 0, 1,
                                  1, 1, 0, 9, 0,    0,    0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace semel::tally
