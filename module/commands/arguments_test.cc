// Arguments: which words and options are taken.
#include "module/commands/arguments.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "tests/support/fake_host.h"
#include "tests/support/setting.h"

namespace semel::module {
namespace {

TEST(Arguments, WordsAreKnownInAnyCase) {
  EXPECT_TRUE(is_word("WINDOW", "WINDOW"));
  EXPECT_TRUE(is_word("wInDoW", "WINDOW"));
  EXPECT_FALSE(is_word("WINDOWS", "WINDOW"));
  EXPECT_FALSE(is_word("WINDO", "WINDOW"));
  EXPECT_FALSE(is_word("w\xC9ndow", "WINDOW"));
}

using Words = host::FakeHost::Words;

TEST(Options, AreTakenInAnyOrder) {
  const host::FakeHost host({"NAME", "window", "5s", "EXACT", "ids", "9", "ERROR", "0.5"});
  host::Call call(nullptr, host.arguments());
  Options options(call, 1);
  TimeMs window_ms = 0;
  std::uint64_t ids = 0;
  double error = 0;
  bool exact = false;
  while (options.more()) {
    if (options.count("IDS", 1, 10, ids) || options.error_rate("ERROR", error) ||
        options.duration("WINDOW", window_ms)) {
      continue;
    }
    if (options.flag("EXACT")) {
      exact = true;
    } else {
      options.unknown();
    }
  }
  EXPECT_FALSE(options.refused());
  EXPECT_EQ(window_ms, 5000);
  EXPECT_EQ(ids, 9u);
  EXPECT_EQ(error, 0.5);
  EXPECT_TRUE(exact);
  EXPECT_EQ(host.answers(), Words());
}

TEST(Options, TheRestBelongsToItsWord) {
  const host::FakeHost host({"NAME", "EXACT", "items", "EXACT", "ITEMS"});
  host::Call call(nullptr, host.arguments());
  Options options(call, 1);
  std::size_t first = 0;
  EXPECT_FALSE(options.rest("ITEMS", first));
  EXPECT_TRUE(options.flag("EXACT"));
  EXPECT_TRUE(options.rest("ITEMS", first));
  EXPECT_EQ(first, 3u);
  EXPECT_FALSE(options.more());
  EXPECT_FALSE(options.flag("EXACT"));
  EXPECT_FALSE(options.refused());
}

// After the first refusal nothing is taken, read or answered, whatever the loop asks for.
TEST(Options, TheFirstRefusalIsTheLastWord) {
  Random random(fresh_seed());
  constexpr std::array kWords = {"A", "B", "ITEMS", "5", "0.5", "x"};
  for (int round = 0; round < 20'000; ++round) {
    Words words = {"NAME"};
    for (std::uint64_t n = random.below(6); n > 0; --n) {
      words.emplace_back(kWords[random.below(kWords.size())]);
    }
    const host::FakeHost host(words);
    host::Call call(nullptr, host.arguments());
    Options options(call, 1);
    for (int asked = 0; asked < 20; ++asked) {
      const bool refused = options.refused();
      const char* const word = kWords[random.below(3)];
      TimeMs ms = 0;
      std::uint64_t count = 0;
      double error = 0;
      std::size_t first = 0;
      bool taken = false;
      switch (random.below(11)) {
        case 0:
          taken = options.flag(word);
          break;
        case 1:
          taken = options.value(word).has_value();
          break;
        case 2:
          taken = options.duration(word, ms);
          break;
        case 3:
          taken = options.count(word, 1, 5, count);
          break;
        case 4:
          taken = options.error_rate(word, error);
          break;
        case 5:
          taken = options.rest(word, first);
          break;
        case 6:
          taken = options.is(word);
          break;
        case 7:
          taken = options.last();
          break;
        case 8:
          options.unknown();
          break;
        case 9:
          if (random.below(10) == 0) options.wrong_arity();
          break;
        default:
          if (random.below(10) == 0) options.refuse("ERR no");
      }
      ASSERT_FALSE(refused && taken);
      ASSERT_FALSE(refused && options.more());
      ASSERT_EQ(host.answers().size(), options.refused() ? 1u : 0u);
    }
  }
}

}  // namespace
}  // namespace semel::module
