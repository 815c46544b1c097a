// CommandSyntax: what a line of the table of commands means for the number of arguments.
#include "module/host/syntax.h"

#include <gtest/gtest.h>

namespace semel::host {
namespace {

struct Case {
  const char* line;
  int least;
  bool varies;
};

TEST(CommandSyntax, TellsHowManyArgumentsThereAre) {
  const Case cases[] = {
      {"key", 1, false},
      {"key counter delta [ID id | OP client seq]", 3, true},
      {"key counter ...", 2, true},
      {"key [min max]", 1, true},
      {"key <NOID <counter delta> ... | IDS <counter delta id> ...>", 4, true},
      {"key <A | B>", 2, false},
      {"key <A x | B>", 2, true},
      {"key error capacity [EXPANSION n] [NONSCALING]", 3, true},
      {"destination source [source ...]", 2, true},
      {"[a]", 0, true},
      {"", 0, false},
  };
  for (const Case& c : cases) {
    const CommandSyntax syntax = CommandSyntax::parse(c.line);
    EXPECT_EQ(syntax.least(), c.least) << c.line;
    EXPECT_EQ(syntax.varies(), c.varies) << c.line;
  }
}

TEST(CommandSyntax, KeepsWordsAlternativesAndRepetitionApart) {
  const CommandSyntax syntax = CommandSyntax::parse("key [ID id | EXACT] item ...");
  ASSERT_EQ(syntax.parts.size(), 3u);
  EXPECT_EQ(syntax.parts[0].text, "key");
  EXPECT_EQ(syntax.parts[0].kind, CommandSyntax::Kind::word);
  EXPECT_TRUE(syntax.parts[1].optional);
  EXPECT_EQ(syntax.parts[1].kind, CommandSyntax::Kind::choice);
  ASSERT_EQ(syntax.parts[1].parts.size(), 2u);
  EXPECT_EQ(syntax.parts[1].parts[1].kind, CommandSyntax::Kind::token);
  EXPECT_TRUE(syntax.parts[2].multiple);
  EXPECT_FALSE(syntax.parts[2].optional);
}

}  // namespace
}  // namespace semel::host
