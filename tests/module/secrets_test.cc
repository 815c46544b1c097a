// The secrets of keys: a user who may not read a key learns nothing that helps to forge an id in
// it, and nothing that a server reports reveals a secret.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "module/types/bloom_value.h"
#include "module/types/cuckoo_value.h"
#include "module/types/sift_value.h"
#include "module/types/tally_value.h"
#include "semel/hash/internal/sealed.h"
#include "semel/tally/internal/recogniser.h"
#include "tests/module/module_server.h"
#include "tests/module/replicas.h"
#include "tests/module/samples.h"
#include "tests/module/workload.h"
#include "tests/support/rate.h"
#include "tests/support/table_probe.h"

namespace semel {
namespace {

using module::BloomValue;
using module::CuckooValue;
using module::SiftValue;
using module::TallyValue;

constexpr double kError = 0.01;
constexpr std::size_t kKnown = 1000, kForged = 200;

// The ids that every key holds, which an attacker knows.
Words known_ids() {
  Words ids;
  for (std::size_t i = 0; i < kKnown; ++i) ids.push_back("known:" + std::to_string(i));
  return ids;
}

// Tries ids until enough of them count as known.
using Seen = std::function<bool(const std::string&)>;
Words search(const std::string& prefix, const Seen& seen) {
  constexpr int kMostTries = 1'000'000;
  Words found;
  for (int i = 0; i < kMostTries && found.size() < kForged; ++i) {
    const std::string id = prefix + std::to_string(i);
    if (seen(id)) found.push_back(id);
  }
  return found;
}

// These functions forge ids with a secret: they build a key like the victim's, and look for ids
// that count as known in it.
Words forge_bloom(const Secret& secret, const std::string& prefix) {
  auto value = BloomValue::make(secret, {.error = kError, .capacity = kKnown, .expansion = 2});
  EXPECT_TRUE((*value)->begin_chain(1));
  for (const std::string& id : known_ids()) {
    EXPECT_TRUE((*value)->add((*value)->hasher()(id), 0));
  }
  return search(prefix,
                [&](const std::string& id) { return (*value)->contains((*value)->hasher()(id)); });
}

Words forge_cuckoo(const Secret& secret, const std::string& prefix) {
  auto value = CuckooValue::make(secret, {.error = kError,
                                          .capacity = kKnown,
                                          .bucket_size = 2,
                                          .max_iterations = 20,
                                          .expansion = 1});
  EXPECT_TRUE((*value)->begin(1, 2, CuckooValue::Begun::here));
  for (const std::string& id : known_ids()) {
    EXPECT_TRUE((*value)->add((*value)->hasher()(id), 0));
  }
  return search(prefix,
                [&](const std::string& id) { return (*value)->contains((*value)->hasher()(id)); });
}

Words forge_sift(const Secret& secret, const std::string& prefix) {
  auto value = SiftValue::make(secret, {{.window_ms = 600'000, .fpr = kError, .ids = kKnown}}, 0);
  for (const std::string& id : known_ids())
    (*value)->sifter().test_and_insert((*value)->id_of(id), 0);
  return search(prefix, [&](const std::string& id) {
    return (*value)->sifter().test((*value)->id_of(id), 0) == ClaimAnswer::seen;
  });
}

Words forge_tally(const Secret& secret, const std::string& prefix) {
  auto value = TallyValue::make(secret, {.fpr = kError, .ids = kKnown}, 0);
  const auto operation = [&](const std::string& id) {
    return *tally::opaque_id((*value)->hasher(), id);
  };
  for (const std::string& id : known_ids()) {
    const std::array<tally::Addition, 1> addition = {{{"c", 1, operation(id)}}};
    std::array<tally::Answer, 1> answer;
    EXPECT_TRUE((*value)->table().add(addition, answer, 0));
  }
  return search(prefix, [&](const std::string& id) {
    return tally::TableProbe::recogniser((*value)->table()).test({operation(id)}) ==
           tally::Outcome::duplicate;
  });
}

struct Family {
  std::string name;
  std::string make;    // % is the key
  std::string add;     // the ids follow
  std::string ask;     // the ids follow
  std::string before;  // precedes each id
  Words (*forge)(const Secret& secret, const std::string& prefix);

  Words line(const std::string& words, const std::string& key, const Words& ids) const {
    Words out = words_of(filled(words, key));
    for (const std::string& id : ids) {
      const Words front = words_of(before);
      out.insert(out.end(), front.begin(), front.end());
      out.push_back(id);
    }
    return out;
  }
};

const std::vector<Family>& families() {
  static const std::vector<Family> kAll = {
      {"bloom", "BF.RESERVE % 0.01 1000", "BF.MADD %", "BF.MEXISTS %", "", forge_bloom},
      {"cuckoo", "CF.RESERVE % 1000", "CF.INSERT % ITEMS", "CF.MEXISTS %", "", forge_cuckoo},
      {"sift", "SIFT.RESERVE % ERROR 0.01 CAPACITY 1000", "SIFT.MADD %", "SIFT.MTEST %", "",
       forge_sift},
      {"tally", "TALLY.RESERVE % ERROR 0.01 CAPACITY 1000", "TALLY.MINCRBY % IDS",
       "TALLY.MINCRBY % IDS", "c 1", forge_tally},
  };
  return kAll;
}

void make(Talk& talk, const Family& family, const std::string& key) {
  ASSERT_EQ(talk(filled(family.make, key)), "+OK");
  ASSERT_FALSE(talk.call(family.line(family.add, key, known_ids())).is_error());
}

// Returns how many of the ids a key claims to have seen.
std::size_t count_seen(const Answer& answer) {
  return static_cast<std::size_t>(
      std::count_if(answer.parts.begin(), answer.parts.end(), [](const Answer& one) {
        return one.shown() == "1" || (one.parts.size() == 2 && one.parts[1].text == "duplicate");
      }));
}

// A primary and its replica, which log all commands.
struct Pair {
  static Words arguments(Words more = {}) {
    more.insert(more.end(), {"--rdbcompression", "no", "--slowlog-log-slower-than", "0",
                             "--slowlog-max-len", "1000000", "--latency-monitor-threshold", "1",
                             "--repl-diskless-sync-delay", "0", "--loglevel", "debug"});
    return with_module(std::move(more), {"cf-error", "0.01"});
  }

  RedisServer primary{arguments()};
  RedisServer replica{arguments({"--replicaof", "127.0.0.1", std::to_string(primary.port())})};

  void wait_for_replica() const {
    Talk talk(primary);
    talk("SET pebble 1");
    expect_in_step(primary, replica);
  }
};

// Collects all that a server reports: every string in its answers, and the words of MONITOR.
class Listener {
 public:
  // Connects as a user whose password is x, or as the default user.
  explicit Listener(const RedisServer& server, const std::string& user = "")
      : talk_(server), monitor_(server) {
    for (Talk* const talk : {&talk_, &monitor_}) {
      if (user.empty()) continue;
      EXPECT_EQ(talk->call({"AUTH", user, "x"}).shown(), "+OK");
    }
    monitor_.send({"MONITOR"});
    EXPECT_EQ(monitor_.read().shown(), "+OK");
  }

  Talk& talk() { return talk_; }
  void hear(const Answer& answer) {
    if (!answer.text.empty()) heard_.insert(answer.text);
    for (const Answer& part : answer.parts) hear(part);
  }
  void ask_all() {
    for (const char* const line :
         {"SLOWLOG GET 1000000", "MODULE LIST", "INFO everything", "CONFIG GET *", "CLIENT LIST",
          "CLIENT INFO", "ACL LOG", "LATENCY LATEST", "LATENCY DOCTOR", "MEMORY DOCTOR",
          "MEMORY STATS", "COMMAND DOCS", "COMMAND INFO", "ACL WHOAMI"}) {
      const Answer answer = talk_.call(words_of(line));
      EXPECT_FALSE(answer.is_error()) << line << ' ' << answer.shown();
      hear(answer);
    }
    hear_monitor();
  }
  const std::set<std::string>& heard() const { return heard_; }

 private:
  void hear_monitor() {
    const std::string mark = "the end of what is monitored";
    talk_.call({"ECHO", mark});
    for (Answer line = monitor_.read(); !line.lost(); line = monitor_.read()) {
      hear(line);
      for (const std::string& word : words_of(line.text)) heard_.insert(word);
      if (line.text.find(mark) != std::string::npos) return;
    }
    FAIL() << "the end of MONITOR";
  }

  Talk talk_, monitor_;
  std::set<std::string> heard_;
};

// Returns the secrets in the bodies of values and dumps: docs/formats/module_values.md.
std::set<std::string> secrets_in(const std::string& bytes) {
  std::set<std::string> found;
  for (const std::string name : {"MBF\1", "MBH\1", "MCF\1", "MCH\1", "MSF\1", "MTL\1"}) {
    for (std::size_t at = bytes.find(name); at != std::string::npos;
         at = bytes.find(name, at + 1)) {
      if (at + kSealedHeader > bytes.size()) continue;
      const std::string secret = bytes.substr(at + kSealedHeader, Secret::kSize);
      if (secret.size() == Secret::kSize) found.insert(secret);
    }
  }
  return found;
}

std::string secret_of(Talk& talk, const std::string& key) {
  const std::set<std::string> found = secrets_in(talk.call({"DUMP", key}).text);
  EXPECT_EQ(found.size(), 1u) << key;
  return found.empty() ? "" : *found.begin();
}

// Loads a filter from another server with its secret, as its owner would.
void load_from_elsewhere(Talk& to, const std::string& key) {
  const RedisServer elsewhere(with_module());
  Talk from(elsewhere);
  make(from, families()[0], "k");
  for (std::string at = "0";;) {
    const Answer chunk = from.call({"BF.SCANDUMP", "k", at});
    at = chunk.parts.at(0).text;
    if (at == "0") return;
    ASSERT_EQ(to.call({"BF.LOADCHUNK", key, at, chunk.parts.at(1).text}).shown(), "+OK");
  }
}

constexpr const char* kUser =
    "ACL SETUSER user on >x ~mine:* +@all -@admin -@dangerous +restore +monitor +slowlog +info "
    "+latency +memory +module|list +config|get +client +acl|log +acl|whoami";

Words forge(const Family& family, const std::string& secret, const std::string& prefix) {
  return family.forge(Secret(bytes_of(secret).first<Secret::kSize>()), prefix);
}

TEST(Secrets, ThatAUserCanLearnForgeNoIdInTheKeysOfOthers) {
  const Pair servers;
  Talk admin(servers.primary);
  for (const RedisServer* const server : {&servers.primary, &servers.replica}) {
    ASSERT_EQ(Talk(*server)(kUser), "+OK");
  }
  servers.wait_for_replica();
  Listener here(servers.primary, "user"), there(servers.replica, "user");
  std::set<std::string> secrets;
  for (const Family& family : families()) {
    const std::string key = "mine:" + family.name;
    ASSERT_NO_FATAL_FAILURE(make(admin, family, "theirs:" + family.name));
    ASSERT_NO_FATAL_FAILURE(make(here.talk(), family, key));
    // With the right secret it is easy.
    const std::string secret = secret_of(here.talk(), key);
    const Words ids = forge(family, secret, "own ");
    EXPECT_GT(count_seen(here.talk().call(family.line(family.ask, key, ids))), kForged / 2) << key;
    secrets.insert(secret);
  }
  ASSERT_NO_FATAL_FAILURE(load_from_elsewhere(admin, "theirs:loaded"));
  servers.wait_for_replica();

  for (const char* const dump : {"BF.SCANDUMP mine:bloom 0", "CF.SCANDUMP mine:cuckoo 0"}) {
    here.hear(here.talk().call(words_of(dump)));
  }
  for (Listener* const listener : {&here, &there}) {
    listener->ask_all();
    for (const std::string& text : listener->heard()) {
      secrets.merge(secrets_in(text));
      if (text.size() == Secret::kSize) secrets.insert(text);
    }
  }

  std::vector<std::pair<Family, std::string>> targets;
  for (const Family& family : families()) targets.emplace_back(family, "theirs:" + family.name);
  targets.emplace_back(families()[0], "theirs:loaded");
  for (const auto& [family, key] : targets) {
    double tried = 0, seen = 0;
    for (const std::string& secret : secrets) {
      const Words ids = forge(family, secret, key + std::to_string(tried) + " ");
      ASSERT_EQ(ids.size(), kForged);
      tried += static_cast<double>(ids.size());
      seen += static_cast<double>(count_seen(admin.call(family.line(family.ask, key, ids))));
    }
    EXPECT_LE(seen, tried * kError + five_deviations(tried, kError))
        << key << ": of " << tried << " forged ids";
  }
}

// Every command that copies a secret from one key to another requires the right to read the first.
TEST(Secrets, OfKeysThatAUserMayNotReadComeIntoNoKeyThatTheUserMay) {
  const RedisServer server(with_module());
  Talk admin(server), user(server);
  ASSERT_EQ(admin(kUser), "+OK");
  for (const char* const line : {"BF.ADD theirs:b a", "CF.ADD theirs:c a", "SIFT.ADD theirs:s a",
                                 "TALLY.INCRBY theirs:t a 1", "BF.ADD mine:b a"}) {
    ASSERT_FALSE(admin(line).starts_with('-'));
  }
  ASSERT_EQ(user("AUTH user x"), "+OK");
  for (const char* const line :
       {"BF.LIKE mine:x theirs:b", "CF.LIKE mine:x theirs:c", "BF.MERGE mine:x theirs:b",
        "BF.MERGE mine:b mine:b theirs:b", "CF.MERGE mine:x theirs:c", "BF.LIKE theirs:x mine:b",
        "COPY theirs:b mine:x", "COPY theirs:s mine:x", "COPY theirs:t mine:x",
        "RENAME theirs:b mine:x", "DUMP theirs:t", "BF.SCANDUMP theirs:b 0",
        "CF.SCANDUMP theirs:c 0", "RESTORE theirs:x 0 x", "BF.LOADCHUNK theirs:x 1 x"}) {
    EXPECT_TRUE(user(line).starts_with("-NOPERM")) << line;
    Words script = {"EVAL", "return redis.pcall(unpack(ARGV))", "0"};
    for (const std::string& word : words_of(line)) script.push_back(word);
    EXPECT_TRUE(user.call(script).is_error()) << line;
  }
  EXPECT_EQ(admin("EXISTS mine:x"), "0");
}

TEST(Secrets, AreDrawnForEveryKeyUnlessItIsMadeFromAnother) {
  const RedisServer server(with_module({"--rdbcompression", "no"}));
  Talk talk(server);
  std::set<std::string> secrets;
  std::size_t keys = 0;
  for (const char* const line : {"BF.RESERVE k 0.01 100",
                                 "BF.ADD k a",
                                 "BF.MADD k a b",
                                 "BF.INSERT k ITEMS a",
                                 "CF.RESERVE k 100",
                                 "CF.ADD k a",
                                 "CF.ADDNX k a",
                                 "CF.INSERT k ITEMS a",
                                 "CF.INSERTNX k ITEMS a",
                                 "SIFT.RESERVE k",
                                 "SIFT.ADD k a",
                                 "SIFT.MADD k a b",
                                 "SIFT.INSERT k ITEMS a",
                                 "SIFT.CLAIM k a b 1s",
                                 "SIFT.MCLAIM k b 1s a c",
                                 "TALLY.RESERVE k",
                                 "TALLY.INCRBY k a 1",
                                 "TALLY.INCRBY k a 1 ID x",
                                 "TALLY.MINCRBY k NOID a 1",
                                 "TALLY.MINCRBY k OP x 1 a 1"}) {
    for (int i = 0; i < 2; ++i) {  // a key that is made again draws a new secret
      talk("DEL k");
      ASSERT_FALSE(talk(line).starts_with('-')) << line;
      secrets.insert(secret_of(talk, "k"));
      EXPECT_EQ(secrets.size(), ++keys) << line;
    }
  }
  for (const std::string family : {"BF", "CF"}) {
    talk("FLUSHALL");
    ASSERT_EQ(talk(family + ".ADD k a"), "1");
    const std::string secret = secret_of(talk, "k");
    ASSERT_EQ(talk(family + ".LIKE like k"), "+OK");
    ASSERT_EQ(talk(family + ".MERGE merged like k"), "+OK");
    ASSERT_EQ(talk("COPY k copy"), "1");
    for (const char* const key : {"like", "merged", "copy"}) {
      EXPECT_EQ(secret_of(talk, key), secret) << key;
    }
  }
}

// A server that had keys of its own before, and one that becomes the primary, make filters that
// merge with those of other servers.
TEST(Secrets, ThatFiltersShareOutliveAFailover) {
  const Pair servers;
  Talk first(servers.primary), second(servers.replica);
  ASSERT_EQ(second("REPLICAOF NO ONE"), "+OK");
  ASSERT_EQ(second("BF.ADD old a"), "1");
  ASSERT_FALSE(
      second("REPLICAOF 127.0.0.1 " + std::to_string(servers.primary.port())).starts_with('-'));
  servers.wait_for_replica();
  for (const std::string family : {"BF", "CF"}) {
    ASSERT_EQ(first(family + ".ADD " + family + ":a 1"), "1");
    ASSERT_EQ(first(family + ".LIKE " + family + ":b " + family + ":a"), "+OK");
  }
  servers.wait_for_replica();
  ASSERT_EQ(second("REPLICAOF NO ONE"), "+OK");
  for (const std::string family : {"BF", "CF"}) {
    const std::string name = family + ":";
    ASSERT_EQ(second(family + ".LIKE " + name + "c " + name + "a"), "+OK");
    EXPECT_EQ(second(family + ".ADD " + name + "b 2"), "1");
    EXPECT_EQ(second(family + ".ADD " + name + "c 3"), "1");
    EXPECT_EQ(second(family + ".MERGE " + name + "d " + name + "a " + name + "b " + name + "c"),
              "+OK");
    EXPECT_EQ(second(family + ".MEXISTS " + name + "d 1 2 3 4"), "[1, 1, 1, 0]");
  }
}

// The header of a dump is an empty filter with the goal and secret of the dumped one.
TEST(Secrets, ThatAHeaderCarriesLetFiltersOfTwoServersMerge) {
  for (const std::string family : {"BF", "CF"}) {
    const RedisServer one(with_module()), two(with_module());
    Talk here(one), there(two);
    ASSERT_EQ(here(family + ".ADD k here"), "1");
    const Answer header = here.call({family + ".SCANDUMP", "k", "0"});
    ASSERT_EQ(there.call({family + ".LOADCHUNK", "k", "1", header.parts.at(1).text}).shown(),
              "+OK");
    EXPECT_EQ(there(family + ".EXISTS k here"), "0");
    ASSERT_EQ(there(family + ".ADD k there"), "1");
    const Answer dump = there.call({"DUMP", "k"});
    ASSERT_EQ(here.call({"RESTORE", "theirs", "0", dump.text}).shown(), "+OK");
    EXPECT_EQ(here(family + ".MERGE k theirs"), "+OK");
    EXPECT_EQ(here(family + ".MEXISTS k here there nobody"), "[1, 1, 0]");
  }
}

// Ways in which a secret may be written.
std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr std::string_view kPlain = "\\\"\n\r\t\a\b", kLetters = "\\\"nrtab";
    if (const std::size_t at = kPlain.find(c); at != std::string_view::npos) {
      out.append("\\").push_back(kLetters[at]);
    } else if (c >= ' ' && c <= '~') {
      out.push_back(c);
    } else {
      std::array<char, 5> hex{};
      std::snprintf(hex.data(), hex.size(), "\\x%02x", static_cast<unsigned char>(c));
      out.append(hex.data());
    }
  }
  return out;
}

std::string in_hex(std::string_view bytes, const char* format) {
  std::string out;
  for (const char c : bytes) {
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), format, static_cast<unsigned char>(c));
    out.append(hex.data());
  }
  return out;
}

// REQUIRES: a multiple of three bytes.
std::string in_base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned three = 0;
    for (std::size_t j = i; j < i + 3; ++j)
      three = three << 8 | static_cast<unsigned char>(bytes[j]);
    for (int shift = 18; shift >= 0; shift -= 6) out.push_back(kDigits[three >> shift & 63]);
  }
  return out;
}

// Looks for the middle of a secret, in every form: some listings cut long words off.
std::vector<std::string> forms_of(std::string_view secret) {
  std::vector<std::string> forms;
  for (std::size_t from = 0; from < 3; ++from) {  // base64 may begin at any byte
    const std::string_view part = secret.substr(from, 12);
    for (std::string form : {std::string(part), escaped(part), in_hex(part, "%02x"),
                             in_hex(part, "%02X"), in_base64(part)}) {
      forms.push_back(std::move(form));
    }
  }
  return forms;
}

TEST(Secrets, AreNotInAnythingThatAServerTells) {
  const Pair servers;
  servers.wait_for_replica();
  Listener here(servers.primary), there(servers.replica);
  Talk talk(servers.primary);
  for (const Sample& sample : samples()) {
    ASSERT_TRUE(make_sample(talk, sample, sample.name));
    talk(filled(sample.change, sample.name));
    talk(filled(sample.read, sample.name));
  }
  ASSERT_NO_FATAL_FAILURE(load_from_elsewhere(talk, "loaded"));
  Workload workload(5);
  for (int i = 0; i < 2000; ++i) ASSERT_FALSE(talk.call(workload.next()).lost());
  ASSERT_EQ(talk("DEBUG RELOAD"), "+OK");
  for (const Answer& name : talk.call({"COMMAND", "LIST", "FILTERBY", "MODULE", "semel"}).parts) {
    talk.call({name.text, "loaded", "0", "0", "0", "0"});  // usually an error
  }
  servers.wait_for_replica();

  std::set<std::string> secrets;
  for (const Answer& key : talk.call({"KEYS", "*"}).parts) {
    if (key.text != "pebble") secrets.insert(secret_of(talk, key.text));
  }
  EXPECT_GE(secrets.size(), samples().size());
  here.ask_all();
  there.ask_all();
  std::set<std::string> told = {servers.primary.log(), servers.replica.log()};
  told.insert(here.heard().begin(), here.heard().end());
  told.insert(there.heard().begin(), there.heard().end());
  for (const std::string& secret : secrets) {
    for (const std::string& form : forms_of(secret)) {
      for (const std::string& text : told) {
        ASSERT_EQ(text.find(form), std::string::npos) << escaped(text.substr(0, 400));
      }
    }
  }
}

}  // namespace
}  // namespace semel
