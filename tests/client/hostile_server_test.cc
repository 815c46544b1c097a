// Servers that answer too much, too slowly, too little or nonsense.
//
// Where only the deadline may end a wait, all other timeouts are an hour: a client that waits for
// one of these does not end.
#include <gtest/gtest.h>

#include <chrono>

#include "client/cluster.h"
#include "client/connection.h"
#include "client/remote_slice.h"
#include "tests/support/attacks.h"

namespace semel::client {
namespace {

using Words = ScriptedServer::Words;

constexpr std::int64_t kHourMs = 3'600'000;
// Far more than socket buffers hold, and far less than an endless reply would take.
constexpr std::uint64_t kMuch = std::uint64_t{64} << 20;

Time soon() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(100); }

ClusterOptions patient() {
  return {.connection = {.connect_timeout_ms = kHourMs, .timeout_ms = kHourMs},
          .deadline_ms = kHourMs};
}

class HostileServer : public ::testing::TestWithParam<Attack> {};

INSTANTIATE_TEST_SUITE_P(Attacks, HostileServer, ::testing::ValuesIn(attacks()),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(HostileServer, LosesTheConnectionAndNothingElse) {
  ScriptedServer server([](const Words& words) {
    return words[0] == "PING" ? ScriptedAnswer{"+PONG\r\n"} : GetParam().answer;
  });
  Connection connection(server.address(), {}, patient().connection);
  const auto attacked = connection.call({"ATTACK"}, soon());
  ASSERT_FALSE(attacked);
  EXPECT_FALSE(connection.connected());
  EXPECT_NE(attacked.error().message(), "");
  EXPECT_LT(server.sent(), kMuch);
  const auto next = connection.call({"PING"});
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_EQ(next->text(), "PONG");
}

TEST_P(HostileServer, HoldsUpNoCommandBeyondItsDeadline) {
  bool attacking = false;
  const ScriptedServer server([&](const Words& words) {
    if (words[0] == "CLUSTER" && !attacking)
      return ScriptedAnswer{"-ERR This instance has cluster support disabled\r\n"};
    if (words[0] == "ROLE" && !attacking)
      return ScriptedAnswer{"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"};
    attacking = true;
    return GetParam().answer;
  });
  Cluster cluster(*parse_url(server.url()), patient());
  ASSERT_TRUE(cluster.connect());
  cluster.end_by(soon());
  const auto reply = cluster.call("k", {"GET", "k"}, Repeat::safe);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::io);
  EXPECT_NE(reply.error().detail(), "");
}

TEST_P(HostileServer, HoldsUpNoLoginBeyondTheDeadline) {
  const ScriptedServer server([](const Words&) { return GetParam().answer; });
  Url url = *parse_url(server.url());
  url.password = "secret";
  Cluster cluster(url, patient());
  cluster.end_by(soon());
  const auto connected = cluster.connect();
  ASSERT_FALSE(connected);
  EXPECT_NE(connected.error().message(), "");
  EXPECT_EQ(connected.error().message().find("secret"), std::string::npos);
}

TEST(UnaskedReply, IsNotTakenForAnAnswer) {
  ScriptedServer server([](const Words& words) {
    return ScriptedAnswer{words[0] == "TWICE" ? "+one\r\n+two\r\n" : "+" + words[0] + "\r\n"};
  });
  Connection connection(server.address(), {}, patient().connection);
  const auto expect_refusal = [&](const Command& command) {
    const std::string words = connection.call(command).error().message();
    EXPECT_NE(words.find("not asked"), std::string::npos) << words;
  };
  expect_refusal({"TWICE"});
  EXPECT_EQ(connection.call({"NEXT"})->text(), "NEXT");
  server.say("+late\r\n");
  expect_refusal({"AFTER"});
  EXPECT_EQ(connection.call({"NEXT"})->text(), "NEXT");
}

// A server that has no cluster support until it is asked for a key, and then says this.
ScriptedServer::Script once_connected(std::function<ScriptedAnswer(const Words&)> script) {
  return [script = std::move(script)](const Words& words) {
    if (words[0] == "CLUSTER")
      return ScriptedAnswer{"-ERR This instance has cluster support disabled\r\n"};
    if (words[0] == "ROLE") return ScriptedAnswer{"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"};
    return script(words);
  };
}

TEST(Redirections, EndAtTheDeadline) {
  std::string where;
  const ScriptedServer server(once_connected([&](const Words&) { return ScriptedAnswer{where}; }));
  for (const char* const word : {"MOVED", "ASK"}) {
    for (const std::string& to : {server.address().text(), std::string(":1"), std::string(""),
                                  std::string("127.0.0.1:99999"), std::string("\x1b[2J:1")}) {
      where = std::string("-") + word + " 42 " + to + "\r\n";
      Cluster cluster(*parse_url(server.url()), patient());
      ASSERT_TRUE(cluster.connect());
      cluster.end_by(soon());
      const auto reply = cluster.call("k", {"GET", "k"}, Repeat::safe);
      ASSERT_FALSE(reply) << where;
      EXPECT_EQ(reply.error().without_detail(), "no answer by the deadline");
    }
  }
}

// Each redirection names a node that nobody heard of before.
TEST(Redirections, LeaveNoEndlessListOfNodes) {
  std::uint32_t host = 0;
  const ScriptedServer* self = nullptr;
  const ScriptedServer server(once_connected([&](const Words& words) {
    if (words[0] == "ASKING") return ScriptedAnswer{"+OK\r\n"};
    ++host;
    return ScriptedAnswer{"-ASK 42 127." + std::to_string(1 + (host >> 16)) + '.' +
                          std::to_string(host >> 8 & 255) + '.' + std::to_string(host & 255) + ':' +
                          std::to_string(self->address().port) + "\r\n"};
  }));
  self = &server;
  Cluster cluster(*parse_url(server.url()), patient());
  ASSERT_TRUE(cluster.connect());
  cluster.end_by(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  std::vector<Cluster::Ticket> tickets;
  for (int i = 0; i < 2000; ++i) tickets.push_back(cluster.start(42, {"GET", "k"}, Repeat::safe));
  for (const auto ticket : tickets) EXPECT_FALSE(cluster.finish(ticket));
  EXPECT_LE(cluster.nodes(), Cluster::kMostNodes);
}

std::string bulk(std::string_view text) {
  return '$' + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

TEST(ClusterSlots, AreRefusedIfTheyMakeNoSense) {
  std::string slots;
  const ScriptedServer server([&](const Words&) { return ScriptedAnswer{slots}; });
  const std::string node = "*2\r\n" + bulk("127.0.0.1") + ":7000\r\n";
  std::string many = "*1025\r\n";
  for (int i = 0; i < 1025; ++i) {
    many += "*3\r\n:" + std::to_string(i) + "\r\n:" + std::to_string(i) + "\r\n*2\r\n" +
            bulk("127.0.0.1") + ':' + std::to_string(1000 + i) + "\r\n";
  }
  const std::vector<std::string> nonsense = {
      ":1\r\n",
      "+OK\r\n",
      "$-1\r\n",
      "*1\r\n:1\r\n",
      "*1\r\n*0\r\n",
      "*1\r\n*3\r\n:0\r\n:1\r\n:2\r\n",
      "*1\r\n*3\r\n$-1\r\n:1\r\n" + node,
      "*1\r\n*3\r\n:0\r\n$-1\r\n" + node,
      "*1\r\n*3\r\n+0\r\n:1\r\n" + node,
      "*1\r\n*3\r\n:-1\r\n:1\r\n" + node,
      "*1\r\n*3\r\n:5\r\n:4\r\n" + node,
      "*1\r\n*3\r\n:0\r\n:16384\r\n" + node,
      "*1\r\n*3\r\n:0\r\n:9223372036854775807\r\n" + node,
      "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n" + bulk("h") + ":0\r\n",
      "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n" + bulk("h") + ":65536\r\n",
      "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n" + bulk("h") + "$-1\r\n",
      "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:1\r\n:7000\r\n",
      many,
  };
  for (const std::string& garbage : nonsense) {
    slots = garbage;
    Cluster cluster(*parse_url(server.url()), patient());
    const auto connected = cluster.connect();
    ASSERT_FALSE(connected) << garbage.substr(0, 60);
    EXPECT_EQ(connected.error().code, Errc::mismatch) << garbage.substr(0, 60);
    EXPECT_NE(connected.error().message(), "");
  }
  // A node that does not know its own name, and one with more than the client knows of.
  for (const char* const sound : {"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$-1\r\n:7000\r\n",
                                  "*1\r\n*4\r\n:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n+"
                                  "id\r\n*0\r\n*2\r\n+x\r\n:1\r\n"}) {
    slots = sound;
    Cluster cluster(*parse_url(server.url()), patient());
    EXPECT_TRUE(cluster.connect());
  }
}

// Everything but what was asked for is a failure, never a verdict.
TEST(Answers, OfAnotherKindAreRefused) {
  std::string answer;
  const ScriptedServer server(once_connected([&](const Words&) { return ScriptedAnswer{answer}; }));
  Cluster cluster(*parse_url(server.url()), patient());
  ASSERT_TRUE(cluster.connect());
  for (const Taking taking : {Taking::claimed, Taking::added}) {
    RemoteSlice slice(cluster, SiftKey("k"), {taking, "me", 60'000});
    for (const char* const wrong :
         {"$-1\r\n", "*-1\r\n", "*0\r\n", ":7\r\n", ":-1\r\n", "+OK\r\n", "+\r\n", "-fresh\r\n",
          "-done\r\n", "-seen\r\n", "*1\r\n$-1\r\n", "*1\r\n:7\r\n", "*1\r\n+1\r\n", "*1\r\n*0\r\n",
          "*2\r\n:0\r\n:1\r\n", "*1\r\n-ERR no\r\n", "$5\r\nother\r\n"}) {
      answer = wrong;
      for (const auto action : {SliceAction::test, SliceAction::set, SliceAction::test_and_set,
                                SliceAction::claim, SliceAction::commit, SliceAction::release}) {
        SliceCall call;
        call.action = action;
        call.keys = {{1, 2}};
        slice.start(call);
        slice.finish(call);
        EXPECT_TRUE(call.failed) << static_cast<int>(action) << ' ' << wrong;
        EXPECT_NE(slice.error()->message(), "");
      }
      const SiftKey key("k");
      EXPECT_FALSE(reserve(cluster, {&key, 1}, {.window_ms = 1, .error = 0.1, .capacity = 1}))
          << wrong;
    }
  }
}

TEST(Answers, ToWaitMustBeANumber) {
  std::string wait;
  const ScriptedServer server(once_connected(
      [&](const Words& words) { return ScriptedAnswer{words[0] == "WAIT" ? wait : "+OK\r\n"}; }));
  for (const char* const wrong : {"$-1\r\n", "+1\r\n", "$1\r\n1\r\n", "-ERR no\r\n", "*0\r\n"}) {
    wait = wrong;
    ClusterOptions options = patient();
    options.replicas = 1;
    Cluster cluster(*parse_url(server.url()), options);
    ASSERT_TRUE(cluster.connect());
    EXPECT_FALSE(cluster.call("k", {"SET", "k", "v"}, Repeat::never)) << wrong;
    EXPECT_EQ(cluster.counts().unconfirmed, 1u);
  }
}

}  // namespace
}  // namespace semel::client
