// Replies, from the bytes of the protocol.
#include "client/reply.h"

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <string_view>

#include "client/command.h"
#include "semel/core/assert.h"

namespace semel::client {
namespace {

Reply parsed(std::string_view bytes) {
  redisReader* const reader = redisReaderCreate();
  void* reply = nullptr;
  SEMEL_ASSERT(redisReaderFeed(reader, bytes.data(), bytes.size()) == REDIS_OK);
  SEMEL_ASSERT(redisReaderGetReply(reader, &reply) == REDIS_OK);
  redisReaderFree(reader);
  return Reply(static_cast<redisReply*>(reply));
}

TEST(Reply, KnowsItsKind) {
  EXPECT_EQ(parsed(":-7\r\n").integer(), -7);
  EXPECT_EQ(parsed("+OK\r\n").text(), "OK");
  EXPECT_EQ(parsed("+OK\r\n").kind(), ReplyKind::status);
  EXPECT_TRUE(parsed("$-1\r\n").is_nil());
  EXPECT_TRUE(parsed("*-1\r\n").is_nil());
}

TEST(Reply, HoldsBytesOfAnyValue) {
  using namespace std::string_view_literals;
  EXPECT_EQ(parsed("$3\r\na\0b\r\n"sv).text(), "a\0b"sv);
}

TEST(Reply, HoldsArraysInArrays) {
  const Reply reply = parsed("*3\r\n:1\r\n*1\r\n+x\r\n-ERR no\r\n");
  ASSERT_EQ(reply.size(), 3u);
  EXPECT_EQ(reply.at(0).integer(), 1);
  EXPECT_EQ(reply.at(1).at(0).text(), "x");
  EXPECT_TRUE(reply.at(2).is_error("ERR"));
}

TEST(Reply, GivesNeutralValuesForWhatItIsNot) {
  EXPECT_EQ(parsed("+7\r\n").integer(), 0);
  EXPECT_EQ(parsed(":7\r\n").text(), "");
  EXPECT_EQ(parsed(":7\r\n").size(), 0u);
}

TEST(Reply, TellsErrorsByTheirFirstWord) {
  const Reply reply = parsed("-MOVED 1 h:2\r\n");
  EXPECT_TRUE(reply.is_error("MOVED"));
  EXPECT_FALSE(reply.is_error("MOVE"));
  EXPECT_FALSE(reply.is_error("MOVED 1 h:2 more"));
  EXPECT_FALSE(parsed("+MOVED 1 h:2\r\n").is_error("MOVED"));
}

TEST(Command, IsAnArrayOfBulkStrings) {
  using namespace std::string_view_literals;
  std::string bytes;
  Command{"SET", "k", "a\0\r\n"sv}.add(std::int64_t{-12}).write(bytes);
  EXPECT_EQ(bytes, "*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\0\r\n\r\n$3\r\n-12\r\n"sv);
}

}  // namespace
}  // namespace semel::client
