// semel sift --at: memory at servers, shared by producers, through crashes of either.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "client/slot.h"
#include "semel/core/internal/random.h"
#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_server.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

std::vector<std::string> with_module() { return {"--loadmodule", SEMEL_MODULE}; }

// Keys short and long, every third line a duplicate of one before, as far as 2000 lines back.
std::string lines_of(int count, std::uint64_t seed = 1) {
  Random random(seed);
  std::string out;
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) {
    if (i > 0 && random.below(3) == 0) {
      lines.push_back(lines[lines.size() - 1 - random.below(std::min<std::size_t>(i, 2000))]);
    } else {
      // A long one differs from the others at its end only.
      lines.emplace_back(random.below(4) == 0 ? 60 + random.below(60) : 0, 'x');
      lines.back().append("event ").append(std::to_string(random()));
    }
    out += lines.back() + '\n';
  }
  return out;
}

std::map<std::string, int> counts_of(const std::string& text) {
  std::map<std::string, int> counts;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) ++counts[line];
  return counts;
}

Words at(const std::string& url, const std::string& stream, const Words& more = {}) {
  Words words = {"--at", url, "--stream", stream, "--window", "1h"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words sift_words(const Words& options) {
  Words words = {SEMEL_COMMAND, "sift"};
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

std::string tree_text(std::string text, const std::string& url) {
  for (std::size_t at = 0; (at = text.find("URL", at)) != std::string::npos;) {
    text.replace(at, 3, url);
    at += url.size();
  }
  return text;
}

class SiftRemote : public ::testing::Test {
 protected:
  RedisServer server_{with_module()};
};

TEST_F(SiftRemote, WritesWhatTheEmbeddedOneWrites) {
  const std::string input = lines_of(30'000);
  const std::string expected = sift_quietly({}, input).out;
  int number = 0;
  for (const Words& mode :
       {Words{}, Words{"--delivery", "at-most-once"}, Words{"--exact"}, Words{"-t", "1"},
        Words{"-t", "4", "--slices", "1"}, Words{"--slices", "100", "--error", "1e-9"}}) {
    const Outcome outcome = sift_quietly(
        at(server_.url(), std::string("s").append(std::to_string(++number)), mode), input);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(outcome.out == expected) << number;
  }
}

TEST_F(SiftRemote, KnowsTheFieldsOfRecords) {
  const std::string input = "1,a\n2,a\n1,b\n1,a\n,\n";
  EXPECT_EQ(sift_quietly(at(server_.url(), "one", {"-f", "csv", "-k", "1"}), input).out,
            "1,a\n2,a\n,\n");
  EXPECT_EQ(sift_quietly(at(server_.url(), "two", {"-f", "csv", "-k", "1,2"}), input).out,
            "1,a\n2,a\n1,b\n,\n");
  EXPECT_EQ(sift_quietly(at(server_.url(), "json", {"-f", "json", "-k", "id"}),
                         "{\"id\":1}\n{\"id\":\"1\"}\n{\"x\":2,\"id\":1}\n")
                .out,
            "{\"id\":1}\n{\"id\":\"1\"}\n");
}

// A short key is known there by its own name.
TEST_F(SiftRemote, CanBeAskedForByName) {
  ASSERT_EQ(sift_quietly(at(server_.url(), "names", {"--slices", "1"}), "order-17\n").status, 0);
  const std::string key = client::spread_keys("names", 1).front();
  EXPECT_EQ(server_.call({"SIFT.TEST", key, "order-17"}).integer(), 1);
  EXPECT_EQ(server_.call({"SIFT.TEST", key, "order-18"}).integer(), 0);
  EXPECT_EQ(server_.call({"SIFT.CARD", key}).integer(), 1);
}

TEST_F(SiftRemote, GoesOnWhereTheLastRunEnded) {
  EXPECT_EQ(sift_quietly(at(server_.url(), "s"), "a\nb\n").out, "a\nb\n");
  EXPECT_EQ(sift_quietly(at(server_.url(), "s"), "b\nc\na\n").out, "c\n");
  EXPECT_EQ(sift_quietly(at(server_.url(), "other"), "a\n").out, "a\n");
  EXPECT_EQ(sift_quietly(at(server_.url(), "s", {"--delivery", "at-most-once"}), "c\nd\n").out,
            "d\n");
}

TEST_F(SiftRemote, TellsWhatItDid) {
  Words words = at(server_.url(), "s");
  words.insert(words.begin(), "sift");
  const Outcome text = run_semel(words, "a\nb\na\n");
  for (const char* part : {"lines            3\n", "first            2\n", "duplicates       1\n",
                           "in 16 slices\n", "1 primary, answers known to no replica\n"}) {
    EXPECT_NE(text.err.find(part), std::string::npos) << text.err;
  }
  words.push_back("--json");
  const Outcome json = run_semel(words, "a\nb\na\n");
  for (const char* part : {"\"first\":0,\"duplicates\":3", "\"primaries\":1", "\"replicas\":0"}) {
    EXPECT_NE(json.err.find(part), std::string::npos) << json.err;
  }
}

TEST_F(SiftRemote, LetsEachKeyThroughAtOneOfManyProducers) {
  for (const char* delivery : {"at-least-once", "at-most-once"}) {
    constexpr int kProducers = 4;
    // All have the same keys, each in an order of its own: they wait for each other.
    const std::string text = lines_of(8'000, 3);
    const auto expected = counts_of(text);
    std::vector<std::string> lines;
    for (const auto& [line, count] : expected) lines.push_back(line);
    std::map<std::string, int> written;
    std::vector<Outcome> outcomes(kProducers);
    {
      std::vector<std::jthread> producers;
      for (int p = 0; p < kProducers; ++p) {
        Random random(static_cast<std::uint64_t>(p));
        for (std::size_t i = lines.size(); i > 1; --i) {
          std::swap(lines[i - 1], lines[random.below(i)]);
        }
        std::string input;
        for (const std::string& line : lines) input += line + '\n';
        producers.emplace_back([&, p, input] {
          outcomes[static_cast<std::size_t>(p)] =
              sift_quietly(at(server_.url(), delivery, {"--delivery", delivery}), input);
        });
      }
    }
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      for (const auto& [line, count] : counts_of(outcome.out)) written[line] += count;
    }
    EXPECT_EQ(written.size(), expected.size()) << delivery;
    for (const auto& [line, count] : written) ASSERT_EQ(count, 1) << delivery << ' ' << line;
  }
}

// A producer is killed while it writes: its claims are not committed.
TEST_F(SiftRemote, LosesNothingWhenAProducerIsKilled) {
  const TemporaryDirectory directory;
  std::string input;
  for (int i = 0; i < 20'000; ++i) input += "event " + std::to_string(i) + '\n';
  const std::string file = directory.write("input", input);
  for (const char* delivery : {"at-least-once", "at-most-once"}) {
    const Words options =
        at(server_.url(), delivery,
           {"-q", "--claim", "10s", "--slices", "1", "--delivery", delivery, file});
    Process producer({.command = sift_words(options)});
    // Nobody reads what it writes: it stops when the pipe is full.
    EXPECT_EQ(producer.read(1), "e");
    producer.wait_until_blocked();
    producer.signal(SIGKILL);
    const Outcome killed = producer.finish();
    ASSERT_EQ(killed.signal, SIGKILL);
    // Its last line is cut off where the pipe was full.
    auto written = counts_of('e' + killed.out.substr(0, killed.out.rfind('\n') + 1));
    ASSERT_GT(written.size(), 0u);
    ASSERT_LT(written.size(), 20'000u);
    const Outcome next = run({.command = sift_words(options)});
    ASSERT_EQ(next.status, 0) << next.err;
    for (const auto& [line, count] : counts_of(next.out)) written[line] += count;
    std::uint64_t twice = 0;
    for (const auto& [line, count] : written) twice += count > 1 ? 1 : 0;
    if (delivery == std::string("at-least-once")) {
      EXPECT_EQ(written.size(), 20'000u);
      EXPECT_GT(twice, 0u);
    } else {
      EXPECT_LT(written.size(), 20'000u);
      EXPECT_EQ(twice, 0u);
    }
  }
}

// A claim that nobody ends is waited for until its end.
TEST_F(SiftRemote, WaitsForAnotherProducersClaim) {
  ASSERT_EQ(sift_quietly(at(server_.url(), "s", {"--slices", "1"}), "z\n").status, 0);
  const std::string key = client::spread_keys("s", 1).front();
  ASSERT_EQ(server_.call({"SIFT.CLAIM", key, "a", "another", "60s"}).text(), "fresh");
  ASSERT_EQ(server_.call({"SIFT.CLAIM", key, "b", "another", "300ms"}).text(), "fresh");
  Process producer({.command = sift_words(at(server_.url(), "s", {"-q", "--slices", "1"})),
                    .input = "a\nb\nc\n"});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_EQ(server_.call({"SIFT.COMMIT", key, "a", "another"}).text(), "done");
  const Outcome outcome = producer.finish();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "b\nc\n");
}

TEST_F(SiftRemote, SaysWhatIsWrongAtTheServer) {
  const auto expect_failure = [](const Outcome& outcome, const std::string& part) {
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  const std::string nobody = "redis://127.0.0.1:" + std::to_string(free_port());
  expect_failure(sift_quietly(at(nobody, "s"), "a\n"), "Connection refused");
  const RedisServer bare;
  expect_failure(sift_quietly(at(bare.url(), "s"), "a\n"), "load the module");
  const RedisServer locked({"--requirepass", "secret"});
  expect_failure(sift_quietly(at(locked.url(), "s"), "a\n"), "NOAUTH");
  const std::string with = "redis://:wrong@" + locked.address().text();
  expect_failure(sift_quietly(at(with, "s"), "a\n"), "WRONGPASS");

  ASSERT_EQ(sift_quietly(at(server_.url(), "s"), "a\n").status, 0);
  const Words other = {"--at", server_.url(), "--stream", "s", "--window", "2h"};
  expect_failure(sift_quietly(other, "a\n"), "was made for a window of 3600000ms, not 7200000ms");
  expect_failure(sift_quietly(at(server_.url(), "s", {"-x"}), "a\n"), "forgetful, not exact");
  expect_failure(sift_quietly(at(server_.url(), "s", {"-e", "1e-3"}), "a\n"), "an error of");
  server_.call({"SET", client::spread_keys("text", 16).back(), "x"});
  expect_failure(sift_quietly(at(server_.url(), "text"), "a\n"), "holds something else");
}

// With another number the keys have other names: it would be another stream.
TEST_F(SiftRemote, RefusesAnotherNumberOfSlices) {
  ASSERT_EQ(sift_quietly(at(server_.url(), "s", {"--slices", "12"}), "a\n").out, "a\n");
  const std::int64_t keys = server_.call({"DBSIZE"}).integer();
  const Outcome other = sift_quietly(at(server_.url(), "s", {"--slices", "8"}), "a\n");
  EXPECT_EQ(other.status, 1);
  EXPECT_EQ(other.out, "");
  EXPECT_NE(other.err.find("s has 12 slices at the server, not 8"), std::string::npos) << other.err;
  EXPECT_EQ(server_.call({"DBSIZE"}).integer(), keys);
  EXPECT_EQ(sift_quietly(at(server_.url(), "s", {"--slices", "12"}), "a\nb\n").out, "b\n");
  for (const char* const wrong : {"many", "", "12 "}) {
    server_.call({"SET", "s:slices", wrong});
    EXPECT_EQ(sift_quietly(at(server_.url(), "s", {"--slices", "12"}), "c\n").status, 1) << wrong;
  }
  server_.call({"DEL", "s:slices"});
  server_.call({"LPUSH", "s:slices", "12"});
  const Outcome list = sift_quietly(at(server_.url(), "s", {"--slices", "12"}), "c\n");
  EXPECT_NE(list.err.find("s:slices holds something else"), std::string::npos) << list.err;
}

// If producers begin at once with different numbers, those with one of the numbers go on.
TEST_F(SiftRemote, AgreesOnTheNumberOfSlicesAmongProducersThatBeginAtOnce) {
  constexpr std::size_t kProducers = 6;
  std::vector<Outcome> outcomes(kProducers);
  {
    std::vector<std::jthread> producers;
    for (std::size_t p = 0; p < kProducers; ++p) {
      producers.emplace_back([&, p] {
        const std::string slices = std::to_string(1 + p % 3);
        outcomes[p] = sift_quietly(at(server_.url(), "s", {"--slices", slices}), "a\n");
      });
    }
  }
  const std::size_t agreed = std::stoul(std::string(server_.call({"GET", "s:slices"}).text())) - 1;
  std::string written;
  for (std::size_t p = 0; p < kProducers; ++p) {
    EXPECT_EQ(outcomes[p].status, p % 3 == agreed ? 0 : 1) << outcomes[p].err;
    written += outcomes[p].out;
  }
  EXPECT_EQ(written, "a\n");
}

TEST_F(SiftRemote, RefusesAnotherNumberOfSlicesInATree) {
  const TemporaryDirectory directory;
  const auto sifted = [&](const std::string& root) {
    const std::string text = "level world " + root + "at URL\nlevel site key 2\n";
    const std::string tree = directory.write("tree", tree_text(text, server_.url()));
    return sift_quietly({"-f", "csv", "-k", "1", "-r", tree, "-w", "1h", "-N", "t"}, "1,a\n");
  };
  ASSERT_EQ(sifted("slices 3 ").out, "1,a\n");
  for (const char* const other : {"", "slices 4 "}) {
    const Outcome outcome = sifted(other);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("t/world has 3 slices at the server, not "), std::string::npos)
        << outcome.err;
  }
  EXPECT_EQ(sifted("slices 3 ").status, 0);
}

TEST_F(SiftRemote, StopsWhenTheServerHasNoRoom) {
  const std::string key = client::spread_keys("small", 1).front();
  ASSERT_EQ(server_
                .call({"SIFT.RESERVE", key, "WINDOW", "1h", "EXACT", "MAXBYTES", "20000",
                       "CAPACITY", "64"})
                .text(),
            "OK");
  const Outcome outcome =
      sift_quietly(at(server_.url(), "small", {"-x", "--slices", "1"}), lines_of(10'000));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("the server has no room"), std::string::npos) << outcome.err;
}

TEST_F(SiftRemote, RefusesWhatDoesNotGoTogether) {
  const std::string url = server_.url();
  expect_usage_error(sift_quietly({"--at", "http://x"}, ""), {"--at", "redis://"});
  expect_usage_error(sift_quietly({"--at", "rediss://x"}, ""), {"--at", "redis://"});
  expect_usage_error(sift_quietly({"--at", url}, ""), {"--stream NAME"});
  expect_usage_error(sift_quietly({"--at", url, "--stream", "s"}, ""), {"--window"});
  expect_usage_error(sift_quietly({"--at", url, "--stream", "{s}", "-w", "1h"}, ""), {"braces"});
  for (const Words& more :
       {Words{"--state", "x"}, Words{"--layout", "vertical"}, Words{"--seed", "7"},
        Words{"-f", "csv", "--time-field", "1"}, Words{"--claim", "10ms"}}) {
    expect_usage_error(sift_quietly(at(url, "s", more), ""), {});
  }
  for (const Words& alone : {Words{"--stream", "s"}, Words{"--replicas", "1"},
                             Words{"--delivery", "at-most-once"}, Words{"--claim", "1m"}}) {
    expect_usage_error(sift_quietly(alone, ""), {alone.front(), "--at"});
  }
}

constexpr const char* kEdges =
    "level world slices 2 at URL\nlevel region key 2 at URL\nlevel site key 3\n";

std::string events(int count, std::uint64_t seed) {
  Random random(seed);
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += std::to_string(random.below(static_cast<std::uint64_t>(count) / 3)) + ',' +
           std::to_string(random.below(3)) + ',' + std::to_string(random.below(4)) + '\n';
  }
  return out;
}

TEST_F(SiftRemote, SiftsThroughATreeWithParentsAtAServer) {
  const TemporaryDirectory directory;
  const std::string input = events(6'000, 7);
  const std::string expected = sift_quietly({"-f", "csv", "-k", "1", "-x"}, input).out;
  int number = 0;
  for (const char* kind : {"kind sparse\n", "kind dense\n"}) {
    const std::string tree =
        directory.write("tree", tree_text(kind + std::string(kEdges), server_.url()));
    for (const char* delivery : {"at-least-once", "at-most-once"}) {
      const Words options = {
          "-f",         "csv",   "-k", "1",  "-r",
          tree,         "-w",    "1h", "-N", std::string("t").append(std::to_string(++number)),
          "--delivery", delivery};
      const Outcome outcome = sift_quietly(options, input);
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_TRUE(outcome.out == expected) << kind << delivery << ": " << outcome.out.size()
                                           << " of " << expected.size() << " bytes\n"
                                           << outcome.err;
      // Another edge, whose leaves know nothing: the parents do.
      EXPECT_EQ(sift_quietly(options, input).out, "") << kind << delivery;
    }
  }
}

TEST_F(SiftRemote, KeepsTheLeavesOfATreeInAState) {
  const TemporaryDirectory directory;
  const std::string tree = directory.write("tree", tree_text(kEdges, server_.url()));
  const std::string state = directory.path() / "state";
  const Words options = {"-f", "csv", "-k", "1", "-r", tree, "-w", "1h", "-N", "t", "-S", state};
  EXPECT_EQ(sift_quietly(options, "1,a,x\n2,a,y\n").out, "1,a,x\n2,a,y\n");
  Words json = options;
  json.insert(json.begin(), "sift");
  json.push_back("-j");
  const Outcome outcome = run_semel(json, "1,a,x\n3,a,x\n");
  EXPECT_EQ(outcome.out, "3,a,x\n");
  // The leaf was in the state, and knew.
  EXPECT_NE(outcome.err.find("\"hits\":1,\"refuted\":0}]"), std::string::npos) << outcome.err;
}

TEST_F(SiftRemote, RefusesTreesThatCannotBe) {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& text, const Words& parts) {
    const std::string tree = directory.write("tree", tree_text(text, server_.url()));
    expect_usage_error(
        sift_quietly({"-f", "csv", "-k", "1", "-r", tree, "-w", "1h", "-N", "t"}, ""), parts);
  };
  refused(std::string("confirm 1\n") + kEdges, {"confirm 0"});
  refused("level a\nlevel b key 2 at URL\n", {"line 2", "from the root"});
  refused("level a at http://x\nlevel b key 2\n", {"line 1", "redis://"});
  const std::string tree = directory.write("tree", tree_text(kEdges, server_.url()));
  expect_usage_error(sift_quietly({"-f", "csv", "-k", "1", "-r", tree, "-w", "1h"}, ""),
                     {"--stream NAME"});
  server_.kill();
  const Outcome gone =
      sift_quietly({"-f", "csv", "-k", "1", "-r", tree, "-w", "1h", "-N", "t"}, "1,a,x\n");
  EXPECT_EQ(gone.status, 1);
  EXPECT_NE(gone.err.find("Connection refused"), std::string::npos) << gone.err;
}

TEST(SiftCluster, SpreadsItsSlicesEvenly) {
  const RedisCluster servers(3, with_module());
  const std::string input = lines_of(5'000, 5);
  const Words options = at(servers.node(0).url(), "s", {"--slices", "12"});
  const Outcome outcome = run({.command = sift_words(options), .input = input});
  EXPECT_EQ(outcome.out, sift_quietly({}, input).out);
  EXPECT_NE(outcome.err.find("3 primaries, answers known to 1 replica\n"), std::string::npos)
      << outcome.err;
  for (const std::size_t primary : servers.primaries()) {
    EXPECT_EQ(servers.node(primary).call({"KEYS", "s:{*}"}).size(), 4u) << primary;
  }
}

// Two producers of one stream work while one primary after another is killed. SEMEL_KILLS sets the
// number of kills; the figures in docs/cluster.md are for 20.
TEST(SiftCluster, LetsEachKeyThroughOnceThoughPrimariesDie) {
  const auto kills = static_cast<int>(setting("SEMEL_KILLS", 2));
  for (const std::string delivery : {"at-least-once", "at-most-once"}) {
    RedisCluster servers(3, with_module());
    const Words options = at(servers.url(), "s", {"-q", "--slices", "12", "--delivery", delivery});
    constexpr std::size_t kProducers = 2;
    std::atomic<bool> enough = false;
    std::vector<Outcome> outcomes(kProducers);
    std::vector<std::string> inputs(kProducers);
    {
      std::vector<std::jthread> producers;
      for (std::size_t p = 0; p < kProducers; ++p) {
        producers.emplace_back([&, p] {
          Process producer({.command = sift_words(options), .timeout = std::chrono::minutes(10)});
          Random random(p);
          for (std::uint64_t first = 0; !enough; first += 20) {
            std::string lines;
            // Each key comes some three times, at either of them.
            for (int i = 0; i < 50; ++i) {
              lines += "event " + std::to_string(first + random.below(60)) + '\n';
            }
            inputs[p] += lines;
            producer.write(lines);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          outcomes[p] = producer.finish();
        });
      }
      Random random(11);
      for (int i = 0; i < kills; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200 + random.below(300)));
        const std::vector<std::size_t> primaries = servers.primaries();
        const std::size_t primary = primaries[random.below(primaries.size())];
        servers.node(primary).kill();
        servers.wait_until_ok();
        servers.node(primary).start();
        servers.wait_until_ok();
      }
      enough = true;
    }
    std::map<std::string, int> written;
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      for (const auto& [line, count] : counts_of(outcome.out)) written[line] += count;
    }
    const std::size_t keys = counts_of(inputs[0] + inputs[1]).size();
    std::uint64_t twice = 0;
    for (const auto& [line, count] : written) twice += count > 1 ? 1 : 0;
    std::printf("%s: %d kills, %zu keys, %zu lost, %llu twice\n", delivery.c_str(), kills, keys,
                keys - written.size(), static_cast<unsigned long long>(twice));
    EXPECT_EQ(twice, 0u) << delivery;
    if (delivery == "at-least-once") {
      EXPECT_EQ(written.size(), keys);
    }
    // A key that was acknowledged as seen stays seen.
    const Outcome again = run({.command = sift_words(options), .input = inputs[0] + inputs[1]});
    if (delivery == "at-least-once") {
      EXPECT_EQ(again.out, "");
    }
    for (const auto& [line, count] : counts_of(again.out)) {
      EXPECT_FALSE(written.contains(line)) << line;
    }
  }
}

}  // namespace
}  // namespace semel
