// CuckooValue: copies, chains, lives, dumps, merges, and untrusted bytes. The series has its tests
// in semel/crdt.
#include "module/types/cuckoo_value.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "semel/bits/internal/elias_fano.h"
#include "semel/crdt/internal/entry_codec.h"
#include "semel/crdt/internal/series_links.h"
#include "semel/hash/internal/sealed.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/encoded.h"
#include "tests/support/held_value.h"
#include "tests/support/keys.h"

namespace semel::module {
namespace {

using Ptr = std::unique_ptr<CuckooValue>;

Secret secret_of(std::uint8_t first) {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return Secret(bytes);
}

constexpr CuckooValue::Goal goal_of(std::uint64_t capacity, std::uint32_t expansion) {
  return {.error = 0.001,
          .capacity = capacity,
          .bucket_size = 2,
          .max_iterations = 20,
          .expansion = expansion};
}

Ptr value_of(const CuckooValue::Goal& goal, std::uint64_t tag, std::uint8_t secret = 1) {
  Result<Ptr> value = CuckooValue::make(secret_of(secret), goal);
  EXPECT_TRUE(value) << value.error().message();
  EXPECT_TRUE((*value)->begin(tag, 1000 * tag, CuckooValue::Begun::here));
  return *std::move(value);
}

constexpr CuckooValue::Goal kSmall = goal_of(4, 1);

Digest item(const CuckooValue& value, std::uint64_t number) {
  return value.hasher()("item " + std::to_string(number));
}

void add_items(CuckooValue& value, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t n = first; n < last; ++n) {
    ASSERT_TRUE(value.add(item(value, n), 0));
  }
}

std::uint64_t held(const CuckooValue& value, std::uint64_t first, std::uint64_t last) {
  std::uint64_t found = 0;
  for (std::uint64_t n = first; n < last; ++n) found += value.contains(item(value, n)) ? 1 : 0;
  return found;
}

Ptr read(ByteView bytes) {
  Result<std::unique_ptr<host::Value>> value = CuckooValue::decode(bytes);
  EXPECT_TRUE(value) << value.error().message();
  return Ptr(static_cast<CuckooValue*>((*std::move(value)).release()));
}

Ptr copy_of(const CuckooValue& value) {
  return Ptr(static_cast<CuckooValue*>(value.copy().release()));
}

std::vector<Bytes> pieces_of(const CuckooValue& value) {
  std::vector<Bytes> all;
  for (CuckooValue::Chunk chunk = value.dump(1); chunk.next != 0; chunk = value.dump(chunk.next)) {
    all.push_back(chunk.bytes);
  }
  return all;
}

Result<void> merge(CuckooValue& into, const CuckooValue& from) {
  for (const Bytes& piece : pieces_of(from)) {
    if (const Result<bool> loaded = into.load(piece, 0); !loaded) return loaded.error();
  }
  return {};
}

// After its first item a filter keeps its memory, even if it is empty again.
TEST(CuckooValue, ReservesItsFirstLinkOnce) {
  const Ptr value = value_of(goal_of(10'000, 1), 3);
  const std::uint64_t wanted = value->unreserved_bytes();
  EXPECT_GT(wanted, 10'000u);
  value->reserve();
  EXPECT_EQ(value->unreserved_bytes(), 0u);
  const std::uint64_t taken = value->bytes();
  EXPECT_GE(taken, wanted);
  add_items(*value, 0, 1);
  EXPECT_TRUE(value->remove(item(*value, 0)));
  value->reserve();
  EXPECT_GE(value->bytes(), taken);
  EXPECT_EQ(value->unreserved_bytes(), 0u);
  Bytes bytes;
  value->encode(bytes);
  const Ptr decoded = read(bytes);
  EXPECT_EQ(decoded->unreserved_bytes(), 0u);
  decoded->reserve();
  EXPECT_LT(decoded->bytes(), 1000u);  // of a filter that was in use, memory follows the items
}

using Held = HeldValue<CuckooValue>;

struct CuckooBytes {
  using Type = Held;
  static constexpr std::size_t kHeaderSize = kSealedHeader + Secret::kSize;
  static constexpr std::size_t kMostGrowth = 8;
  static constexpr const char* kFile = "module_cuckoo_v1.bin";
  static Held make() {
    Ptr value = value_of(kSmall, 77);
    add_items(*value, 0, 7);
    EXPECT_TRUE(value->remove(item(*value, 3)));
    Ptr other = value_of(kSmall, 78);
    add_items(*other, 20, 22);
    EXPECT_TRUE(merge(*value, *other));
    return Held(std::move(value));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(CuckooValue, HostileBytes, CuckooBytes);
INSTANTIATE_TYPED_TEST_SUITE_P(CuckooValue, Golden, CuckooBytes);

// The law of values: a copy that was encoded and decoded at any point continues in the same way.
RC_GTEST_PROP(CuckooValue, GoesOnFromTheMiddleOfAnyHistory, ()) {
  const CuckooValue::Goal goal =
      goal_of(*rc::gen::inRange<std::uint64_t>(1, 30), *rc::gen::inRange<std::uint32_t>(0, 4));
  Ptr one = value_of(goal, 1), other = value_of(goal, 1), source = copy_of(*one);
  RC_ASSERT(source->begin(1000, 7, CuckooValue::Begun::here).has_value());
  const auto calls = *rc::gen::container<std::vector<std::pair<int, std::uint64_t>>>(
      rc::gen::pair(rc::gen::inRange(0, 30), rc::gen::inRange<std::uint64_t>(0, 40)));
  for (const auto& [call, n] : calls) {
    const Digest key = item(*one, n);
    if (call == 0) {
      other = read(encoded(*other));
    } else if (call == 1) {
      (void)source->add(key, 0);
    } else if (call == 2) {
      source->remove(key);
    } else if (call == 3) {
      for (const Bytes& piece : pieces_of(*source)) {
        const Result<bool> a = one->load(piece, 0), b = other->load(piece, 0);
        RC_ASSERT(a.has_value() && b.has_value());
        RC_ASSERT(*a == *b);
      }
    } else if (call == 4) {
      for (const Bytes& piece : pieces_of(*one)) RC_ASSERT(source->load(piece, 0).has_value());
    } else if (call < 12) {
      RC_ASSERT(one->remove(key) == other->remove(key));
    } else {
      RC_ASSERT(one->add(key, 0).has_value() == other->add(key, 0).has_value());
    }
    RC_ASSERT(one->count(key) == other->count(key));
    RC_ASSERT(one->items() == other->items());
    RC_ASSERT(one->removed() == other->removed());
  }
  RC_ASSERT(encoded(*one) == encoded(*other));
}

TEST(CuckooValue, CountsWhatIsAddedAndRemoved) {
  const Ptr value = value_of(kSmall, 1);
  for (int i = 0; i < 3; ++i) add_items(*value, 0, 10);
  EXPECT_EQ(value->count(item(*value, 4)), 3u);
  EXPECT_EQ(value->items(), 30u);
  EXPECT_TRUE(value->remove(item(*value, 4)));
  EXPECT_EQ(value->count(item(*value, 4)), 2u);
  EXPECT_EQ(value->items(), 29u);
  EXPECT_EQ(value->removed(), 1u);
  EXPECT_FALSE(value->remove(item(*value, 1'000)));
}

TEST(CuckooValue, SaysWhyItTakesNoMore) {
  const Ptr fixed = value_of(goal_of(50, 0), 1);
  add_items(*fixed, 0, 50);
  EXPECT_EQ(fixed->add(item(*fixed, 50), 0).error().code, Errc::limit);
  EXPECT_TRUE(fixed->remove(item(*fixed, 3)));
  EXPECT_TRUE(fixed->add(item(*fixed, 50), 0));

  const Ptr copies = value_of(goal_of(1000, 0), 1);
  int taken = 0;
  while (copies->add(item(*copies, 0), 0)) ++taken;
  EXPECT_LE(taken, 16);  // two buckets

  const Ptr small = value_of(goal_of(50, 2), 1);
  std::uint64_t n = 0;
  while (small->add(item(*small, n), 3000)) ++n;
  EXPECT_EQ(small->add(item(*small, n), 3000).error().code, Errc::full);
  EXPECT_GE(n, 150u);
  EXPECT_LE(small->bytes(), 5000u);
}

// Copies of one item fill two buckets of each link, so they open links that are nearly empty.
TEST(CuckooValue, CopiesOfOneItemOpenNoLinkBeyondTheLimit) {
  constexpr std::uint64_t kLimit = 200'000;
  const Ptr value = value_of(goal_of(1000, 2), 3);
  std::uint64_t copies = 0;
  Result<void> added;
  while ((added = value->add(item(*value, 0), kLimit))) ++copies;
  EXPECT_EQ(added.error().code, Errc::full);
  EXPECT_GE(copies, 16u);
  EXPECT_LT(value->filters(), 6u);
  EXPECT_EQ(value->count(item(*value, 0)), copies);
  // Other items fill these links, and no more.
  std::uint64_t others = 0;
  for (; others < 100'000 && value->add(item(*value, 1 + others), kLimit); ++others) {
  }
  EXPECT_GT(others, 5'000u);
  EXPECT_LT(others, 100'000u);
  EXPECT_LE(value->bytes(), kLimit + 20'000);
}

TEST(CuckooValue, AnItemRemovedFromACopyIsRemovedByAMerge) {
  const Ptr value = value_of(kSmall, 5);
  add_items(*value, 0, 40);
  const Ptr copy = copy_of(*value);
  EXPECT_FALSE(copy->chains().own());
  EXPECT_FALSE(copy->lives().own());
  ASSERT_TRUE(copy->begin(6, 60, CuckooValue::Begun::here));
  EXPECT_TRUE(copy->remove(item(*copy, 11)));
  add_items(*copy, 100, 110);
  EXPECT_TRUE(value->remove(item(*value, 12)));
  add_items(*value, 200, 205);
  ASSERT_TRUE(merge(*value, *copy));
  EXPECT_EQ(held(*value, 0, 40), 38u);
  EXPECT_FALSE(value->contains(item(*value, 11)));
  EXPECT_EQ(held(*value, 100, 110), 10u);
  EXPECT_EQ(held(*value, 200, 205), 5u);
  EXPECT_EQ(value->chains().own(), 0);
  EXPECT_EQ(value->error_bound(), 0.002);
  const Bytes before = encoded(*value);
  for (const Bytes& piece : pieces_of(*copy)) EXPECT_FALSE(*value->load(piece, 0));
  EXPECT_EQ(encoded(*value), before);
  ASSERT_TRUE(merge(*copy, *value));
  EXPECT_EQ(copy->items(), value->items());
}

TEST(CuckooValue, MergesInAnyOrder) {
  std::array<Ptr, 3> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    parts[i] = value_of(kSmall, 10 + i);
    add_items(*parts[i], 50 * i, 50 * i + 60);
    EXPECT_TRUE(parts[i]->remove(item(*parts[i], 50 * i + 1)));
  }
  const auto united = [&](std::vector<std::size_t> order) {
    Ptr all = *CuckooValue::make(secret_of(1), kSmall);
    for (const std::size_t i : order) EXPECT_TRUE(merge(*all, *parts[i]));
    return all;
  };
  const Ptr all = united({0, 1, 2}), back = united({2, 1, 0});
  EXPECT_EQ(all->items(), 3 * 59u);
  EXPECT_EQ(back->items(), 3 * 59u);
  EXPECT_EQ(held(*back, 0, 160), held(*all, 0, 160));
  EXPECT_EQ(encoded(*united({0, 1, 0, 2, 2})), encoded(*all));
}

// Two values of one life come only from a machine that is copied while it runs.
// A merge cuts large pieces into steps. The source may change between two of them.
TEST(CuckooValue, MergesWhatIsCutOutOfAPieceLikeADump) {
  const CuckooValue::Goal goal = goal_of(100'000, 1);
  const Ptr from = value_of(goal, 7);
  add_items(*from, 0, 30'000);
  for (std::uint64_t n = 0; n < 30'000; n += 3) ASSERT_TRUE(from->remove(item(*from, n)));
  const Ptr by_dump = value_of(goal, 8), by_steps = value_of(goal, 8);
  ASSERT_TRUE(merge(*by_dump, *from));
  int steps = 0;
  for (std::uint64_t position = 1;; ++steps) {
    std::optional<CuckooValue::Piece> piece = from->piece(position);
    if (!piece) break;
    for (; !piece->empty(); ++steps) {
      const Result<bool> taken = by_steps->take(piece->cut(), 0);
      ASSERT_TRUE(taken) << taken.error().message();
      EXPECT_TRUE(*taken);
      ASSERT_TRUE(from->remove(item(*from, 1 + 3 * static_cast<std::uint64_t>(steps))));
    }
    position = piece->next;
  }
  EXPECT_GT(steps, 3);
  EXPECT_EQ(encoded(*by_steps), encoded(*by_dump));
  ASSERT_TRUE(merge(*by_steps, *from));  // what was removed meanwhile
  EXPECT_EQ(by_steps->items(), from->items());
}

TEST(CuckooValue, RefusesWhatAnotherHasAddedInItsLife) {
  const Ptr value = value_of(kSmall, 5);
  add_items(*value, 0, 4);
  const Ptr twin = read(encoded(*value));
  add_items(*twin, 10, 15);
  const Bytes before = encoded(*value);
  EXPECT_EQ(merge(*value, *twin).error().code, Errc::forked);
  EXPECT_EQ(encoded(*value), before);
  // A third key cannot take both for one life: that would lose the adds of one.
  add_items(*value, 20, 25);
  const Ptr third = *CuckooValue::make(secret_of(1), kSmall);
  ASSERT_TRUE(merge(*third, *value));
  EXPECT_EQ(merge(*third, *twin).error().code, Errc::forked);
  EXPECT_EQ(held(*third, 20, 25), 5u);
}

TEST(CuckooValue, IsClosedUntilALifeBeginsHere) {
  const Ptr value = value_of(kSmall, 5);
  EXPECT_TRUE(value->open());
  add_items(*value, 0, 4);
  const Ptr loaded = read(encoded(*value));
  EXPECT_FALSE(loaded->open());
  EXPECT_EQ(encoded(*loaded), encoded(*value));  // with the life: effects go on in it
  EXPECT_FALSE(copy_of(*value)->open());

  const Bytes before = encoded(*loaded);
  EXPECT_EQ(loaded->begin(5, 5000, CuckooValue::Begun::here).error().code, Errc::invalid);
  EXPECT_EQ(encoded(*loaded), before);
  ASSERT_TRUE(loaded->begin(5, 5001, CuckooValue::Begun::elsewhere));
  EXPECT_FALSE(loaded->open());
  ASSERT_TRUE(loaded->begin(5, 5002, CuckooValue::Begun::here));
  EXPECT_TRUE(loaded->open());
  EXPECT_EQ(loaded->chains().size(), 1u);
  EXPECT_EQ(loaded->lives().size(), 3u);
}

// Values of one goal at several servers: each is loaded from an older backup at any time, opened,
// added to, and merged with the others. No item is lost, and no merge is refused.
RC_GTEST_PROP(CuckooValue, LosesNothingThroughRestoresAndMerges, ()) {
  struct Known {
    std::set<std::uint64_t> added, removed;
  };
  struct Server {
    Ptr value;
    Known known;
    std::vector<std::pair<Bytes, Known>> backups;
  };
  std::vector<Server> servers;
  std::uint64_t tags = 0, items = 0;
  const auto count = *rc::gen::inRange<std::uint64_t>(2, 5);
  for (std::uint64_t i = 0; i < count; ++i) servers.push_back({value_of(kSmall, ++tags), {}, {}});
  const auto calls =
      *rc::gen::container<std::vector<std::tuple<int, std::uint64_t, std::uint64_t>>>(
          rc::gen::tuple(rc::gen::inRange(0, 12), rc::gen::inRange<std::uint64_t>(0, 60),
                         rc::gen::inRange<std::uint64_t>(0, 60)));
  for (const auto& [call, at, choice] : calls) {
    Server& server = servers[at % servers.size()];
    Server& other = servers[choice % servers.size()];
    if (call == 0) {
      server.backups.emplace_back(encoded(*server.value), server.known);
    } else if (call == 1 && !server.backups.empty()) {
      const auto& [bytes, known] = server.backups[choice % server.backups.size()];
      server.value = read(bytes);
      server.known = known;
    } else if (call == 2) {  // as DUMP and RESTORE, at another server
      const Known known = other.known;
      server.value = read(encoded(*other.value));
      server.known = known;
    } else if (call < 5) {
      RC_ASSERT(&server == &other || merge(*server.value, *other.value).has_value());
      server.known.added.insert(other.known.added.begin(), other.known.added.end());
      server.known.removed.insert(other.known.removed.begin(), other.known.removed.end());
    } else if (call == 5 && server.known.added.contains(choice)) {
      RC_ASSERT(server.value->remove(item(*server.value, choice)) ==
                server.known.removed.insert(choice).second);
    } else {
      if (!server.value->open()) {
        const ChainTags& chains = server.value->chains();
        const std::uint64_t chain = chains.own() ? chains.tag(*chains.own()) : 500 + ++tags;
        RC_ASSERT(
            server.value->begin(chain, 100'000 + ++tags, CuckooValue::Begun::here).has_value());
      }
      RC_ASSERT(server.value->add(item(*server.value, items), 0).has_value());
      server.known.added.insert(items++);
    }
    for (const std::uint64_t n : server.known.added) {
      RC_ASSERT(server.known.removed.contains(n) || server.value->contains(item(*server.value, n)));
    }
    RC_ASSERT(server.value->items() == server.known.added.size() - server.known.removed.size());
    RC_ASSERT(server.value->error_now() <= server.value->error_bound());
  }
}

TEST(CuckooValue, ComesBackFromADump) {
  const Ptr value = value_of(goal_of(150'000, 2), 9);
  add_items(*value, 0, 200'000);  // two links, and more than one piece of the first
  for (std::uint64_t n = 0; n < 200'000; n += 5) EXPECT_TRUE(value->remove(item(*value, n)));
  const CuckooValue::Chunk header = value->dump(0);
  EXPECT_EQ(header.next, 1u);
  const Ptr loaded = *CuckooValue::load_header(header.bytes);
  EXPECT_EQ(loaded->goal(), value->goal());
  std::size_t pieces = 0;
  std::vector<Bytes> chunks;
  for (CuckooValue::Chunk chunk = value->dump(1); chunk.next != 0;
       chunk = value->dump(chunk.next)) {
    EXPECT_LT(chunk.next, std::uint64_t{1} << 53);
    EXPECT_LE(chunk.bytes.size(), std::size_t{16} << 20);
    EXPECT_TRUE(*loaded->load(chunk.bytes, 0));
    chunks.push_back(chunk.bytes);
    // Additions and removals meanwhile do no harm.
    if (++pieces == 1) add_items(*value, 300'000, 300'100);
    if (pieces == 2) (void)value->remove(item(*value, 1));
  }
  EXPECT_GT(pieces, value->filters());
  for (std::uint64_t n = 6; n < 200'000; n += 5) ASSERT_TRUE(loaded->contains(item(*value, n)));
  ASSERT_TRUE(merge(*loaded, *value));
  EXPECT_EQ(encoded(*loaded), encoded(*copy_of(*value)));
  EXPECT_EQ(value->dump(~0ull).next, 0u);
  // Pieces are loaded in order only.
  const Ptr late = *CuckooValue::load_header(header.bytes);
  EXPECT_EQ(late->load(chunks[1], 0).error().code, Errc::gap);
  EXPECT_EQ(late->chains().size(), 0u);
}

Errc refusal_of(CuckooValue& value, ByteView chunk, std::uint64_t max_bytes = 0) {
  const Bytes before = encoded(value);
  const Result<bool> loaded = value.load(chunk, max_bytes);
  if (loaded) return Errc::io;  // no refusal has this code
  EXPECT_EQ(encoded(value), before);
  return loaded.error().code;
}

bool is_damage(Errc why) {
  return why == Errc::corrupt || why == Errc::truncated || why == Errc::unsupported;
}

// Not inlined: g++ would believe that a vector that has grown is still empty.
[[gnu::noinline]] Bytes repaired(Bytes chunk) {
  store_u64(chunk.data() + chunk.size() - 8, checksum(ByteView(chunk).first(chunk.size() - 8)));
  return chunk;
}

TEST(CuckooValue, RefusesPiecesThatItCannotHave) {
  const Ptr source = value_of(goal_of(10, 1), 3), value = value_of(goal_of(10, 1), 4);
  add_items(*source, 0, 8);
  EXPECT_TRUE(source->remove(item(*source, 2)));
  const Bytes piece = pieces_of(*source)[0];
  EXPECT_EQ(refusal_of(*value_of(goal_of(11, 1), 4), piece), Errc::mismatch);
  EXPECT_EQ(refusal_of(*value_of(goal_of(10, 1), 4, 9), piece), Errc::mismatch);
  EXPECT_EQ(refusal_of(*value, piece, 10), Errc::full);
  EXPECT_EQ(refusal_of(*value, value->dump(0).bytes), Errc::unsupported);
  for (std::size_t size = 0; size < piece.size(); ++size) {
    ASSERT_EQ(refusal_of(*value, ByteView(piece).first(size)), Errc::truncated);
  }
  Bytes damaged = piece;
  for (std::size_t bit = 0; bit < 8 * piece.size(); ++bit) {
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    ASSERT_TRUE(is_damage(refusal_of(*value, damaged)));
    // With the checksum made right: refused, or a piece like any other.
    const Ptr copy = copy_of(*value);
    (void)copy->load(repaired(damaged), 1 << 20);
    ASSERT_TRUE(CuckooValue::decode(encoded(*copy)));
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
  }
  EXPECT_TRUE(*value->load(piece, 0));

  Bytes header = source->dump(0).bytes;
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
    header[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    ASSERT_FALSE(CuckooValue::load_header(header));
    (void)CuckooValue::load_header(repaired(header));
    header[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
  }
}

// The numbers ascend, but not strictly. No other field reveals that.
TEST(CuckooValue, RefusesAPieceWithTwoEntriesOfOneDot) {
  const Ptr source = value_of(goal_of(10, 1), 3), value = value_of(goal_of(10, 1), 4);
  add_items(*source, 0, 2);
  const Bytes piece = pieces_of(*source)[0];
  const SeriesGoal goal{.fpr = 0.001,
                        .first_keys = 10,
                        .sites = SeriesGoal::kMostSites,
                        .chains = SeriesChains::apart,
                        .growth = 2,
                        .hash = value->hasher().id()};
  const filter_internal::CuckooPlaces shape = *crdt_internal::shape_of<ObservedCuckoo>(goal, 1);
  const auto written = [&](const std::vector<std::uint64_t>& numbers) {
    std::vector<filter_internal::CuckooEntry> entries;
    for (std::uint64_t n = 0; n < numbers.size(); ++n) {
      const filter_internal::CuckooSpot spot = shape.spot_of(item(*source, n));
      entries.push_back({shape.pair_of(spot), spot.fingerprint, 0});
    }
    Bytes bytes(piece.begin(), piece.begin() + 64);
    elias_fano::encode(bytes, numbers, 1);
    crdt_internal::encode_places(bytes, shape, entries);
    bytes.resize(bytes.size() + 8);
    return repaired(bytes);
  };
  EXPECT_EQ(written({0, 1}), piece);
  EXPECT_EQ(refusal_of(*value, written({1, 1})), Errc::corrupt);
}

TEST(CuckooValue, RefusesGoalsOutOfRange) {
  for (const CuckooValue::Goal& goal : {CuckooValue::Goal{0, 10, 2, 20, 1},
                                        {0.01, 0, 2, 20, 1},
                                        {0.01, 10, 0, 20, 1},
                                        {0.01, 10, 256, 20, 1},
                                        {0.01, 10, 2, 0, 1},
                                        {0.01, 10, 2, 20, 32'769}}) {
    EXPECT_EQ(CuckooValue::make(secret_of(1), goal).error().code, Errc::invalid);
  }
}

}  // namespace
}  // namespace semel::module
