#include "semel/core/internal/zeroed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

namespace semel {
namespace {

// Memory that was used and released is handed out again. The sizes lie on both sides of each limit
// between two ways to allocate.
TEST(Zeroed, IsOfZerosWhateverWasThereBefore) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (const std::size_t align : {std::size_t{64}, 2 * kMiB}) {
    for (const std::size_t bytes :
         {std::size_t{1}, kZeroedBySystem - 1, kZeroedBySystem, 5 * kMiB + 7, 40 * kMiB}) {
      for (int round = 0; round < 3; ++round) {
        auto* const memory = static_cast<std::uint8_t*>(allocate_zeroed(bytes, align));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % align, 0u) << bytes;
        EXPECT_EQ(std::count(memory, memory + bytes, 0), static_cast<std::ptrdiff_t>(bytes));
        std::memset(memory, 0xff, bytes);
        release_zeroed(memory, bytes, align);
      }
    }
  }
}

TEST(Zeroed, RefusesWhatNoMachineHas) {
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4}) {
    EXPECT_THROW(allocate_zeroed(bytes, 64), std::bad_alloc) << bytes;
  }
}

}  // namespace
}  // namespace semel
