// Connections to a server that answers, is missing, wants a password, or goes away.
#include "client/connection.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "tests/support/redis_server.h"

namespace semel::client {
namespace {

TEST(Connection, SendsManyCommandsAndReadsTheirAnswersInOrder) {
  const RedisServer server;
  Connection connection = server.connection();
  constexpr int kCommands = 10'000;
  for (int i = 0; i < kCommands; ++i) connection.append(Command{"ECHO"}.add(std::int64_t{i}));
  ASSERT_TRUE(connection.send());
  for (int i = 0; i < kCommands; ++i) {
    const auto reply = connection.read();
    ASSERT_TRUE(reply) << reply.error().message();
    ASSERT_EQ(reply->text(), std::to_string(i));
  }
  EXPECT_EQ(connection.awaited(), 0u);
}

TEST(Connection, TakesAnErrorOfTheServerForAnAnswer) {
  const RedisServer server;
  Connection connection = server.connection();
  const auto reply = connection.call({"NO.SUCH"});
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->is_error("ERR"));
  EXPECT_TRUE(connection.call({"PING"}));
}

TEST(Connection, SaysWhoIsNotThere) {
  const std::uint16_t port = free_port();
  Connection connection({"127.0.0.1", port});
  const auto reply = connection.call({"PING"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::io);
  EXPECT_EQ(reply.error().message(),
            "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_FALSE(Connection({"/nowhere/redis.sock", 0}).connect());
}

TEST(Connection, LogsInAndSelectsItsDatabase) {
  const RedisServer server({"--requirepass", "secret"});
  Connection stranger(server.address());
  EXPECT_TRUE(stranger.call({"GET", "k"})->is_error("NOAUTH"));
  Connection wrong(server.address(), {.password = "guess"});
  const auto refused = wrong.connect();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::mismatch);
  const std::string words = refused.error().message();
  EXPECT_NE(words.find("WRONGPASS"), std::string::npos) << words;

  Connection right(server.address(), {.user = "default", .password = "secret", .database = 3});
  right.append({"SET", "k", "v"});  // before there is a connection: it comes after the login
  ASSERT_TRUE(right.send());
  EXPECT_EQ(right.read()->text(), "OK");
  Connection same(server.address(), {.password = "secret", .database = 3});
  EXPECT_EQ(same.call({"GET", "k"})->text(), "v");
  Connection other(server.address(), {.password = "secret"});
  EXPECT_TRUE(other.call({"GET", "k"})->is_nil());
  EXPECT_FALSE(Connection(server.address(), {.password = "secret", .database = 99}).connect());
}

TEST(Connection, ConnectsThroughASocket) {
  const RedisServer server({"--unixsocket", "redis.sock"});
  Connection connection({server.directory() / "redis.sock", 0});
  const auto reply = connection.call({"PING"});
  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(reply->text(), "PONG");
}

TEST(Connection, OutlivesItsServer) {
  std::signal(SIGPIPE, SIG_DFL);
  RedisServer server;
  Connection connection = server.connection();
  ASSERT_TRUE(connection.call({"PING"}));
  server.kill();
  EXPECT_FALSE(connection.call({"PING"}));
  EXPECT_FALSE(connection.connected());
  EXPECT_FALSE(connection.call({"PING"}));
  server.start();
  EXPECT_TRUE(connection.call({"PING"}));
}

TEST(Connection, DoesNotWaitForEver) {
  const RedisServer server;
  Connection connection = server.connection();
  ASSERT_TRUE(connection.call({"PING"}));
  server.pause();
  const auto reply =
      connection.call({"PING"}, std::chrono::steady_clock::now() + std::chrono::milliseconds(100));
  server.resume();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().message(), "lost " + server.address().text() + ": no answer in time");
  // The late answer is not taken for that of another command.
  EXPECT_EQ(connection.call({"ECHO", "next"})->text(), "next");
}

}  // namespace
}  // namespace semel::client
