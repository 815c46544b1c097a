// Entries: the order of keys, what is no key, and the laws of the join.
#include "semel/tally/internal/entries.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "semel/tally/operation.h"
#include "tests/golden/golden.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel::tally::internal {
namespace {

constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();

// Returns numbers in which each byte matters once.
std::vector<std::uint64_t> numbers() {
  std::vector<std::uint64_t> all = {0};
  for (int shift = 0; shift < 64; shift += 8) {
    all.push_back(std::uint64_t{1} << shift);
    all.push_back(std::uint64_t{0xff} << shift);
  }
  all.push_back(kLast);
  return all;
}

TEST(Entries, KeysAreInTheOrderOfTheirNumbers) {
  for (const std::uint64_t a : numbers()) {
    for (const std::uint64_t b : numbers()) {
      const Dot one = Dot::unpacked(a);
      const Dot other = Dot::unpacked(b);
      EXPECT_EQ(operation_key(one) < operation_key(other), one < other);
      EXPECT_EQ(view_key(one.site) < view_key(other.site), one.site < other.site);
      const auto early = static_cast<TimeMs>(a);
      const auto late = static_cast<TimeMs>(b);
      EXPECT_EQ(journal_key(early, 9) < journal_key(late, 9), early < late);
      EXPECT_EQ(journal_key(early, a) < journal_key(early, b), a < b);
    }
  }
  EXPECT_LT(journal_key(-1, kLast), journal_key(0, 0));
}

TEST(Entries, KeysTellWhatTheyAreOf) {
  for (const std::uint64_t number : numbers()) {
    const Dot dot = Dot::unpacked(number | 1);
    EXPECT_EQ(dot_of_key(operation_key(dot)), dot);
    EXPECT_EQ(site_of_key(view_key(dot.site)), dot.site);
    const Digest client{number, ~number};
    EXPECT_EQ(client_of_key(forgotten_key(client)), client);
    const auto journal = journal_of_key(journal_key(static_cast<TimeMs>(number), ~number));
    ASSERT_TRUE(journal);
    EXPECT_EQ(journal->at_ms, static_cast<TimeMs>(number));
    EXPECT_EQ(journal->number, ~number);
  }
}

TEST(Entries, NoKeyIsTakenForOneOfAnotherKind) {
  const std::vector<std::string> keys = {std::string(kShapeKey),  std::string(kStateKey),
                                         counter_key("o1234567"), counter_key({}),
                                         operation_key({1, 2}),   view_key(1),
                                         forgotten_key(key(1)),   journal_key(1, 2)};
  for (const std::string& key : keys) {
    EXPECT_EQ(dot_of_key(key).has_value(), key.front() == kOperationPrefix);
    EXPECT_EQ(site_of_key(key).has_value(), key.front() == kViewPrefix);
    EXPECT_EQ(client_of_key(key).has_value(), key.front() == kForgottenPrefix);
    EXPECT_EQ(journal_of_key(key).has_value(), key.front() == kJournalPrefix);
    const bool shared = key >= kSharedFirst && key < kSharedEnd;
    EXPECT_EQ(shared, dot_of_key(key).has_value() || site_of_key(key).has_value());
    for (const std::string& other : {key.substr(0, key.size() - 1), key + '\0', std::string()}) {
      EXPECT_FALSE(dot_of_key(other) || site_of_key(other) || client_of_key(other) ||
                   journal_of_key(other));
    }
  }
  EXPECT_FALSE(dot_of_key(operation_key({1, 0})));  // operations are counted from 1
}

// Checks the laws for all values that can meet under a key: sound ones, and damaged ones of every
// sort.
void expect_join_laws(const std::string& key, const std::vector<std::string>& values) {
  for (const std::string& a : values) {
    EXPECT_EQ(join_entries(key, a, a), a);
    for (const std::string& b : values) {
      const std::string both = join_entries(key, a, b);
      EXPECT_EQ(both, join_entries(key, b, a));
      EXPECT_EQ(join_entries(key, both, a), both);
      for (const std::string& c : values) {
        EXPECT_EQ(join_entries(key, both, c), join_entries(key, a, join_entries(key, b, c)));
      }
    }
  }
}

TEST(Entries, ViewsJoinByTheLawsAndDamageGivesWay) {
  std::vector<std::string> values = {"", "damaged", "\xff damaged too"};
  for (SiteId site = 1; site <= 3; ++site) {
    SiteView view;
    view.held.advance({site, site});
    view.held.advance({2, 10U - site});
    if (site == 2) view.members.retire(1);
    view.members.admit(1);
    view.members.admit(site);
    values.push_back(entry_of(1, view));
  }
  expect_join_laws(view_key(1), values);
  const std::string joined = join_entries(view_key(1), values[3], values[4]);
  const Result<SharedEntry> entry = decode_entry(view_key(1), bytes_of(joined));
  ASSERT_TRUE(entry);
  const auto& [site, view] = std::get<ViewOfSite>(*entry);
  EXPECT_EQ(site, 1);
  EXPECT_EQ(view.held.at(1), 1U);
  EXPECT_EQ(view.held.at(2), 9U);
  EXPECT_TRUE(view.members.retired(1));
  EXPECT_EQ(join_entries(view_key(1), "\xff damaged too", values[3]), values[3]);
}

TEST(Entries, OperationsJoinByTheLawsAndDamageGivesWay) {
  const Dot dot{1, 2};
  std::vector<std::string> values = {"", "damaged", "\xff damaged too"};
  for (const std::int64_t delta : {1, -1, 1000}) {
    const Operation operation{dot, Operation::Kind::add, OperationId::opaque(key(1)), "x", delta,
                              {}};
    values.push_back(entry_of(operation));
  }
  expect_join_laws(operation_key(dot), values);
  EXPECT_EQ(join_entries(operation_key(dot), values[3], "\xff damaged too"), values[3]);
}

// The examples of docs/formats/tally_entries_v1.md.
Operation documented_operation() {
  Operation added{
      {3, 7}, Operation::Kind::add, OperationId::numbered({1, 2}, 300), "x", -5, {}, 5, {}, 6};
  added.known.advance({3, 2});
  return added;
}
ViewOfSite documented_view() {
  ViewOfSite said{1, {}};
  said.view.held.advance({1, 300});
  said.view.members.admit(1);
  said.view.members.retire(2);
  said.view.heads.set(1, 9);
  said.view.group = 7;
  return said;
}

TEST(Entries, EndWithTheChecksumOfTheirDocument) {
  const auto checksum_in = [](const std::string& entry) {
    return load_u64(bytes_of(entry).data() + entry.size() - 8);
  };
  EXPECT_EQ(checksum_in(entry_of(documented_operation())), 0x7923e8e760a94508U);
  const auto [site, view] = documented_view();
  EXPECT_EQ(checksum_in(entry_of(site, view)), 0x0b6edd538a2daac2U);
}

TEST(Entries, OfTheLeastSizeAndBelowAreRefused) {
  for (const std::string& key : {operation_key({1, 2}), view_key(1)}) {
    for (std::size_t size = 0; size < 8; ++size) {
      EXPECT_EQ(decode_entry(key, Bytes(size)).error().code, Errc::corrupt);
    }
    Bytes nothing;  // a sound checksum of no value
    Writer(nothing).u64(entry_checksum(key, {}));
    EXPECT_EQ(decode_entry(key, nothing).error().code, Errc::corrupt);
  }
}

TEST(Entries, WhatIsNoEntryJoinsByTheLawsToo) { expect_join_laws("x", {"", "a", "b", "ab"}); }

struct OperationCase {
  struct Type : Operation {
    void encode(Sink out) const { out.append(bytes_of(entry_of(*this))); }
    static Result<Type> decode(ByteView in) {
      return Type{std::get<Operation>(SEMEL_TRY(decode_entry(operation_key({3, 7}), in)))};
    }
  };
  static constexpr char kFile[] = "tally_entry_v1_operation.bin";
  static Type make() { return {documented_operation()}; }
};
struct ViewCase {
  struct Type : ViewOfSite {
    void encode(Sink out) const { out.append(bytes_of(entry_of(site, view))); }
    static Result<Type> decode(ByteView in) {
      return Type{std::get<ViewOfSite>(SEMEL_TRY(decode_entry(view_key(1), in)))};
    }
  };
  static constexpr char kFile[] = "tally_entry_v1_view.bin";
  static Type make() { return {documented_view()}; }
};
using GoldenCases = ::testing::Types<OperationCase, ViewCase>;

}  // namespace
}  // namespace semel::tally::internal

namespace semel {

INSTANTIATE_TYPED_TEST_SUITE_P(Entries, Golden, tally::internal::GoldenCases);

}  // namespace semel
