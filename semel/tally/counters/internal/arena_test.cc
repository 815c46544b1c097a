// Arena: memory that overlaps nothing, lies where it should, and is used again.
#include "semel/tally/counters/internal/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "semel/core/internal/random.h"

namespace semel::tally::internal {
namespace {

struct Thing {
  std::size_t size;
  std::uint8_t content;
};

TEST(Arena, GivesMemoryThatOverlapsNothing) {
  Random random(1);
  Arena arena;
  std::map<std::uint8_t*, Thing> things;  // by where they lie
  const auto whole = [](const auto& entry) {
    const auto& [memory, thing] = entry;
    for (std::size_t i = 0; i < thing.size; ++i) {
      if (memory[i] != thing.content) return false;
    }
    return true;
  };
  for (int round = 0; round < 50'000; ++round) {
    if (random.below(5) < 2 && !things.empty()) {
      auto gone = things.lower_bound(things.begin()->first + random.below(1 << 20));
      if (gone == things.end()) gone = things.begin();
      EXPECT_TRUE(whole(*gone));
      arena.release(gone->first, gone->second.size);
      things.erase(gone);
    } else {
      const std::size_t size = 1 + random.below(round % 50 == 0 ? 10'000 : 200);
      auto* const memory = static_cast<std::uint8_t*>(arena.allocate(size));
      const auto address = reinterpret_cast<std::uintptr_t>(memory);
      EXPECT_EQ(address % 16, 0u);
      if (size % 64 == 0 && size <= 4096) {
        EXPECT_EQ(address % 64, 0u);
      }
      const auto content = static_cast<std::uint8_t>(random());
      std::memset(memory, content, size);
      EXPECT_TRUE(things.emplace(memory, Thing{size, content}).second);
    }
  }
  for (const auto& thing : things) EXPECT_TRUE(whole(thing));
  for (const auto& [memory, thing] : things) arena.release(memory, thing.size);
}

TEST(Arena, TakesLittleMoreThanItGives) {
  Arena arena;
  for (int i = 0; i < 1'000'000; ++i) arena.allocate(72);
  EXPECT_GE(arena.bytes(), 80'000'000u);
  EXPECT_LE(arena.bytes(), 80'000'000u / 8 * 9 + (2 << 20));
}

TEST(Arena, UsesAgainWhatWasReleased) {
  Arena arena;
  std::vector<void*> all(1000);
  std::uint64_t bytes = 0;
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = arena.allocate(1 + i * 10);
    if (round == 0) bytes = arena.bytes();
    EXPECT_EQ(arena.bytes(), bytes);
    for (std::size_t i = 0; i < all.size(); ++i) arena.release(all[i], 1 + i * 10);
  }
}

}  // namespace
}  // namespace semel::tally::internal
