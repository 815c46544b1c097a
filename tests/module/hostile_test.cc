// The server answers whatever clients send, and does not crash.
//
// Lines of commands follow the syntax in COMMAND DOCS, with options doubled, moved and cut off, and
// with arguments that are good, almost good, or any bytes. Each gets one answer. Payloads of
// RESTORE and chunks of LOADCHUNK are damaged. Then their lengths and checksums are made right
// again, the outer ones and the inner ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
#include "semel/hash/internal/sealed.h"
#include "tests/cli/process.h"
#include "tests/module/command_lines.h"
#include "tests/module/module_server.h"
#include "tests/module/payload.h"
#include "tests/module/samples.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

std::string shown(const Words& words) {
  std::string line;
  for (const std::string& word : words) line.append(Answer{'$', word}.shown()).append(" ");
  return line;
}

class Hostile : public ::testing::Test {
 protected:
  void expect_alive() { ASSERT_EQ(talk_("PING"), "+PONG") << server_.log(); }

  std::vector<CommandLines> commands_of(const std::string& family) {
    const Answer names =
        talk_.call({"COMMAND", "LIST", "FILTERBY", "PATTERN", std::string(family).append(".*")});
    std::vector<CommandLines> commands;
    for (const Answer& name : names.parts) commands.emplace_back(talk_, name.text);
    EXPECT_FALSE(commands.empty()) << family;
    return commands;
  }

  // Sends a line, and expects one answer. The next answer belongs to the ECHO after it.
  Answer expect_one_answer(Talk& talk, const Words& words) {
    const std::string mark = "mark " + std::to_string(++marks_);
    talk.send(words);
    talk.send({"ECHO", mark});
    const Answer answer = talk.read();
    EXPECT_FALSE(answer.lost()) << shown(words) << '\n' << server_.log();
    const Answer next = answer.lost() ? answer : talk.read();
    EXPECT_EQ(next.text, mark) << "a surplus answer to " << shown(words) << ": " << next.shown();
    return answer;
  }

  static constexpr std::array kFamilies = {"TALLY", "SIFT", "BF", "CF", "SEMEL"};

  const RedisServer server_{with_module({"--maxmemory", "2gb"})};
  Talk talk_{server_};

 private:
  std::uint64_t marks_ = 0;
};

using HostileLines = Hostile;

TEST_F(HostileLines, EveryOptionTwiceMovedOrCutOffIsAnsweredOnce) {
  for (const int protocol : {2, 3}) {
    Talk talk(server_, protocol);
    for (const std::string family : kFamilies) {
      for (const CommandLines& command : commands_of(family)) {
        talk_("FLUSHALL");
        for (const Words& words : command.all()) {
          expect_one_answer(talk, words);
          ASSERT_FALSE(HasFailure());
        }
      }
    }
  }
}

// SEMEL_LINES sets how many for each family; `make hostile` takes many, in a server with
// sanitizers.
TEST_F(HostileLines, RandomLinesAreAnsweredOnce) {
  const std::uint64_t lines = setting("SEMEL_LINES", 5000);
  Random random(fresh_seed());
  Talk resp3(server_, 3);
  const Answer settings = talk_.call({"CONFIG", "GET", "semel.*"});
  for (const std::string family : kFamilies) {
    const std::vector<CommandLines> commands = commands_of(family);
    std::uint64_t good = 0;
    for (std::uint64_t i = 0; i < lines; ++i) {
      // A setting stays for some lines, so keys are made with good values and with extreme ones.
      if (i % 100 == 50) {
        const std::string name = settings.parts[2 * random.below(settings.parts.size() / 2)].text;
        expect_one_answer(talk_, {"CONFIG", "SET", name, any_value(random)});
      }
      const CommandLines& one = commands[random.below(commands.size())];
      const CommandLines& other = commands[random.below(commands.size())];
      const Words words = (one.arguments() > other.arguments() ? one : other).random(random);
      if (!expect_one_answer(i % 2 == 0 ? talk_ : resp3, words).is_error()) ++good;
      ASSERT_FALSE(HasFailure());
      if (i % 100 == 0) {
        talk_("FLUSHALL");
        for (std::size_t at = 0; at + 1 < settings.parts.size(); at += 2) {
          talk_.call({"CONFIG", "SET", settings.parts[at].text, settings.parts[at + 1].text});
        }
      }
    }
    // Some of the lines are good.
    if (family != "SEMEL") {
      EXPECT_GT(good, lines / 10) << family;
    }
    expect_alive();
  }
}

// SEMEL_COMMAND_LINES sets how many.
TEST_F(HostileLines, RandomLinesOfEachCommandAreAnsweredOnce) {
  const std::uint64_t lines = setting("SEMEL_COMMAND_LINES", 50);
  Random random(fresh_seed());
  Talk resp3(server_, 3);
  for (const std::string family : kFamilies) {
    for (const CommandLines& command : commands_of(family)) {
      talk_("FLUSHALL");
      // Its keys are of all types.
      for (const Sample& sample : samples()) {
        make_sample(talk_, sample, "key" + std::to_string(&sample - samples().data()));
      }
      for (std::uint64_t i = 0; i < lines; ++i) {
        expect_one_answer(i % 2 == 0 ? talk_ : resp3, command.random(random));
        ASSERT_FALSE(HasFailure());
      }
    }
    expect_alive();
  }
}

// Valkey 9.1 has a fuzzer in its benchmark, which learns the commands from the server. `make
// test-servers` sets SEMEL_FUZZER. The default user may neither block nor change the server. It has
// no transactions either: the fuzzer at times waits for ever for one, with or without the module.
TEST_F(HostileLines, TheFuzzerOfValkeyLeavesAServerThatAnswers) {
  const char* const fuzzer = std::getenv("SEMEL_FUZZER");
  if (fuzzer == nullptr || *fuzzer == '\0') GTEST_SKIP() << "no valkey-benchmark with --fuzz";
  Talk admin(server_);
  ASSERT_EQ(admin("ACL SETUSER admin on nopass +@all ~* &*"), "+OK");
  ASSERT_EQ(admin("AUTH admin any"), "+OK");
  ASSERT_EQ(admin("ACL SETUSER default -@dangerous -@blocking -@transaction -@pubsub +config|get"),
            "+OK");
  const Outcome outcome =
      run({.command = {fuzzer, "-p", std::to_string(server_.port()), "--fuzz", "--fuzz-mode",
                       "malformed-commands", "-n",
                       std::to_string(setting("SEMEL_FUZZED_LINES", 20'000)), "-c", "4"},
           .merge = true});
  EXPECT_EQ(outcome.status, 0) << outcome.out << server_.log();
  EXPECT_EQ(admin("PING"), "+PONG") << server_.log();
  const std::string calls = admin.call({"INFO", "commandstats"}).text;
  for (const char* const name : {"cmdstat_bf.", "cmdstat_cf.", "cmdstat_tally.", "cmdstat_sift."}) {
    EXPECT_NE(calls.find(name), std::string::npos) << name;
  }
}

// A dump is: 7 and the id of the type; for each piece of our encoding 2 and its length, 5, its
// length and its bytes; 2 and a length of 0; 0; the version of the RDB format and a CRC, the
// footer. Ids and lengths are numbers as RDB files have them. Encodings end with a checksum.
const std::string kEndOfPieces = {'\x02', '\0', '\0'};

// Returns where the encoding within an encoding begins. It ends with a checksum of its own, just
// before the outer one. Returns the size of the whole if there is none.
std::size_t inside_of(const std::string& encoding) {
  const std::string body = encoding.substr(0, encoding.size() - 8);
  std::size_t at = 1;
  while (at < encoding.size() && body.size() > at + 8 && mended(body.substr(at)) != body.substr(at))
    ++at;
  return body.size() > at + 8 ? at : encoding.size();
}

// The parts of an encoding that end with a checksum, the inner ones first. A part within others
// begins with its name, its version and its length, or is the inside.
struct Part {
  std::size_t begin, end;
};
std::vector<Part> parts_of(const std::string& encoding) {
  std::vector<Part> parts;
  const auto add = [&](std::size_t begin, std::size_t end) {
    const std::string part = encoding.substr(begin, end - begin);
    const std::string head = part.substr(0, part.size() - 8);
    std::string sum;
    append_u64(sum, checksum(bytes_of(head)));
    if (part.ends_with(sum)) parts.push_back({begin, end});
  };
  add(0, encoding.size());
  const std::size_t inside = inside_of(encoding);
  if (inside < encoding.size()) add(inside, encoding.size() - 8);
  for (std::size_t at = 0; at + kSealedHeader + kSealedTrailer <= encoding.size(); ++at) {
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) {
      length = length << 8 | static_cast<unsigned char>(encoding[at + 4 + static_cast<size_t>(i)]);
    }
    const std::size_t room = encoding.size() - at - kSealedHeader - kSealedTrailer;
    if (length <= room) add(at, at + kSealedHeader + length + kSealedTrailer);
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.end - a.begin < b.end - b.begin; });
  return parts;
}

// Flips a few bits, and makes the checksums of all parts right again.
std::string flipped(std::string encoding, const std::vector<Part>& parts, Random& random) {
  for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
    char& byte = encoding[random.below(encoding.size())];
    byte = static_cast<char>(byte ^ 1 << random.below(8));
  }
  for (const Part& part : parts) {
    std::string sum;
    append_u64(sum, checksum(bytes_of(encoding.substr(part.begin, part.end - part.begin - 8))));
    encoding.replace(part.end - 8, 8, sum);
  }
  return encoding;
}

// Flips, cuts, inserts or extends bytes.
std::string damaged(std::string bytes, Random& random) {
  const auto somewhere = [&] { return random.below(std::max<std::size_t>(bytes.size(), 1)); };
  switch (random.below(6)) {
    case 0:
      bytes.resize(somewhere());
      break;
    case 1:
      bytes.insert(somewhere(), std::string(1 + random.below(16), static_cast<char>(random())));
      break;
    case 2:
      bytes.erase(somewhere(), 1 + random.below(16));
      break;
    case 3: {
      // A number that is too large.
      const std::size_t at = somewhere();
      for (std::size_t i = at; i < std::min(at + 8, bytes.size()); ++i) bytes[i] = '\xff';
      break;
    }
    default:
      for (std::uint64_t n = 1 + random.below(4); n > 0 && !bytes.empty(); --n) {
        char& byte = bytes[somewhere()];
        byte = static_cast<char>(byte ^ 1 << random.below(8));
      }
  }
  return bytes;
}

// Returns how many bytes a number takes, from its first byte.
std::size_t rdb_width(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte == 0x81) return 9;
  if (byte == 0x80) return 5;
  return byte >> 6 == 0 ? 1 : 2;
}

class Restored : public Hostile, public ::testing::WithParamInterface<Sample> {};
INSTANTIATE_TEST_SUITE_P(Types, Restored, ::testing::ValuesIn(samples()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(Restored, DamagedPayloadsAreRefused) {
  Random random(2);
  ASSERT_EQ(talk_("CONFIG SET rdbcompression no"), "+OK");
  ASSERT_TRUE(make_sample(talk_, GetParam(), "k"));
  const std::string dump = talk_.call({"DUMP", "k"}).text;
  const std::string version = dump.substr(dump.size() - kFooter, 2);
  const std::string payload = dump.substr(0, dump.size() - kFooter);
  ASSERT_EQ(sealed_payload(payload, version), dump);
  std::vector<CommandLines> commands;
  for (const std::string family : kFamilies) {
    for (CommandLines& command : commands_of(family)) commands.push_back(std::move(command));
  }
  int accepted = 0;
  const auto restore = [&](const std::string& bytes) {
    talk_("DEL new");
    const Answer answer = talk_.call({"RESTORE", "new", "0", bytes});
    ASSERT_FALSE(answer.lost()) << server_.log();
    if (answer.is_error()) {
      EXPECT_EQ(talk_("EXISTS new"), "0");
      return;
    }
    // An accepted payload is a sound value: it can be read, changed, saved and compared. Every
    // command takes it, in an order that differs, since some of them empty the value.
    ++accepted;
    for (const std::string_view command :
         {GetParam().read, GetParam().change, GetParam().no_change, std::string_view("DUMP %"),
          std::string_view("DEBUG DIGEST-VALUE %"), std::string_view("MEMORY USAGE %"),
          std::string_view("COPY % other REPLACE"), std::string_view("OBJECT ENCODING %")}) {
      ASSERT_NE(talk_(filled(command, "new", 5)), "lost") << server_.log();
    }
    const std::size_t first = random.below(commands.size());
    for (std::size_t i = 0; i < commands.size() && !HasFailure(); ++i) {
      const CommandLines& command = commands[(first + i) % commands.size()];
      expect_one_answer(talk_, command.about("new", random));
    }
    for (const std::string_view command :
         {"DUMP %", "DEBUG DIGEST-VALUE %", "MEMORY USAGE %", "UNLINK %"}) {
      ASSERT_NE(talk_(filled(command, "new")), "lost") << server_.log();
    }
  };
  for (int i = 0; i < 300 && !HasFatalFailure(); ++i)
    restore(sealed_payload(damaged(payload, random), version));
  expect_alive();

  // Damage the inside, with all lengths and checksums right.
  const std::size_t id_size = 1 + rdb_width(payload[1]);
  const std::string id = payload.substr(0, id_size);
  const std::size_t chunk = id_size + 1 + rdb_width(payload[id_size + 1]);
  const std::size_t at = chunk + 1 + rdb_width(payload[chunk + 1]);
  ASSERT_EQ(payload[id_size], 2);
  ASSERT_EQ(payload[chunk], 5);
  ASSERT_TRUE(payload.ends_with(kEndOfPieces));
  const std::string encoding = payload.substr(at, payload.size() - at - kEndOfPieces.size());
  const auto rebuilt = [&](const std::string& inner) {
    const std::string length = rdb_length(inner.size());
    return sealed_payload(id + '\x02' + length + '\x05' + length + inner + kEndOfPieces, version);
  };
  const std::size_t inside = inside_of(encoding);
  ASSERT_LT(inside, encoding.size());
  talk_("DEL new");
  ASSERT_EQ(talk_.call({"RESTORE", "new", "0", rebuilt(encoding)}).shown(), "+OK");
  EXPECT_EQ(talk_("DEBUG DIGEST-VALUE new"), talk_("DEBUG DIGEST-VALUE k"));
  const std::vector<Part> parts = parts_of(encoding);
  ASSERT_GE(parts.size(), 2u);
  for (int i = 0; i < 500 && !HasFatalFailure(); ++i) {
    restore(rebuilt(flipped(encoding, parts, random)));
  }
  for (int i = 0; i < 1000 && !HasFatalFailure(); ++i) {
    std::string inner = encoding;
    if (random.below(2) == 0) {
      inner = damaged(inner, random);
    } else {
      const std::string body =
          mended(damaged(inner.substr(inside, inner.size() - inside - 8), random));
      inner = inner.substr(0, inside) + body + std::string(8, '\0');
    }
    restore(rebuilt(mended(inner)));
  }
  expect_alive();
  // Most damage of the inside is found; some makes another sound value.
  EXPECT_GT(accepted, 5);
  RecordProperty("accepted", accepted);
}

struct Loading {
  const char* family;
  const char* add;
};

class Loaded : public Hostile, public ::testing::WithParamInterface<Loading> {};
INSTANTIATE_TEST_SUITE_P(Families, Loaded,
                         ::testing::Values(Loading{"BF", "BF.MADD k"},
                                           Loading{"CF", "CF.INSERT k ITEMS"}),
                         [](const auto& instance) { return std::string(instance.param.family); });

TEST_P(Loaded, DamagedChunksAreRefused) {
  Random random(3);
  const std::string family = GetParam().family;
  Words add = words_of(GetParam().add);
  for (int i = 0; i < 500; ++i) add.push_back(std::to_string(i));
  ASSERT_FALSE(talk_.call(add).is_error());
  std::vector<std::pair<std::string, std::string>> chunks;
  for (std::string iterator = "0";;) {
    const Answer chunk = talk_.call({family + ".SCANDUMP", "k", iterator});
    ASSERT_EQ(chunk.parts.size(), 2u);
    iterator = chunk.parts[0].text;
    if (iterator == "0") break;
    chunks.emplace_back(iterator, chunk.parts[1].text);
  }
  ASSERT_GT(chunks.size(), 1u);
  const std::string load = family + ".LOADCHUNK";
  for (int i = 0; i < 2000; ++i) {
    if (random.below(20) == 0) talk_("DEL new");
    auto [iterator, bytes] = chunks[random.below(chunks.size())];
    if (random.below(4) == 0) {
      constexpr std::array kIterators = {"0",        "1", "2", "3", "-1", "9223372036854775807",
                                         "268435458"};
      iterator = kIterators[random.below(kIterators.size())];
    }
    if (random.below(4) != 0) {
      bytes = damaged(bytes, random);
      if (random.below(4) != 0) bytes = mended(bytes);
    }
    ASSERT_FALSE(talk_.call({load, "new", iterator, bytes}).lost()) << server_.log();
    ASSERT_NE(talk_(family + ".ADD new " + std::to_string(i)), "lost") << server_.log();
  }
  for (const char* const command : {".EXISTS new 1", ".INFO new", ".SCANDUMP new 0",
                                    ".SCANDUMP new 1", ".MERGE new k", ".MERGE k new"}) {
    ASSERT_NE(talk_(family + command), "lost") << server_.log();
  }
  EXPECT_FALSE(talk_("DEBUG RELOAD").starts_with('-')) << server_.log();
  expect_alive();
}

// Writes commands behind those of the AOF file. REQUIRES: the server does not run.
void append_to_aof(const RedisServer& server, const std::vector<Words>& commands) {
  for (const auto& file :
       std::filesystem::directory_iterator(server.directory() / "appendonlydir")) {
    if (file.path().string().find(".incr.") == std::string::npos) continue;
    std::ofstream aof(file.path(), std::ios::app | std::ios::binary);
    for (const Words& words : commands) {
      aof << '*' << words.size() << "\r\n";
      for (const std::string& word : words) aof << '$' << word.size() << "\r\n" << word << "\r\n";
    }
  }
}

// No server checks the arity of the command in an effect.
TEST(HostileAof, AnEffectWithTooFewArgumentsOrWithinAnotherIsCountedAndChangesNothing) {
  RedisServer server(with_module({"--appendonly", "yes"}));
  EXPECT_EQ(Talk(server)("TALLY.INCRBY t c 1 ID x"), R"([1, "applied"])");
  server.stop();
  append_to_aof(server, {{"SEMEL.AT", "1", "1", "TALLY.INCRBY", "t"},
                         {"SEMEL.AT", "1", "1", "SEMEL.AT", "1", "1", "TALLY.DECRBY", "t"}});
  server.start();
  Talk talk(server);
  EXPECT_EQ(info(talk, "semel", "semel_effects_failed"), 2);
  EXPECT_EQ(talk("TALLY.GET t c"), "1");
}

// Valkey 9.1 and later check the arity of every command in the file.
TEST(HostileAof, AnEffectWithoutACommandIsCountedOrRefused) {
  RedisServer server(with_module({"--appendonly", "yes"}));
  EXPECT_EQ(Talk(server)("TALLY.INCRBY t c 1 ID x"), R"([1, "applied"])");
  for (const Words& words : {Words{"SEMEL.AT"}, Words{"SEMEL.AT", "1"}, Words{"SEMEL.AT", "1", "1"},
                             Words{"SEMEL.AT", "1", "1", "TALLY.INCRBY"}}) {
    if (server.running()) server.stop();
    append_to_aof(server, {words});
    if (!server.try_start()) {
      EXPECT_NE(server.log().find("wrong number of arguments for 'semel.at'"), std::string::npos)
          << server.log();
      return;
    }
  }
  Talk talk(server);
  EXPECT_EQ(info(talk, "semel", "semel_effects_failed"), 4);
  EXPECT_EQ(talk("TALLY.GET t c"), "1");
}

// A base file of commands, without a preamble in the format of RDB files.
class HostileBase : public ::testing::Test {
 protected:
  static constexpr std::array kDatabases = {"0", "3"};

  // Rewrites the base file, and ends the server.
  void SetUp() override {
    {
      Talk talk(server_);
      for (const char* const database : kDatabases) {
        talk.call({"SELECT", database});
        for (const Sample& sample : samples()) {
          ASSERT_TRUE(make_sample(talk, sample, std::string("key-of-a-").append(sample.name)));
        }
      }
    }
    rewrite();
  }

  void rewrite() {
    {
      Talk talk(server_);
      ASSERT_NO_FATAL_FAILURE(rewrite_aof(talk));
      expected_ = digests_of_all();
    }
    server_.stop();
    for (const auto& file :
         std::filesystem::directory_iterator(server_.directory() / "appendonlydir")) {
      if (file.path().string().find(".base.") != std::string::npos) path_ = file.path();
    }
    std::ifstream file(path_, std::ios::binary);
    base_.assign(std::istreambuf_iterator<char>(file), {});
  }

  std::vector<Digests> digests_of_all() const {
    Talk talk(server_);
    std::vector<Digests> all;
    for (int database = 0; database < 16; ++database) {
      talk("SELECT " + std::to_string(database));
      all.push_back(digests(talk));
    }
    return all;
  }

  // Starts the server with such a base. It has all data, or refuses them and says why. Returns true
  // if it started.
  bool expect_all_or_a_refusal(const std::string& base) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << base;
    const std::size_t logged = server_.log().size();
    if (server_.try_start()) {
      EXPECT_EQ(digests_of_all(), expected_);
      server_.stop();
      return true;
    }
    const std::string log = server_.log().substr(logged);
    EXPECT_TRUE(std::any_of(kReasons.begin(), kReasons.end(), [&](const char* reason) {
      return log.find(reason) != std::string::npos;
    })) << log;
    return false;
  }

  // Keys of the server's own types and of ours.
  static constexpr std::array kReasons = {
      "Bad file format reading the append only file",
      "Unknown command",
      "Error reading the append only file",  // Valkey
      "Unexpected end of file reading the append only file",
      "the truncated file is not the last file",
      "the AOF file cannot be loaded",
  };

  RedisServer server_{with_module({"--appendonly", "yes", "--aof-use-rdb-preamble", "no",
                                   "--auto-aof-rewrite-percentage", "0"})};
  std::vector<Digests> expected_;
  std::filesystem::path path_;
  std::string base_;
};

// SEMEL_FLIPS sets how many bits are flipped. Half of them are near the beginning of a command,
// where its key, type and lengths are, because most bytes belong to values.
TEST_F(HostileBase, AFlippedBitIsFoundOrDoesNotMatter) {
  Random random(fresh_seed());
  std::vector<std::size_t> commands;
  for (std::size_t at = base_.find('*'); at != std::string::npos;
       at = base_.find("\r\n*", at + 1)) {
    commands.push_back(at);
  }
  ASSERT_GT(commands.size(), kDatabases.size() * samples().size());
  ASSERT_TRUE(expect_all_or_a_refusal(base_));
  for (std::uint64_t flips = setting("SEMEL_FLIPS", 60); flips > 0 && !HasFailure(); --flips) {
    constexpr std::size_t kBeginning = 120;
    std::size_t at = random.below(base_.size());
    if (flips % 2 == 0) at = commands[random.below(commands.size())] + random.below(kBeginning);
    if (at >= base_.size()) continue;
    const auto bit = static_cast<int>(random.below(8));
    SCOPED_TRACE("bit " + std::to_string(bit) + " of byte " + std::to_string(at));
    std::string damaged = base_;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
    expect_all_or_a_refusal(damaged);
  }
}

// Flipped bits seldom produce this damage: one word is replaced by another.
TEST_F(HostileBase, WordsThatAreOthersAreFound) {
  struct Change {
    const char* from;
    const char* to;
  };
  for (const Change& change :
       {Change{"key-of-a-Tally\r", "key-of-b-Tally\r"},
        Change{"SELECT\r\n$1\r\n3", "SELECT\r\n$1\r\n2"},
        Change{"SELECT\r\n$1\r\n3", "SELECT\r\n$1\r\nx"}, Change{"SMLtally-", "SMLsift--"},
        Change{"SMLtally-", "SMLtallyx"}}) {
    SCOPED_TRACE(change.to);
    std::string changed = base_;
    const std::size_t at = changed.find(change.from);
    ASSERT_NE(at, std::string::npos);
    changed.replace(at, std::string_view(change.from).size(), change.to);
    EXPECT_FALSE(expect_all_or_a_refusal(changed));
  }
}

// A value of several pieces.
TEST_F(HostileBase, MissingDoubledAndSwappedPiecesAreFound) {
  server_.start();
  {
    Talk talk(server_);
    ASSERT_EQ(talk("BF.RESERVE large 0.01 30000000"), "+OK");
    ASSERT_EQ(talk("BF.ADD large a"), "1");
  }
  rewrite();
  const std::string name = "SEMEL.LOAD\r\n$5\r\nlarge\r\n";
  std::vector<std::size_t> begins;
  for (std::size_t at = base_.find(name); at != std::string::npos; at = base_.find(name, at + 1)) {
    begins.push_back(base_.rfind('*', at));
  }
  ASSERT_GE(begins.size(), 3u);
  // The last piece may be the last command of the file, or not.
  const std::size_t next = base_.find("\r\n*", begins[2]);
  const std::size_t end = next == std::string::npos ? base_.size() : next + 2;
  const std::string before = base_.substr(0, begins[0]), after = base_.substr(end);
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < 3; ++i) {
    pieces.push_back(base_.substr(begins[i], (i < 2 ? begins[i + 1] : end) - begins[i]));
  }
  EXPECT_TRUE(expect_all_or_a_refusal(before + pieces[0] + pieces[1] + pieces[2] + after));
  EXPECT_FALSE(expect_all_or_a_refusal(before + pieces[1] + pieces[2] + after));
  EXPECT_FALSE(expect_all_or_a_refusal(before + pieces[0] + pieces[2] + after));
  EXPECT_FALSE(expect_all_or_a_refusal(before + pieces[0] + pieces[1] + after));
  EXPECT_FALSE(expect_all_or_a_refusal(before + after + pieces[0] + pieces[1]));
  EXPECT_FALSE(expect_all_or_a_refusal(before + pieces[0] + pieces[2] + pieces[1] + after));
  expect_all_or_a_refusal(before + pieces[0] + pieces[1] + pieces[1] + pieces[2] + after);
}

}  // namespace
}  // namespace semel
