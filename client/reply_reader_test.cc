// Replies from bytes: whole, in pieces, wrong, and too large.
#include "client/reply_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace semel::client {
namespace {

// Returns a reply as text, to be compared.
std::string shown(ReplyView reply) {
  switch (reply.kind()) {
    case ReplyKind::nil:
      return "nil";
    case ReplyKind::integer:
      return std::to_string(reply.integer());
    case ReplyKind::text:
      return '"' + std::string(reply.text()) + '"';
    case ReplyKind::status:
      return '+' + std::string(reply.text());
    case ReplyKind::error:
      return '-' + std::string(reply.text());
    case ReplyKind::array:
      break;
  }
  std::string out = "[";
  for (std::size_t i = 0; i < reply.size(); ++i) out += shown(reply.at(i)) + ' ';
  return out + ']';
}

// Returns all replies in the bytes, which are fed in pieces of this size.
std::vector<std::string> read_all(const std::string& bytes, std::size_t piece) {
  ReplyReader reader;
  std::vector<std::string> replies;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.feed(std::string_view(bytes).substr(at, piece));
    for (auto reply = reader.next(); reply && *reply; reply = reader.next()) {
      replies.push_back(shown((*reply)->view()));
    }
  }
  EXPECT_EQ(reader.pending(), 0u);
  return replies;
}

TEST(ReplyReader, ReadsTheSameInPiecesOfAnySize) {
  const std::string bytes =
      ":-7\r\n+OK\r\n-ERR "
      "no\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*0\r\n*3\r\n:1\r\n*1\r\n+x\r\n$0\r\n\r\n";
  const std::vector<std::string> expected = {"-7",  "+OK", "-ERR no", "\"a\r\n\"",
                                             "nil", "nil", "[]",      "[1 [+x ] \"\" ]"};
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    EXPECT_EQ(read_all(bytes, piece), expected) << piece;
  }
}

TEST(ReplyReader, CountsWhatBelongsToNoReply) {
  ReplyReader reader;
  reader.feed("+OK\r\n+la");
  ASSERT_TRUE(*reader.next());
  EXPECT_EQ(reader.pending(), 3u);
  ASSERT_FALSE(*reader.next());
  reader.feed("ter\r\n");
  EXPECT_EQ((*reader.next())->text(), "later");
  EXPECT_EQ(reader.pending(), 0u);
}

// Feeds a beginning, then the same bytes repeatedly. Returns how much was taken before a refusal.
std::size_t fed_until_refused(const ReplyLimits& limits, std::string_view begin,
                              std::string_view again) {
  ReplyReader reader(limits);
  std::size_t fed = begin.size();
  reader.feed(begin);
  for (;;) {
    const auto reply = reader.next();
    if (!reply) {
      EXPECT_EQ(reply.error().code, Errc::limit) << reply.error().message();
      return fed;
    }
    EXPECT_FALSE(*reply);
    reader.feed(again);
    fed += again.size();
  }
}

TEST(ReplyReader, KeepsNoMoreBytesThanAReplyMayHave) {
  const ReplyLimits limits{.bytes = 10'000, .elements = 10'000};
  const std::string piece(1000, 'x');
  for (const char* const begin : {"+", "-", "$5000000\r\n", "$9223372036854775807\r\n"}) {
    EXPECT_LE(fed_until_refused(limits, begin, piece), limits.bytes + 2 * piece.size()) << begin;
  }
  // Elements that are complete count too.
  EXPECT_LE(fed_until_refused(limits, "*9999\r\n", "$3\r\nabc\r\n"), limits.bytes + 100);
}

// Time counts as well: every piece of a line without an end is searched from its beginning.
TEST(ReplyReader, RefusesALineWithoutAnEndLongBeforeTheLimit) {
  const ReplyLimits limits{.bytes = std::size_t{1} << 30, .elements = 10};
  const std::string piece(16 << 10, '7');
  for (const char* const begin : {"+", "-", ":", "*", "$", "*2\r\n+"}) {
    EXPECT_LE(fed_until_refused(limits, begin, piece), 3 * piece.size()) << begin;
  }
}

TEST(ReplyReader, RefusesAReplyThatIsTooLongAsAWhole) {
  ReplyReader reader({.bytes = 10, .elements = 10});
  reader.feed("+1234567\r\n");
  EXPECT_TRUE(reader.next());
  reader.feed("+12345678\r\n");
  EXPECT_EQ(reader.next().error().code, Errc::limit);
}

// Lengths are refused before anything is allocated: a few bytes would take eight for each element.
TEST(ReplyReader, RefusesMoreElementsThanAReplyMayHave) {
  const ReplyLimits limits{.bytes = 1000, .elements = 8};
  for (const char* const bytes :
       {"*9\r\n", "*2147483647\r\n", "*4\r\n*5\r\n", "*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*4\r\n"}) {
    ReplyReader reader(limits);
    reader.feed(bytes);
    const auto reply = reader.next();
    ASSERT_FALSE(reply) << bytes;
    EXPECT_EQ(reply.error().code, Errc::limit) << bytes;
  }
  // Each reply has its own.
  ReplyReader reader(limits);
  for (int i = 0; i < 3; ++i) {
    reader.feed("*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*3\r\n:1\r\n:2\r\n:3\r\n");
    EXPECT_TRUE(*reader.next());
  }
}

TEST(ReplyReader, RefusesWhatIsNotTheProtocol) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "*1\r\n";
  for (const std::string& bytes :
       {std::string("hello\r\n"), std::string("\0", 1), std::string("$-2\r\n"),
        std::string("*-2\r\n"), std::string("*-9223372036854775808\r\n"), std::string(":12x\r\n"),
        std::string(":99999999999999999999\r\n"), std::string("$abc\r\n"), deep}) {
    ReplyReader reader;
    reader.feed(bytes);
    const auto reply = reader.next();
    ASSERT_FALSE(reply) << bytes;
    EXPECT_EQ(reply.error().code, Errc::corrupt) << bytes;
    reader.feed("+OK\r\n");
    EXPECT_FALSE(reader.next()) << bytes;
  }
}

RC_GTEST_PROP(ReplyReader, IsIndifferentToPieces,
              (std::string tail, std::vector<std::uint8_t> cuts)) {
  const std::string bytes = "*2\r\n$3\r\nabc\r\n:5\r\n" + tail;
  const auto outcome = [&](bool whole) {
    ReplyReader reader({.bytes = 64, .elements = 8});
    std::string seen;
    std::size_t at = 0;
    for (std::size_t i = 0; at < bytes.size(); ++i) {
      const std::size_t size =
          whole || i >= cuts.size() ? bytes.size() - at : std::size_t{1} + cuts[i] % 8;
      reader.feed(std::string_view(bytes).substr(at, size));
      at = std::min(bytes.size(), at + size);
      for (;;) {
        const auto reply = reader.next();
        if (!reply) return seen + "error";
        if (!*reply) break;
        seen += shown((*reply)->view()) + ';';
      }
    }
    return seen;
  };
  RC_ASSERT(outcome(true) == outcome(false));
}

}  // namespace
}  // namespace semel::client
