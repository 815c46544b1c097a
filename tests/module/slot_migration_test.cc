// Slots that Valkey moves from one primary to another at once (CLUSTER MIGRATESLOTS), while clients
// use the keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/cluster.h"
#include "client/slot.h"
#include "semel/core/internal/random.h"
#include "tests/module/module_server.h"
#include "tests/module/replicas.h"
#include "tests/module/samples.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

using client::Repeat;

constexpr std::uint32_t kMiddle = 8192;  // the first shard has the slots below

Words cluster_arguments(Words more = {}) {
  more.insert(more.end(),
              {"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
               "--cluster-node-timeout", "5000", "--cluster-allow-replica-migration", "no",
               "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0"});
  return with_module(std::move(more));
}

// A tag whose slot is in the half of the slots that begins here.
std::string tag_in(std::uint32_t first) {
  int number = 0;
  std::string tag = "0";
  while (client::slot_of(tag) < first || client::slot_of(tag) >= first + kMiddle) {
    tag = std::to_string(++number);
  }
  return "{" + tag + "}";
}

// Returns why the tests cannot run here, or nothing.
std::string reason_to_skip() {
  const RedisServer server(cluster_arguments());
  Talk talk(server);
  if (talk("CLUSTER MIGRATESLOTS") ==
      "-ERR wrong number of arguments for 'cluster|migrateslots' "
      "command") {
    return "";
  }
  return "the server has no CLUSTER MIGRATESLOTS";
}

// Two shards. The first has neither replicas nor an AOF file, so that only an export listens. The
// second has both.
class SlotMigration : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { skip_reason() = reason_to_skip(); }

  void SetUp() override {
    if (!skip_reason().empty()) GTEST_SKIP() << skip_reason();
    const Words databases = {"--cluster-databases", "4"};
    first_.emplace(cluster_arguments(databases));
    second_.emplace(cluster_arguments(
        {"--cluster-databases", "4", "--appendonly", "yes", "--appendfsync", "always"}));
    replica_.emplace(cluster_arguments(databases));
    call(*first_, {"CLUSTER", "ADDSLOTSRANGE", "0", std::to_string(kMiddle - 1)});
    call(*second_, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(kMiddle), "16383"});
    int epoch = 0;
    for (const RedisServer* const node : nodes()) {
      call(*node, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(++epoch)});
      if (node == &*first_) continue;
      call(*node, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(first_->port())});
    }
    for (const RedisServer* const node : nodes()) {
      Talk talk(*node);
      ASSERT_TRUE(eventually([&] {
        const std::string known = talk("CLUSTER NODES");
        return known.find("handshake") == std::string::npos &&
               std::count(known.begin(), known.end(), '@') == 3;
      }));
    }
    call(*replica_, {"CLUSTER", "REPLICATE", id(*second_)});
    expect_in_step(*second_, *replica_);
    wait_for_slots(*second_, kMiddle, 16383);
    for (const RedisServer* const node : nodes()) {
      Talk talk(*node);
      ASSERT_TRUE(eventually([&] {
        return talk("CLUSTER INFO").find("cluster_state:ok") != std::string::npos &&
               talk("CLUSTER INFO").find("cluster_slots_ok:16384") != std::string::npos;
      }));
    }
  }

  void TearDown() override {
    for (const RedisServer* const node : nodes()) {
      if (node == nullptr || !node->running()) continue;
      Talk talk(*node);
      if (!sends_damage_) {
        EXPECT_EQ(info(talk, "semel", "semel_effects_failed"), 0) << node->log();
        EXPECT_EQ(node->log().find("CRITICAL"), std::string::npos) << node->log();
      }
      EXPECT_EQ(info(talk, "semel", "semel_staged_keys"), 0);
      EXPECT_EQ(info(talk, "semel", "semel_staged_bytes"), 0);
    }
  }

  std::vector<const RedisServer*> nodes() const {
    if (!replica_) return {};
    return {&*first_, &*second_, &*replica_};
  }

  static std::string call(const RedisServer& server, const Words& words) {
    Talk talk(server);
    const Answer answer = talk.call(words);
    EXPECT_FALSE(answer.is_error()) << answer.shown();
    return answer.text;
  }
  static std::string id(const RedisServer& server) { return call(server, {"CLUSTER", "MYID"}); }

  // Waits until all nodes know that this one has the slots.
  void wait_for_slots(const RedisServer& owner, std::uint32_t first, std::uint32_t last) {
    const std::string name = id(owner);
    for (const RedisServer* const node : nodes()) {
      Talk talk(*node);
      ASSERT_TRUE(eventually([&] {
        for (const Answer& range : talk.call({"CLUSTER", "SLOTS"}).parts) {
          if (range.parts[0].integer() <= first && last <= range.parts[1].integer() &&
              range.parts[2].parts[2].text == name) {
            return true;
          }
        }
        return false;
      }));
    }
  }

  // Returns the fields of the last migration that a node knows, by their names.
  static std::map<std::string, std::string> last_migration(Talk& talk) {
    std::map<std::string, std::string> fields;
    const Answer all = talk.call({"CLUSTER", "GETSLOTMIGRATIONS"});
    if (all.parts.empty()) return fields;
    const std::vector<Answer>& last = all.parts[0].parts;
    for (std::size_t i = 0; i + 1 < last.size(); i += 2) {
      fields[last[i].text] =
          last[i + 1].type == ':' ? std::to_string(last[i + 1].integer()) : last[i + 1].text;
    }
    return fields;
  }
  static std::string state(Talk& talk) { return last_migration(talk)["state"]; }

  void begin(const RedisServer& from, const RedisServer& to) {
    Talk talk(from);
    ASSERT_EQ(talk("CLUSTER MIGRATESLOTS SLOTSRANGE 0 " + std::to_string(kMiddle - 1) + " NODE " +
                   id(to)),
              "+OK");
  }

  // Moves the lower half of the slots.
  void move(const RedisServer& from, const RedisServer& to) {
    begin(from, to);
    wait_for_success(from);
    wait_for_slots(to, 0, kMiddle - 1);
  }

  static void wait_for_success(const RedisServer& node) {
    Talk talk(node);
    ASSERT_TRUE(eventually([&] {
      const std::string now = state(talk);
      return now == "success" || now == "failed" || now == "cancelled";
    }));
    ASSERT_EQ(state(talk), "success") << last_migration(talk)["message"] << node.log();
  }

  client::Url url() const {
    return *client::parse_url("redis://" + first_->address().text() + ',' +
                              second_->address().text());
  }

  static std::string& skip_reason() {
    static std::string reason;
    return reason;
  }
  bool sends_damage_ = false;
  std::optional<RedisServer> first_, second_, replica_;
};

// Clients that send every operation twice: the first time it is new, the second time it is known.
class Twice {
 public:
  explicit Twice(const client::Url& url) {
    for (int i = 0; i < kClients; ++i) {
      reports_.emplace_back();
    }
    for (int i = 0; i < kClients; ++i) {
      threads_.emplace_back([this, url, i] { run(url, i, reports_[static_cast<std::size_t>(i)]); });
    }
  }

  // What the keys must hold.
  struct Report {
    std::map<std::string, std::int64_t> sums;             // by table
    std::map<std::string, std::vector<std::string>> ids;  // by key of another type
    std::vector<std::string> claims;                      // that are open
    std::vector<std::string> problems;
    std::uint64_t redirected = 0;
    std::uint64_t operations = 0;
  };

  Report finish() {
    enough_ = true;
    threads_.clear();
    Report all;
    for (Report& one : reports_) {
      for (const auto& [key, sum] : one.sums) all.sums[key] += sum;
      for (const auto& [key, ids] : one.ids) {
        all.ids[key].insert(all.ids[key].end(), ids.begin(), ids.end());
      }
      all.claims.insert(all.claims.end(), one.claims.begin(), one.claims.end());
      all.problems.insert(all.problems.end(), one.problems.begin(), one.problems.end());
      all.redirected += one.redirected;
      all.operations += one.operations;
    }
    return all;
  }

  // The keys are in both halves of the slots, so that some always move and some never.
  static const std::vector<std::string>& tags() {
    static const std::vector<std::string> kTags = {tag_in(0), tag_in(kMiddle)};
    return kTags;
  }

  static void reserve(client::Cluster& cluster) {
    for (const std::string& tag : tags()) {
      for (const std::string& line :
           {"TALLY.RESERVE " + tag + "opaque ERROR 1e-12 CAPACITY 100000 WINDOW 1h",
            "TALLY.RESERVE " + tag + "exact EXACT CAPACITY 100000 WINDOW 1h",
            "SIFT.RESERVE " + tag + "sift ERROR 1e-12 CAPACITY 100000 WINDOW 1h",
            "BF.RESERVE " + tag + "bloom 1e-12 1000", "CF.RESERVE " + tag + "cuckoo 1000"}) {
        client::Command command;
        for (const std::string& word : words_of(line)) command.add(word);
        const auto reply = cluster.call(tag, std::move(command), Repeat::safe);
        ASSERT_TRUE(reply && !reply->is_error()) << (reply ? reply->excerpt() : "no answer");
      }
    }
  }

 private:
  static constexpr int kClients = 3;

  void run(const client::Url& url, int number, Report& report) {
    client::Cluster cluster(url, {.seed = static_cast<std::uint64_t>(number)});
    if (const Result<void> connected = cluster.connect(); !connected) {
      return report.problems.push_back(connected.error().message());
    }
    Random random(static_cast<std::uint64_t>(number) + 1);
    const std::string owner = "owner" + std::to_string(number);
    // Returns the word or number that the answer is, or its last element.
    const auto ask = [&](const std::string& key, const Words& words) -> std::string {
      client::Command command;
      for (const std::string& word : words) command.add(word);
      const auto reply = cluster.call(key, std::move(command), Repeat::never);
      if (!reply) return reply.error().message();
      const auto shown = [](const client::ReplyView& view) {
        return view.kind() == client::ReplyKind::integer ? std::to_string(view.integer())
                                                         : std::string(view.text());
      };
      return reply->size() > 0 ? shown(reply->at(reply->size() - 1)) : shown(reply->view());
    };
    const auto twice = [&](const std::string& key, const Words& words, const char* first,
                           const char* second) {
      ++report.operations;
      for (const char* const expected : {first, second}) {
        const std::string answer = ask(key, words);
        if (answer == expected) continue;
        std::string& problem = report.problems.emplace_back(words[0]);
        for (const std::string& word : {key, words.back(), answer})
          problem.append(" ").append(word);
        problem.append(" in place of ").append(expected);
      }
    };
    for (std::uint64_t i = 0; !enough_ && report.problems.size() < 5; ++i) {
      const std::string& tag = tags()[random.below(tags().size())];
      const std::string name = owner + '/' + std::to_string(i);
      const std::int64_t delta = 1 + static_cast<std::int64_t>(random.below(9));
      const std::string by = std::to_string(delta);
      for (const char* const table : {"opaque", "exact"}) {
        twice(tag + table, {"TALLY.INCRBY", tag + table, "c", by, "ID", name}, "applied",
              "duplicate");
        report.sums[tag + table] += delta;
      }
      twice(tag + "numbered",
            {"TALLY.INCRBY", tag + "numbered", "c", by, "OP", owner, std::to_string(i + 1)},
            "applied", "duplicate");
      report.sums[tag + "numbered"] += delta;
      twice(tag + "sift", {"SIFT.ADD", tag + "sift", name}, "1", "0");
      twice(tag + "bloom", {"BF.ADD", tag + "bloom", name}, "1", "0");
      twice(tag + "cuckoo", {"CF.ADDNX", tag + "cuckoo", name}, "1", "0");
      for (const char* const key : {"sift", "bloom", "cuckoo"}) {
        report.ids[tag + key].push_back(name);
      }
      const std::string claimed = name + "/claim";
      twice(tag + "sift", {"SIFT.CLAIM", tag + "sift", claimed, owner, "1h"}, "fresh", "fresh");
      if (random.below(2) == 0) {
        report.claims.push_back(std::string(tag).append("sift ").append(claimed));
      } else {
        twice(tag + "sift", {"SIFT.COMMIT", tag + "sift", claimed, owner}, "done", "seen");
        report.ids[tag + "sift"].push_back(claimed);
      }
    }
    report.redirected = cluster.counts().moved + cluster.counts().asked;
  }

  std::atomic<bool> enough_ = false;
  std::vector<Report> reports_;
  std::vector<std::jthread> threads_;
};

TEST_F(SlotMigration, LeavesValuesOfEveryTypeAsTheyAre) {
  const std::string tag = tag_in(0);
  const auto key_of = [&](const Sample& sample) { return tag + std::string(sample.name); };
  Talk talk(*first_), there(*second_), behind(*replica_);
  for (const Sample& sample : samples()) {
    ASSERT_TRUE(make_sample(talk, sample, key_of(sample))) << sample.name;
  }
  ASSERT_EQ(talk("PEXPIREAT " + key_of(samples()[0]) + " 4000000000000"), "1");
  ASSERT_EQ(talk("BF.RESERVE " + tag + "large 0.001 3000000"), "+OK");  // several pieces
  ASSERT_EQ(talk("BF.ADD " + tag + "large item"), "1");
  const Digests before = digests(talk);
  ASSERT_EQ(talk("SELECT 3"), "+OK");
  ASSERT_EQ(talk("TALLY.INCRBY " + tag + "other c 5 ID x"), "[5, \"applied\"]");
  ASSERT_EQ(talk("SELECT 0"), "+OK");
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(move(*first_, *second_));
    ASSERT_EQ(there("SELECT 3"), "+OK");
    EXPECT_EQ(there("TALLY.INCRBY " + tag + "other c 5 ID x"), "[5, \"duplicate\"]");
    ASSERT_EQ(there("SELECT 0"), "+OK");
    expect_equal(digests(there), before);
    expect_in_step(*second_, *replica_);
    ASSERT_EQ(behind("READONLY"), "+OK");
    expect_equal(digests(behind), before);
    EXPECT_EQ(there("PEXPIRETIME " + key_of(samples()[0])), "4000000000000");
    for (const Sample& sample : samples()) {
      EXPECT_EQ(there(filled(sample.read, key_of(sample))), sample.answer) << sample.name;
    }
    ASSERT_NO_FATAL_FAILURE(move(*second_, *first_));
    expect_equal(digests(talk), before);
    ASSERT_TRUE(eventually([&] { return there("DBSIZE") == "0"; }));
  }
}

// SEMEL_MOVES sets how often the slots move.
TEST_F(SlotMigration, LosesAndDoublesNothing) {
  client::Cluster cluster(url());
  ASSERT_TRUE(cluster.connect());
  ASSERT_NO_FATAL_FAILURE(Twice::reserve(cluster));
  Twice clients(url());
  const std::uint64_t moves = setting("SEMEL_MOVES", 3) | 1;  // there, and back, and there
  for (std::uint64_t i = 1; i <= moves; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ASSERT_NO_FATAL_FAILURE(move(*first_, *second_));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (i == moves) break;
    ASSERT_NO_FATAL_FAILURE(move(*second_, *first_));
  }
  const Twice::Report report = clients.finish();
  for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
  EXPECT_GT(report.redirected, 0u);
  std::printf("%llu moves, %llu operations, each sent twice, %llu redirections\n",
              static_cast<unsigned long long>(moves),
              static_cast<unsigned long long>(report.operations),
              static_cast<unsigned long long>(report.redirected));

  const auto check = [&] {
    Talk talk(*second_);
    for (const auto& [table, sum] : report.sums) {
      EXPECT_EQ(talk("TALLY.GET " + table + " c"), std::to_string(sum)) << table;
    }
    for (const auto& [key, ids] : report.ids) {
      const std::string family = key.substr(key.find('}') + 1);
      const char* const test = family == "sift"    ? "SIFT.TEST"
                               : family == "bloom" ? "BF.EXISTS"
                                                   : "CF.EXISTS";
      std::size_t missing = 0;
      for (const std::string& known : ids) missing += talk.call({test, key, known}).shown() != "1";
      EXPECT_EQ(missing, 0u) << key;
      if (family == "bloom") {
        EXPECT_EQ(talk("BF.CARD " + key), std::to_string(ids.size()));
      }
    }
    std::size_t lost_claims = 0;
    for (const std::string& claim : report.claims) {
      lost_claims += talk("SIFT.CLAIM " + claim + " another 1h") != "\"pending\"";
    }
    EXPECT_EQ(lost_claims, 0u);
  };
  check();
  expect_in_step(*second_, *replica_);
  Digests expected;
  {
    Talk talk(*second_), behind(*replica_);
    expected = digests(talk);
    EXPECT_EQ(expected.size(), 12u);
    expect_equal(digests(behind), expected);
  }
  second_->kill();
  second_->start();
  second_->wait_until_ready();
  Talk talk(*second_);
  ASSERT_TRUE(eventually(
      [&] { return !talk("TALLY.GET " + Twice::tags()[0] + "opaque c").starts_with('-'); }));
  expect_equal(digests(talk), expected);
  check();
}

// The source has neither replicas nor an AOF file. What it sends all the same are effects: a plain
// command would make another filter at the replica of the target than at the target.
TEST_F(SlotMigration, SendsEffects) {
  Talk talk(*first_), there(*second_), behind(*replica_);
  ASSERT_EQ(talk("DEBUG SLOTMIGRATION PREVENT-PAUSE 1"), "+OK");
  ASSERT_NO_FATAL_FAILURE(begin(*first_, *second_));
  ASSERT_TRUE(eventually([&] { return !state(there).empty(); }));
  // Longer than the module takes to find out that there are no replicas.
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  const std::string tag = tag_in(0);
  for (const Sample& sample : samples()) {
    ASSERT_TRUE(make_sample(talk, sample, tag + std::string(sample.name))) << sample.name;
  }
  ASSERT_EQ(talk("BF.LIKE " + tag + "like " + tag + "Bloom"), "+OK");
  ASSERT_EQ(talk("BF.MERGE " + tag + "merged " + tag + "like " + tag + "Bloom"), "+OK");
  const Digests expected = digests(talk);
  EXPECT_EQ(there("DBSIZE"), "0");
  ASSERT_EQ(talk("DEBUG SLOTMIGRATION PREVENT-PAUSE 0"), "+OK");
  ASSERT_NO_FATAL_FAILURE(wait_for_success(*first_));
  wait_for_slots(*second_, 0, kMiddle - 1);
  expect_in_step(*second_, *replica_);
  ASSERT_EQ(behind("READONLY"), "+OK");
  expect_equal(digests(there), expected);
  expect_equal(digests(behind), expected);
}

// A merge runs in steps. If its key leaves between two of them, the client is told to try again,
// and is then sent to the new node.
TEST_F(SlotMigration, EndsAMergeWhoseKeyHasMoved) {
  const std::string tag = tag_in(0);
  Talk talk(*first_), there(*second_), behind(*replica_);
  ASSERT_EQ(talk("BF.RESERVE " + tag + "a 0.001 50000000"), "+OK");
  ASSERT_EQ(talk("BF.ADD " + tag + "a item"), "1");
  ASSERT_EQ(talk("BF.LIKE " + tag + "d " + tag + "a"), "+OK");
  ASSERT_EQ(talk("DEBUG SLOTMIGRATION PREVENT-PAUSE 1"), "+OK");
  ASSERT_NO_FATAL_FAILURE(begin(*first_, *second_));
  ASSERT_TRUE(eventually([&] { return info(there, "semel", "semel_bf_keys") == 2; }));
  std::string merge = "BF.MERGE " + tag + 'd';
  for (int i = 0; i < 400; ++i) merge += ' ' + tag + 'a';
  Talk merging(*first_);
  merging.send(words_of(merge));
  ASSERT_TRUE(eventually([&] { return talk("BF.EXISTS " + tag + "d item") == "1"; }));
  EXPECT_EQ(info(talk, "semel", "semel_jobs_started"), 1);
  ASSERT_EQ(talk("DEBUG SLOTMIGRATION PREVENT-PAUSE 0"), "+OK");
  ASSERT_NO_FATAL_FAILURE(wait_for_success(*first_));
  wait_for_slots(*second_, 0, kMiddle - 1);
  EXPECT_EQ(merging.read().shown(),
            "-TRYAGAIN the key has moved to another node. The steps done so far stay.");
  EXPECT_TRUE(merging(merge).starts_with("-MOVED"));
  EXPECT_EQ(there("BF.EXISTS " + tag + "d item"), "1");
  expect_in_step(*second_, *replica_);
  ASSERT_EQ(behind("READONLY"), "+OK");
  expect_equal(digests(behind), digests(there));
}

// Returns the commands in a file of RESP.
std::vector<Words> commands_in(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<Words> commands;
  const auto number = [&] {
    std::string line;
    std::getline(file, line);
    return line.size() < 2 ? 0 : std::stoul(line.substr(1));
  };
  while (file.peek() == '*') {
    Words& words = commands.emplace_back(number());
    for (std::string& word : words) {
      word.resize(number());
      file.read(word.data(), static_cast<std::streamsize>(word.size()));
      file.ignore(2);
    }
  }
  return commands;
}

// A value of several pieces: its commands in an AOF file, and its digest.
struct Large {
  std::string key;
  std::vector<Words> pieces;
  std::string digest;
};

Large large_value(const std::string& name = "large") {
  Large large{.key = tag_in(0) + name, .pieces = {}, .digest = {}};
  const RedisServer server(with_module({"--appendonly", "yes", "--aof-use-rdb-preamble", "no"}));
  Talk talk(server);
  EXPECT_EQ(talk("BF.RESERVE " + large.key + " 0.01 30000000"), "+OK");
  EXPECT_EQ(talk("BF.ADD " + large.key + " item"), "1");
  large.digest = digests(talk)[large.key];
  rewrite_aof(talk);
  for (const auto& entry :
       std::filesystem::directory_iterator(server.directory() / "appendonlydir")) {
    if (entry.path().string().find(".base.") == std::string::npos) continue;
    for (const Words& command : commands_in(entry.path())) {
      if (command.at(0) == "SEMEL.LOAD") large.pieces.push_back(command);
    }
  }
  EXPECT_GE(large.pieces.size(), 3u);
  return large;
}

// The test in place of a source, so that it stops where it wants to.
class Source {
 public:
  Source(const RedisServer& target, const std::string& id) : talk_(target) {
    const std::string name(40, 'a');
    const std::string last = std::to_string(kMiddle - 1);
    EXPECT_EQ(talk_("CLUSTER SYNCSLOTS ESTABLISH SOURCE " + id + " NAME " + name +
                    " SLOTSRANGE 0 " + last),
              "+OK");
    talk_.send(words_of("CLUSTER SYNCSLOTS ACK"));
    talk_.send(words_of("SELECT 0"));
  }
  void send(const Words& command) const { talk_.send(command); }
  void hand_over() const {
    for (const char* const word : {"SNAPSHOT-EOF", "PAUSED", "FAILOVER-GRANTED"}) {
      talk_.send({"CLUSTER", "SYNCSLOTS", word});
    }
  }

 private:
  Talk talk_;
};

class HalfArrived : public SlotMigration {
 protected:
  static std::int64_t staged(const RedisServer& server) {
    Talk talk(server);
    return info(talk, "semel", "semel_staged_keys");
  }
  static std::int64_t staged_bytes(const RedisServer& server) {
    Talk talk(server);
    return info(talk, "semel", "semel_staged_bytes");
  }
  static void wait_for_staged(const RedisServer& server, std::int64_t keys) {
    ASSERT_TRUE(eventually([&] { return staged(server) == keys; }));
  }

  // Sends all but the last piece, and waits until it has arrived at the target and at its replica.
  void send_first_pieces(const Source& source) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i + 1 < large_.pieces.size(); ++i) {
      source.send(large_.pieces[i]);
      bytes += static_cast<std::int64_t>(large_.pieces[i][5].size());
    }
    for (const RedisServer* const server : {&*second_, &*replica_}) {
      ASSERT_TRUE(eventually([&] { return staged_bytes(*server) == bytes; }));
      EXPECT_EQ(staged(*server), 1);
    }
  }

  void expect_nothing_left(const RedisServer& server) {
    wait_for_staged(server, 0);
    EXPECT_EQ(staged_bytes(server), 0);
    Talk talk(server);
    EXPECT_TRUE(eventually([&] { return talk("DBSIZE") == "0"; }));
    EXPECT_EQ(talk("KEYS *"), "[]");
    EXPECT_EQ(info(talk, "semel", "semel_bf_keys"), 0);
  }

  const Large large_ = large_value();
};

TEST_F(HalfArrived, ValuesAreInvisibleAndVanishWithTheirSource) {
  {
    const Source source(*second_, id(*first_));
    source.send({"SET", tag_in(0) + "string", "1"});
    send_first_pieces(source);
    Talk talk(*second_);
    EXPECT_EQ(talk("KEYS *"), "[]");
    EXPECT_EQ(talk("DBSIZE"), "0");
    EXPECT_TRUE(talk("BF.EXISTS " + large_.key + " item").starts_with("-MOVED"));
    EXPECT_EQ(info(talk, "semel", "semel_bf_keys"), 0);
    replica_->kill();
    replica_->start();  // it synchronises in full, with what is staged
    wait_for_staged(*replica_, 1);
  }
  Talk talk(*second_);
  ASSERT_TRUE(eventually([&] { return state(talk) == "failed"; }));
  expect_nothing_left(*second_);
  expect_nothing_left(*replica_);
  second_->kill();
  second_->start();
  second_->wait_until_ready();
  expect_nothing_left(*second_);
}

TEST_F(HalfArrived, ValuesBecomeCompleteWhateverHappensMeanwhile) {
  const Source source(*second_, id(*first_));
  send_first_pieces(source);
  replica_->kill();
  replica_->start();  // it synchronises in full
  wait_for_staged(*replica_, 1);
  Talk talk(*second_);
  rewrite_aof(talk);
  EXPECT_EQ(staged(*second_), 1);
  source.send(large_.pieces.back());
  source.hand_over();
  ASSERT_NO_FATAL_FAILURE(wait_for_success(*second_));
  wait_for_slots(*second_, 0, kMiddle - 1);
  expect_in_step(*second_, *replica_);
  const Digests expected = {{large_.key, large_.digest}};
  Talk behind(*replica_);
  EXPECT_EQ(digests(talk), expected);
  EXPECT_EQ(digests(behind), expected);
  EXPECT_EQ(staged(*second_), 0);
  EXPECT_EQ(staged(*replica_), 0);
  second_->kill();
  second_->start();
  second_->wait_until_ready();
  Talk again(*second_);
  EXPECT_EQ(digests(again), expected);
  ASSERT_TRUE(eventually([&] { return again("BF.EXISTS " + large_.key + " item") == "1"; }));
}

TEST_F(HalfArrived, ValuesVanishWithARestartOfTheTarget) {
  for (const bool rewritten : {false, true}) {
    const Source source(*second_, id(*first_));
    send_first_pieces(source);
    if (rewritten) {
      Talk talk(*second_);
      ASSERT_TRUE(
          eventually([&] { return info(talk, "persistence", "rdb_bgsave_in_progress") == 0; }));
      rewrite_aof(talk);
    }
    second_->kill();
    second_->start();
    second_->wait_until_ready();
    expect_nothing_left(*second_);
    expect_in_step(*second_, *replica_);
    expect_nothing_left(*replica_);
  }
}

TEST_F(HalfArrived, PiecesThatAreDamagedEndTheImport) {
  sends_damage_ = true;
  std::vector<std::vector<Words>> cases;
  {
    const std::vector<Words>& good = large_.pieces;
    cases.push_back({good[0], good[2]});           // one is missing
    cases.push_back({good[1]});                    // the first one is missing
    cases.push_back({good[0], good[1], good[1]});  // one comes twice
    cases.push_back({good[0], good[1]});           // a flipped bit
    cases.back()[1][5][1000] = static_cast<char>(cases.back()[1][5][1000] ^ 1);
    cases.push_back({good[0]});  // another key
    cases.back()[0][1] += "x";
    cases.push_back({{"SEMEL.LOAD", large_.key}});
    cases.push_back({{"SEMEL.AT", "1", "1", "NO.SUCH", large_.key}});
    cases.push_back(
        {{"SEMEL.AT", "1", "12345", "SIFT.ADD", large_.key, "x"}});  // the wrong witness
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    Talk talk(*second_);
    const Source source(*second_, id(*first_));
    for (const Words& command : cases[i]) source.send(command);
    ASSERT_TRUE(eventually([&] { return state(talk) == "failed"; }));
    expect_nothing_left(*second_);
    expect_nothing_left(*replica_);
  }
}

TEST_F(HalfArrived, ValuesOfSeveralKeysMayComeMixed) {
  const Large other = large_value("other");
  const Large begun_again = large_value();  // has another secret
  ASSERT_EQ(other.pieces.size(), large_.pieces.size());
  const Source source(*second_, id(*first_));
  source.send(large_.pieces[0]);
  source.send(large_.pieces[1]);
  for (std::size_t i = 0; i < other.pieces.size(); ++i) {
    source.send(other.pieces[i]);
    source.send(begun_again.pieces[i]);
  }
  source.hand_over();
  Talk talk(*second_);
  ASSERT_NO_FATAL_FAILURE(wait_for_success(*second_));
  const Digests expected = {{other.key, other.digest}, {begun_again.key, begun_again.digest}};
  EXPECT_EQ(digests(talk), expected);
  expect_in_step(*second_, *replica_);
  Talk behind(*replica_);
  EXPECT_EQ(digests(behind), expected);
}

TEST_F(HalfArrived, ValuesVanishIfTheTargetHasNoMemory) {
  Talk talk(*second_);
  const std::int64_t used = info(talk, "memory", "used_memory");
  ASSERT_EQ(talk("CONFIG SET maxmemory " + std::to_string(used + (1 << 20))), "+OK");
  const Source source(*second_, id(*first_));
  for (const Words& piece : large_.pieces) source.send(piece);
  ASSERT_TRUE(eventually([&] { return state(talk) == "failed"; }));
  EXPECT_NE(last_migration(talk)["message"].find("OOM"), std::string::npos);
  expect_nothing_left(*second_);
  expect_nothing_left(*replica_);
}

TEST_F(HalfArrived, ValuesVanishWhenTheMigrationIsCancelledOrItsSourceDies) {
  for (const bool dies : {false, true}) {
    SCOPED_TRACE(dies);
    Talk talk(*first_), there(*second_);
    talk("FLUSHALL");
    ASSERT_EQ(talk("DEBUG SLOTMIGRATION PREVENT-PAUSE 1"), "+OK");
    const std::string tag = tag_in(0);
    for (int i = 0; i < 8; ++i) {
      const std::string key = tag + std::to_string(i);
      ASSERT_EQ(talk("BF.RESERVE " + key + " 0.01 30000000"), "+OK");
      ASSERT_EQ(talk("BF.ADD " + key + " item"), "1");
    }
    ASSERT_NO_FATAL_FAILURE(begin(*first_, *second_));
    // Some have arrived, and others are on their way.
    ASSERT_TRUE(eventually([&] { return info(there, "semel", "semel_bf_keys") > 0; }));
    if (dies) {
      first_->kill();
    } else {
      ASSERT_EQ(talk("CLUSTER CANCELSLOTMIGRATIONS"), "+OK");
    }
    ASSERT_TRUE(eventually([&] { return state(there) == "failed"; }));
    expect_nothing_left(*second_);
    expect_in_step(*second_, *replica_);
    expect_nothing_left(*replica_);
    if (dies) break;
    EXPECT_EQ(talk("BF.EXISTS " + tag + "1 item"), "1");
    ASSERT_EQ(talk("DEBUG SLOTMIGRATION PREVENT-PAUSE 0"), "+OK");
    ASSERT_NO_FATAL_FAILURE(move(*first_, *second_));
    EXPECT_EQ(there("BF.EXISTS " + tag + "1 item"), "1");
    ASSERT_NO_FATAL_FAILURE(move(*second_, *first_));
  }
}

// A part of a value is a key like others where no import removes it: in a file that an ordinary
// server loads.
TEST(Staged, ValuesCanOnlyBeCompletedOrDeleted) {
  const Large large = large_value();
  RedisServer server(with_module({"--appendonly", "yes", "--aof-use-rdb-preamble", "no"}));
  server.stop();
  std::ofstream aof(server.directory() / "appendonlydir" / "appendonly.aof.1.incr.aof",
                    std::ios::app | std::ios::binary);
  const auto write = [&](const Words& words) {
    aof << '*' << words.size() << "\r\n";
    for (const std::string& word : words) aof << '$' << word.size() << "\r\n" << word << "\r\n";
  };
  write({"SELECT", "0"});
  for (std::size_t i = 0; i < 2; ++i) {
    Words piece = large.pieces[i];
    piece.emplace_back("IMPORT");
    write(piece);
  }
  aof.close();
  server.start();
  const std::string& key = large.key;
  for (const bool again : {false, true}) {
    SCOPED_TRACE(again);
    Talk talk(server);
    EXPECT_EQ(talk("TYPE " + key), "+SMLstaged");
    EXPECT_EQ(info(talk, "semel", "semel_staged_keys"), 1);
    EXPECT_EQ(info(talk, "semel", "semel_staged_bytes"), 2 << 20);
    EXPECT_GT(std::stoll(talk("MEMORY USAGE " + key)), 2 << 20);
    for (const char* const command : {"BF.ADD", "CF.ADD", "SIFT.ADD", "TALLY.GET"}) {
      EXPECT_TRUE(talk(std::string(command) + ' ' + key + " x").starts_with("-WRONGTYPE"));
    }
    EXPECT_TRUE(talk("COPY " + key + " copy").starts_with("-ERR"));
    const Answer dump = talk.call({"DUMP", key});
    EXPECT_TRUE(talk.call({"RESTORE", "restored", "0", dump.text}).is_error());
    for (Words piece : {large.pieces[2], large.pieces[0]}) {
      EXPECT_EQ(talk.call(piece).shown(), "-ERR SEMEL.LOAD is for replication and AOF files");
      piece.emplace_back("IMPORT");
      EXPECT_EQ(talk.call(piece).shown(), "-ERR SEMEL.LOAD is for replication and AOF files");
    }
    const Digests before = digests(talk);
    ASSERT_EQ(talk("DEBUG RELOAD"), "+OK");
    EXPECT_EQ(digests(talk), before);
    rewrite_aof(talk);
    ASSERT_EQ(talk("DEBUG LOADAOF"), "+OK");
    EXPECT_EQ(digests(talk), before);
    if (again) {
      EXPECT_EQ(talk("DEL " + key), "1");
      EXPECT_EQ(info(talk, "semel", "semel_staged_keys"), 0);
      EXPECT_EQ(info(talk, "semel", "semel_staged_bytes"), 0);
    }
    server.stop();
    server.start();
  }
}

}  // namespace
}  // namespace semel
