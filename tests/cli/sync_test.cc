// semel sync, diff, plan, serve-sync, load and dump: real directories, real processes, real pipes.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <string>

#include "cli/pipe_records.h"
#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;
using Records = std::map<std::string, std::string>;  // as load and dump write them: escaped

std::string lines_of(const Records& records) {
  std::string out;
  for (const auto& [key, value] : records) out.append(key).append("\t").append(value).append("\n");
  return out;
}

std::string key(int number) {
  const std::string digits = std::to_string(number);
  return "key-" + std::string(6 - digits.size(), '0') + digits;
}

Records numbered(int from, int to) {
  Records records;
  for (int i = from; i < to; ++i) records[key(i)] = "value " + std::to_string(i);
  return records;
}

// Passes on this many bytes of its input, each at once.
std::string first_bytes(int count) { return "dd bs=1 status=none count=" + std::to_string(count); }

void expect_in(const std::string& text, const Words& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
}

class Sync : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path() / name; }

  void make(const std::string& name, const Records& records) const {
    const Outcome outcome = run_semel({"load", path(name)}, lines_of(records));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  std::string dump(const std::string& name) const {
    const Outcome outcome = run_semel({"dump", path(name)});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }
  void expect_records(const std::string& name, const Records& records) const {
    EXPECT_EQ(dump(name), lines_of(records)) << name;
  }
  // A subcommand on a and b, here or with b behind a pipe.
  Outcome on_both(Words words) const {
    words.insert(words.end(), {path("a"), path("b")});
    return run_semel(std::move(words));
  }
  Outcome by_pipe(Words words, const std::string& options = "") const {
    return via(std::move(words), serve(options));
  }
  Outcome via(Words words, const std::string& command) const {
    words.insert(words.end(), {path("a"), "--via", command});
    return run_semel(std::move(words));
  }
  // Returns a command that says hello, then something else, and goes on reading.
  template <class Say>
  std::string says(const std::string& name, Say say) const {
    std::string stream(cli::hello_of(cli::PipeRole::answers));
    cli::PipeEncoder encoder;
    say(encoder, stream);
    return "cat " + directory_.write(name, stream) + "; cat >/dev/null";
  }
  std::string serve(const std::string& options = "") const {
    return SEMEL_COMMAND " serve-sync " + options + ' ' + path("b");
  }

  TemporaryDirectory directory_;
};

// --- load and dump

TEST_F(Sync, LoadsAnyBytesAndDumpsThemInOrder) {
  std::string lines;
  for (int byte = 255; byte >= 0; --byte) {
    std::array<char, 32> line{};
    std::snprintf(line.data(), line.size(), "k\\x%02x\t\\x%02x\\\\\n", byte, byte);
    lines += line.data();
  }
  ASSERT_EQ(run_semel({"load", path("a")}, lines).status, 0);
  const std::string dumped = dump("a");
  EXPECT_EQ(std::count(dumped.begin(), dumped.end(), '\n'), 256);
  expect_in(dumped,
            {"k\\x00\t\\x00\\\\\n", "kA\tA\\\\\n", "k\\\\\t\\\\\\\\\n", "k\\xff\t\\xff\\\\\n"});
  EXPECT_LT(dumped.find("kA\t"), dumped.find("kB\t"));
  ASSERT_EQ(run_semel({"load", path("b")}, dumped).status, 0);
  EXPECT_EQ(dump("b"), dumped);
}

TEST_F(Sync, LoadsOverOldValuesAndRemoves) {
  make("a", {{"x", "1"}, {"y", "2"}});
  make("a", {{"y", "3"}, {"z", ""}});
  expect_records("a", {{"x", "1"}, {"y", "3"}, {"z", ""}});
  EXPECT_EQ(run_semel({"load", "--remove", path("a")}, "y\nno such key\nz").status, 0);
  expect_records("a", {{"x", "1"}});
}

TEST_F(Sync, LoadNamesABadLine) {
  const auto refused = [&](const Words& options, const std::string& input) {
    Words words = {"load", path("a")};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = run_semel(words, input);
    EXPECT_EQ(outcome.status, 1);
    return outcome.err;
  };
  EXPECT_EQ(refused({}, "a\t1\nb\n"),
            "semel load: standard input line 2: there is no tab; allowed: KEY, a tab, VALUE; the "
            "lines before it are done\n");
  expect_in(refused({}, "a\\q\t1\n"), {"line 1: a backslash; allowed: \\\\ and \\xNN"});
  expect_in(refused({}, "a\t\\x4\n"), {"line 1: a backslash"});
  expect_in(refused({"--remove"}, "a\t1\n"), {"line 1: there is a tab; allowed: a key alone"});
  expect_records("a", {{"a", "1"}});
}

TEST_F(Sync, LoadRefusesCompressedInput) {
  const Outcome outcome = run_semel({"load", path("a")}, "PK\x03\x04\nb\t1\n");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(
      outcome.err,
      "semel load: cannot read standard input: it is compressed by zip; allowed: unzip -p FILE "
      "| semel load " +
          path("a") + '\n');
  expect_records("a", {});
  EXPECT_EQ(run_semel({"load", path("a")}, "PK\t1\n").status, 0);
  expect_records("a", {{"PK", "1"}});
}

TEST_F(Sync, DumpsARange) {
  make("a", {{"a", "1"}, {"b", "2"}, {"ba", "3"}, {"c", "4"}});
  EXPECT_EQ(run_semel({"dump", path("a"), "-p", "b"}).out, "b\t2\nba\t3\n");
  EXPECT_EQ(run_semel({"dump", path("a"), "-f", "b\\x00"}).out, "ba\t3\nc\t4\n");
  EXPECT_EQ(run_semel({"dump", path("a"), "-p", "b", "-e", "ba"}).out, "b\t2\n");
  expect_usage_error(run_semel({"dump", path("a"), "-f", "b", "-e", "b"}),
                     {"no key is in the range; allowed: "});
}

TEST_F(Sync, KeepsColumnFamiliesApart) {
  make("a", {{"x", "1"}});
  EXPECT_EQ(run_semel({"load", "-F", "other", path("a")}, "y\t2\n").status, 0);
  expect_records("a", {{"x", "1"}});
  EXPECT_EQ(run_semel({"dump", "-F", "other", path("a")}).out, "y\t2\n");
  const Outcome missing = run_semel({"dump", "-F", "none", path("a")});
  EXPECT_EQ(missing.status, 1);
  expect_in(missing.err, {"semel dump: cannot open '" + path("a") + "'"});
}

// --- diff

TEST_F(Sync, DiffTellsWhatDiffersAndBySuchAnExitStatus) {
  Records a = numbered(0, 1000);
  Records b = a;
  a["only a\\x0a"] = "1";
  b["only b\\\\"] = "2";
  a[key(500)] = "other";
  make("a", a);
  make("b", b);
  const std::string keys = "! " + key(500) + "\n< only a\\x0a\n> only b\\\\\n";
  for (const bool piped : {false, true}) {
    const Outcome outcome = piped ? by_pipe({"diff", "-q"}, "-r") : on_both({"diff", "-q"});
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_EQ(outcome.out, keys);
    EXPECT_EQ(outcome.err, "");
  }
  EXPECT_EQ(on_both({"diff", "-q", "-z"}).out,
            "! " + key(500) + std::string("\0< only a\n\0> only b\\\0", 21));
  EXPECT_EQ(on_both({"diff", "-q", "-c"}).out, "only_a 1\nonly_b 1\nchanged 1\n");
  expect_in(
      on_both({"diff", "-j"}).out,
      {"{\"in\":\"both\",\"key\":\"" + key(500) + "\"}\n{\"in\":\"a\",\"key\":\"only a\\\\x0a\"}\n",
       "\"only_a\":1,\"only_b\":1,\"changed\":1", "\"proved\":true"});
  expect_in(on_both({"diff"}).err,
            {"differences      3: 1 only in A, 1 only in B, 1 with other values\n", "proved"});
  expect_records("a", a);
  expect_records("b", b);
}

TEST_F(Sync, DiffOfEqualDirectoriesIsSilentAndExitsWith0) {
  make("a", numbered(0, 300));
  make("b", numbered(0, 300));
  for (const Outcome& outcome : {on_both({"diff", "-q"}), by_pipe({"diff", "-q"}, "-r")}) {
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out + outcome.err, "");
  }
  make("empty 1", {});
  make("empty 2", {});
  EXPECT_EQ(run_semel({"diff", "-q", path("empty 1"), path("empty 2")}).status, 0);
  EXPECT_EQ(run_semel({"diff", "-q", "-c", path("a"), path("empty 1")}).out,
            "only_a 300\nonly_b 0\nchanged 0\n");
}

TEST_F(Sync, EveryWayFindsTheSame) {
  Records a = numbered(0, 2000);
  Records b = numbered(100, 2100);
  for (int i = 300; i < 2000; i += 100) b[key(i)] = "changed";
  make("a", a);
  make("b", b);
  const std::string expected = on_both({"diff", "-q"}).out;
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 217);
  for (const char* way : {"walk", "sketch", "list", "copy"}) {
    EXPECT_EQ(on_both({"diff", "-q", "-w", way}).out, expected) << way;
    EXPECT_EQ(on_both({"diff", "-q", "-w", way, "--stretch", "150"}).out, expected) << way;
    EXPECT_EQ(by_pipe({"diff", "-q", "-w", way}, "-r").out, expected) << way;
    expect_in(on_both({"diff", "-j", "-c", "-w", way}).out,
              {std::string("\"way\":\"") + way + "\""});
  }
}

TEST_F(Sync, DiffEndsQuietlyWhenNobodyReadsIt) {
  make("a", numbered(0, 20'000));
  make("b", {});
  const std::string both = path("a") + ' ' + path("b");
  const std::string piped = path("a") + " --via '" + serve("-r") + "'";
  for (const std::string& operands : {both, piped}) {
    const Outcome outcome =
        run_shell("$SEMEL diff -q " + operands + " | head -n 1; echo ${PIPESTATUS[0]}");
    EXPECT_EQ(outcome.out, "< " + key(0) + "\n141\n") << operands;
    EXPECT_EQ(outcome.err, "");
  }
  const Outcome full = run_shell("$SEMEL diff -q " + both + " >/dev/full");
  EXPECT_EQ(full.status, 2);
  expect_in(full.err, {"semel diff: cannot write standard output: No space left on device\n"});
}

// --- sync

TEST_F(Sync, GivesBothWhatEitherLacks) {
  Records a = numbered(0, 1500);
  Records b = numbered(500, 2000);
  a[key(700)] = "a";
  b[key(700)] = "b";
  Records all = numbered(0, 2000);
  all[key(700)] = "value 700" < std::string("b") ? "b" : "value 700";
  for (const bool piped : {false, true}) {
    for (const char* name : {"a", "b"}) std::filesystem::remove_all(path(name));
    make("a", a);
    make("b", b);
    const Outcome outcome = piped ? by_pipe({"sync"}) : on_both({"sync"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    expect_in(outcome.err,
              {"differences      1,001: 500 only in A, 500 only in B, 1 with other values\n",
               "\nround trips ", ", predicted ", "\nproved           yes\n"});
    all[key(700)] = "b";
    expect_records("a", all);
    expect_records("b", all);
    EXPECT_EQ(on_both({"diff", "-q"}).status, 0);
    const Outcome again = piped ? by_pipe({"sync", "-j"}) : on_both({"sync", "-j"});
    EXPECT_EQ(again.status, 0);
    expect_in(again.out, {"\"only_a\":0,\"only_b\":0,\"changed\":0", "\"written_a\":0",
                          "\"way\":\"nothing\"", "\"round_trips\":1,"});
  }
}

TEST_F(Sync, FollowsTheRule) {
  const Records a = {{"both", "a"}, {"only a", "1"}, {"same", "s"}};
  const Records b = {{"both", "b"}, {"only b", "2"}, {"same", "s"}};
  struct Case {
    Words options;
    Records a;
    Records b;
  };
  const Records joined = {{"both", "b"}, {"only a", "1"}, {"only b", "2"}, {"same", "s"}};
  const std::vector<Case> cases = {
      {{}, joined, joined},
      {{"-r", "join"}, joined, joined},
      {{"-r", "newest"}, joined, joined},  // values without a time are of equal times
      {{"-r", "source"}, a, {{"both", "a"}, {"only a", "1"}, {"only b", "2"}, {"same", "s"}}},
      {{"-r", "source", "-d"}, a, a},
      {{"-r", "source", "-d", "-R"}, b, b},
      {{"-r", "source", "-R"}, joined, b},
      {{"-r", "destination"}, a, joined},
      {{"-r", "destination", "-R"},
       {{"both", "a"}, {"only a", "1"}, {"only b", "2"}, {"same", "s"}},
       b},
      {{"-n"}, a, b},
  };
  for (const auto& [options, a_after, b_after] : cases) {
    for (const bool piped : {false, true}) {
      for (const char* name : {"a", "b"}) std::filesystem::remove_all(path(name));
      make("a", a);
      make("b", b);
      Words words = {"sync", "-q"};
      words.insert(words.end(), options.begin(), options.end());
      const Outcome outcome = piped ? by_pipe(words) : on_both(words);
      EXPECT_EQ(outcome.status, options == Words{"-n"} ? 1 : 0) << outcome.err;
      EXPECT_EQ(outcome.out + outcome.err, "");
      expect_records("a", a_after);
      expect_records("b", b_after);
    }
  }
}

TEST_F(Sync, NewestTakesTheLaterTime) {
  make("a", {{"x", "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02a"},
             {"y", "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01z"}});
  make("b", {{"x", "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01z"},
             {"y", "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02a"}});
  EXPECT_EQ(on_both({"sync", "-q", "-r", "newest"}).status, 0);
  for (const char* name : {"a", "b"}) {
    expect_records(name, {{"x", "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02a"},
                          {"y", "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02a"}});
  }
}

TEST_F(Sync, TouchesNothingOutsideItsRange) {
  make("a", {{"a1", "1"}, {"b1", "1"}, {"c1", "1"}});
  make("b", {{"a2", "2"}, {"b2", "2"}, {"c2", "2"}});
  EXPECT_EQ(on_both({"sync", "-q", "-p", "b"}).status, 0);
  expect_records("a", {{"a1", "1"}, {"b1", "1"}, {"b2", "2"}, {"c1", "1"}});
  expect_records("b", {{"a2", "2"}, {"b1", "1"}, {"b2", "2"}, {"c2", "2"}});
  EXPECT_EQ(by_pipe({"sync", "-q", "-f", "c2"}).status, 0);
  expect_records("a", {{"a1", "1"}, {"b1", "1"}, {"b2", "2"}, {"c1", "1"}, {"c2", "2"}});
  expect_records("b", {{"a2", "2"}, {"b1", "1"}, {"b2", "2"}, {"c2", "2"}});
  EXPECT_EQ(on_both({"diff", "-q", "-e", "b"}).out, "< a1\n> a2\n");
  EXPECT_EQ(on_both({"sync", "-q", "--resume-from", "c"}).status, 0);
  expect_records("b", {{"a2", "2"}, {"b1", "1"}, {"b2", "2"}, {"c1", "1"}, {"c2", "2"}});
}

TEST_F(Sync, FollowsItsDirectoriesFromRunToRun) {
  make("a", numbered(0, 3000));
  make("b", numbered(0, 3000));
  EXPECT_EQ(on_both({"sync", "-q"}).status, 0);
  make("a", {{key(1000), "new"}, {"x", "1"}});
  EXPECT_EQ(run_semel({"load", "-r", path("b")}, key(2000) + "\n").status, 0);
  EXPECT_EQ(on_both({"diff", "-q"}).out, "! " + key(1000) + "\n< " + key(2000) + "\n< x\n");
  EXPECT_EQ(on_both({"sync", "-q", "-r", "source"}).status, 0);
  make("b", {{"y", "2"}});
  EXPECT_EQ(on_both({"sync", "-q", "--no-checkpoint"}).status, 0);
  EXPECT_EQ(dump("a"), dump("b"));
  // Another key, another index.
  directory_.write("key", std::string(32, 'k'));
  make("a", {{"z", "1"}});
  EXPECT_EQ(on_both({"sync", "-q", "-k", path("key")}).status, 0);
  make("b", {{"zz", "1"}});
  EXPECT_EQ(on_both({"diff", "-q", "-k", path("key")}).out, "> zz\n");
  EXPECT_EQ(on_both({"diff", "-q"}).out, "> zz\n");
}

TEST_F(Sync, ReadsKeysAsBytesOrDigits) {
  make("a", {{"x", "1"}});
  make("b", {{"y", "1"}});
  directory_.write("raw", std::string(32, 'k'));
  std::string digits;
  for (int i = 0; i < 32; ++i) digits += "6b";
  directory_.write("hex", digits + "\n");
  EXPECT_EQ(by_pipe({"diff", "-q", "-k", path("raw")}, "-r -k " + path("hex")).out, "< x\n> y\n");

  const Outcome other = by_pipe({"sync", "-q", "-k", path("raw")});
  EXPECT_EQ(other.status, 1);
  expect_in(other.err,
            {"semel sync: the peer refuses: 'sync: the other end has another secret'\n"});
  expect_records("a", {{"x", "1"}});
  expect_records("b", {{"y", "1"}});

  for (const std::string& bad : {std::string(31, 'k'), digits + "6", std::string(64, 'x')}) {
    directory_.write("bad", bad);
    const Outcome outcome = on_both({"diff", "-k", path("bad")});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "semel diff: '" + path("bad") +
                               "' is not a key; allowed: 32 bytes, or 64 hexadecimal digits\n");
  }
  expect_in(on_both({"sync", "-k", path("none")}).err,
            {"semel sync: cannot read '" + path("none") + "': No such file or directory\n"});
}

// --- plan

TEST_F(Sync, PlanTellsWhatEachWayCosts) {
  make("a", numbered(0, 5000));
  make("b", numbered(50, 5000));
  for (const Outcome& outcome :
       {on_both({"plan"}), by_pipe({"plan", "-l", "20ms", "-b", "1M"}, "-r")}) {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_in(outcome.out, {"A                5,000 records", "B                4,950 records",
                            "only in A        ", "Jaccard          0.9", "\nway ", "\nwalk ",
                            "\nsketch ", "\nlist ", "\ncopy ", "  chosen\n"});
    EXPECT_EQ(outcome.err, "");
  }
  expect_in(on_both({"plan", "-j"}).out,
            {"\"a\":{\"records\":5000,", "\"estimate\":{\"only_a\":{\"value\":", "\"chosen\":\"",
             "\"ways\":[{\"way\":\"walk\","});
  expect_records("b", numbered(50, 5000));
  make("b", numbered(0, 50));
  expect_in(on_both({"plan"}).out, {"difference       none: the digests are equal\n"});
  expect_in(on_both({"plan", "-j"}).out, {"\"jaccard\":{\"value\":1,", "\"chosen\":\"nothing\""});
}

// --- what goes wrong

TEST_F(Sync, NeverMakesADirectory) {
  make("a", {{"x", "1"}});
  for (const char* word : {"sync", "diff", "plan"}) {
    const Outcome outcome = on_both({word});
    EXPECT_EQ(outcome.status, std::string(word) == "diff" ? 2 : 1);
    EXPECT_EQ(outcome.err, std::string("semel ") + word + ": cannot open '" + path("b") +
                               "': No such file or directory\n");
  }
  EXPECT_EQ(run_semel({"dump", path("b")}).status, 1);
  EXPECT_EQ(run_semel({"serve-sync", path("b")}).status, 1);
  EXPECT_FALSE(std::filesystem::exists(path("b")));

  std::filesystem::create_directory(path("b"));
  expect_in(on_both({"sync"}).err, {"it is not a directory of RocksDB\n"});
  EXPECT_TRUE(std::filesystem::is_empty(path("b")));
  directory_.write("file", "");
  expect_in(run_semel({"diff", path("file"), path("a")}).err, {"it is not a directory\n"});
}

TEST_F(Sync, LeavesADirectoryInUseAlone) {
  make("a", {{"x", "1"}});
  make("b", {{"y", "2"}});
  Process owner({.command = {SEMEL_COMMAND, "load", path("b")}});
  const std::string in_use = "cannot open '" + path("b") + "': it is in use by another process";
  Outcome outcome;
  ASSERT_TRUE(eventually([&] {  // it has it
    outcome = on_both({"diff", "-q"});
    return outcome.status == 2;
  }));
  EXPECT_EQ(outcome.err, "semel diff: " + in_use + "; allowed: --secondary\n");
  outcome = on_both({"sync"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "semel sync: " + in_use + "\n");
  outcome = by_pipe({"sync"});
  EXPECT_EQ(outcome.status, 1);
  expect_in(outcome.err,
            {"semel serve-sync: " + in_use + "\n",
             "semel sync: the peer ended before it answered\n", "ended with status 1\n"});
  EXPECT_EQ(on_both({"diff", "-q", "--secondary"}).out, "< x\n> y\n");
  EXPECT_EQ(by_pipe({"diff", "-q"}, "-s").out, "< x\n> y\n");
  owner.write("z\t3\n");
  EXPECT_EQ(owner.finish().status, 0);
  expect_records("b", {{"y", "2"}, {"z", "3"}});
}

TEST_F(Sync, ComparesDirectoriesThatCannotBeWritten) {
  make("a", {{"x", "1"}});
  make("b", {{"y", "2"}});
  for (const char* name : {"a", "b"}) ASSERT_EQ(::chmod(path(name).c_str(), 0555), 0);
  EXPECT_EQ(on_both({"diff", "-q"}).out, "< x\n> y\n");
  EXPECT_EQ(on_both({"plan"}).status, 0);
  for (const char* name : {"a", "b"}) ASSERT_EQ(::chmod(path(name).c_str(), 0755), 0);
}

TEST_F(Sync, NamesAPeerThatIsNone) {
  make("a", numbered(0, 100));
  const std::vector<std::pair<std::string, std::string>> peers = {
      {"echo 'Welcome to host!'; cat >/dev/null",
       "the peer does not speak semel's sync: it said 'Welcome to host!'"},
      {"printf 'semel-sync 2\\n'; cat >/dev/null",
       "the peer speaks another version, or has the same role as this end: it said 'semel-sync 2', "
       "not 'semel-sync 1 answers'"},
      {says("long", [](auto& to, auto& out) { to.frame(Bytes((16 << 20) + 1), out); }),
       "the peer sends a frame of more than 16777216 bytes"},
      {says("junk",
            [](auto& to, auto& out) {
              to.frame(Bytes{1, 2, 3, 4}, out);
            }),
       "sync: "},
      {says("empty", [](auto& to, auto& out) { to.frame({}, out); }), "sync: "},
      {says("noise", [](auto&, auto& out) { out.append(100, '\xff'); }),
       "what came from the peer is damaged"},
      {"printf 'semel-sync 1 answers\\n\\4\\0\\2ju'", "the peer ended in the middle of a frame"},
      {"printf 'semel-sync 1 answers\\n'; cat >/dev/null & exec >&-; wait",
       "the peer ended before it answered"},
      {says("goodbye", [](auto& to, auto& out) { to.end(out); }),
       "the peer ended before it answered"},
      {"cat", "it said 'semel-sync 1 asks', not 'semel-sync 1 answers'"},
      {"yes", "it said 'y'"},
      {"true", "the peer ended before it said hello"},
      {"exit 3", "ended with status 3"},
      {"no-such-command-here 2>&1", "no-such-command-here: not found"},
  };
  for (const auto& [command, message] : peers) {
    const Outcome outcome = via({"sync"}, command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_FALSE(outcome.timed_out) << command;
    EXPECT_EQ(outcome.out, "");
    expect_in(outcome.err, {"semel sync: ", message});
    EXPECT_EQ(via({"diff"}, command).status, 2) << command;
  }
  expect_records("a", numbered(0, 100));
}

TEST_F(Sync, SurvivesAPeerThatIsCutOffAnywhere) {
  make("a", numbered(0, 400));
  const Records b = numbered(200, 600);
  make("b", b);
  for (const int bytes : {0, 5, 21, 24, 30, 200, 1500, 4000}) {
    // No shell is left that would hold the pipe open.
    const Outcome outcome =
        via({"sync", "-q"}, "exec bash -c 'exec " + first_bytes(bytes) + " < <(" + serve() + ")'");
    EXPECT_EQ(outcome.status, 1) << bytes << outcome.err;
    EXPECT_FALSE(outcome.timed_out) << bytes;
    expect_in(outcome.err, {"semel sync: the peer ended "});
  }
  EXPECT_EQ(by_pipe({"sync", "-q"}).status, 0);
  expect_records("a", numbered(0, 600));
  expect_records("b", numbered(0, 600));
}

TEST_F(Sync, ServesOnlyWhatItWasTold) {
  make("a", {{"a1", "1"}, {"b1", "1"}});
  make("b", {{"a2", "2"}, {"b2", "2"}});
  const Outcome outside = by_pipe({"sync", "-q"}, "-p b");
  EXPECT_EQ(outside.status, 1);
  expect_in(outside.err, {"the peer refuses: 'sync: the range is not all answered for here'\n"});
  const Outcome read_only = by_pipe({"sync", "-q"}, "-r");
  EXPECT_EQ(read_only.status, 1);
  expect_in(read_only.err, {"the peer refuses: 'sync: this end does not write'\n"});
  expect_records("b", {{"a2", "2"}, {"b2", "2"}});
  EXPECT_EQ(by_pipe({"sync", "-q", "-p", "b"}, "-p b").status, 0);
  expect_records("b", {{"a2", "2"}, {"b1", "1"}, {"b2", "2"}});
}

TEST_F(Sync, ServerNamesAPeerThatIsNone) {
  make("b", {{"x", "1"}});
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"GET / HTTP/1.1\r\n\r\n",
       "the peer does not speak semel's sync: it said 'GET / HTTP/1.1\\x0d'"},
      {"", "the peer ended before it said hello"},
      {"semel-sync 1 asks\nab", "the peer ended in the middle of a frame"},
      {"semel-sync 1 asks\n", "the peer ended before it said goodbye"},
      {"semel-sync 1 answers\n",
       "the peer speaks another version, or has the same role as this end: it said 'semel-sync 1 "
       "answers', not 'semel-sync 1 asks'"},
      {std::string("semel-sync 1 asks\n\xff\xff\xff\xff\xff\xff\xff\xff"),
       "what came from the peer is damaged"}};
  for (const auto& [input, message] : inputs) {
    const Outcome outcome = run_semel({"serve-sync", path("b")}, input);
    EXPECT_EQ(outcome.status, 1);
    expect_in(outcome.err, {"semel serve-sync: " + message});
  }
  // Bytes that are no frame are answered all the same.
  std::string stream("semel-sync 1 asks\n");
  cli::PipeEncoder encoder;
  encoder.frame(Bytes{1, 2, 3, 4}, stream);
  encoder.end(stream);
  const Outcome answered = run_semel({"serve-sync", path("b")}, stream);
  EXPECT_EQ(answered.status, 0) << answered.err;
  cli::PipeDecoder decoder(cli::PipeRole::answers, 1 << 20);
  decoder.feed(answered.out);
  Bytes frame;
  EXPECT_EQ(*decoder.next(frame), cli::PipeDecoder::Item::frame);
  EXPECT_EQ(*decoder.next(frame), cli::PipeDecoder::Item::end);
}

// A peer that falls silent, and says so by a file.
class Stopped : public Sync {
 protected:
  std::string silent_after(int bytes) const {
    return serve() + " | (" + first_bytes(bytes) + "; touch " + path("silent") +
           "; exec cat >/dev/null)";
  }
  Outcome stop_when_silent(int bytes, int signal) const {
    Process process({.command = {SEMEL_COMMAND, "sync", "--stretch", "100", path("a"), "--via",
                                 silent_after(bytes)}});
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(path("silent")); }));
    process.wait_until_still();  // what came is worked off
    process.signal(signal);
    return process.finish();
  }
};

TEST_F(Stopped, SyncTellsThatNothingIsDone) {
  make("a", numbered(0, 2000));
  make("b", numbered(1000, 3000));
  const Outcome outcome = stop_when_silent(21, SIGINT);
  EXPECT_EQ(outcome.signal, SIGINT);
  expect_in(outcome.err, {"semel sync: no part of the range is done\n"});
  expect_records("a", numbered(0, 2000));
}

TEST_F(Stopped, SyncTellsFromWhereToGoOn) {
  make("a", numbered(0, 2000));
  make("b", numbered(1000, 3000));
  const Outcome outcome = stop_when_silent(8000, SIGTERM);
  EXPECT_EQ(outcome.signal, SIGTERM) << outcome.err;
  constexpr std::string_view kHint = "semel sync: to continue, add --resume-from '";
  const std::size_t at = outcome.err.find(kHint);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  const std::size_t start = at + kHint.size();
  const std::string from = outcome.err.substr(start, outcome.err.find('\'', start) - start);
  EXPECT_EQ(on_both({"diff", "-q", "-e", from}).status, 0) << from;
  EXPECT_EQ(on_both({"diff", "-q"}).status, 1) << from;
  EXPECT_EQ(on_both({"sync", "-q", "--resume-from", from}).status, 0);
  expect_records("a", numbered(0, 3000));
  expect_records("b", numbered(0, 3000));
}

// Keys come from others, and the hint is there to be pasted into a shell.
TEST_F(Stopped, TheKeyFromWhereToGoOnIsOneWordForAShell) {
  const auto odd = [](int first, int last) {
    Records records;
    for (const auto& [key, value] : numbered(first, last)) {
      records.emplace("it's;touch planted;'\\\\" + key, value);
    }
    return records;
  };
  make("a", odd(0, 2000));
  make("b", odd(1000, 3000));
  const Outcome outcome = stop_when_silent(8000, SIGTERM);
  const std::size_t at = outcome.err.find("--resume-from ");
  ASSERT_NE(at, std::string::npos) << outcome.err;
  const std::string hint = outcome.err.substr(at, outcome.err.find('\n', at) - at);
  const std::string line =
      std::string(SEMEL_COMMAND " sync -q ") + path("a") + ' ' + path("b") + ' ' + hint;
  EXPECT_EQ(run({.command = {"sh", "-c", line}}).status, 0) << line;
  expect_records("a", odd(0, 3000));
}

TEST_F(Sync, ASecondaryLeavesNothingAndSaysWhyItCannotBe) {
  make("a", numbered(0, 10));
  std::filesystem::create_directory(path("temporary"));
  const std::vector<std::string> command = {SEMEL_COMMAND, "dump", "--secondary", path("a")};
  EXPECT_EQ(run({.command = command, .environment = {{"TMPDIR", path("temporary")}}}).status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(path("temporary")));
  const Outcome refused =
      run({.command = command, .environment = {{"TMPDIR", path("no such directory")}}});
  EXPECT_EQ(refused.status, 1);
  expect_in(refused.err, {"no temporary directory"});
}

TEST_F(Sync, ShowsItsProgressIfAsked) {
  make("a", numbered(0, 30'000));
  make("b", {});
  const Outcome outcome = on_both({"sync", "--progress", "-w", "copy", "--stretch", "10"});
  EXPECT_EQ(outcome.status, 0);
  expect_in(outcome.err, {"found ", " of about ", " % of the records done, about ", " s left\n"});
}

TEST_F(Sync, RefusesOptionsThatContradictEachOther) {
  make("a", {});
  make("b", {});
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"sync", path("a")}, "the second DIRECTORY is missing"},
      {{"diff", path("a"), path("b"), "-v", "cat"}, "--via stands for the second DIRECTORY"},
      {{"plan", path("a"), path("b"), path("a")}, "at most 2 of DIRECTORY"},
      {{"sync", path("a"), path("a") + "/."}, "are one directory"},
      {{"sync", path("a"), path("b"), "-d"}, "--delete needs a source"},
      {{"sync", path("a"), path("b"), "-R"}, "--reverse needs a source"},
      {{"sync", path("a"), path("b"), "-q", "-j"}, "--quiet and --json"},
      {{"diff", path("a"), path("b"), "-z", "-c"}, "--zero and --count"},
      {{"diff", path("a"), path("b"), "-f", "b", "-e", "a"}, "no key is in the range"},
      {{"sync", path("a"), path("b"), "-e", "b", "--resume-from", "b"}, "no key is in the range"},
      {{"diff", path("a"), path("b"), "-f", "\\q"}, "-f cannot be '\\q'"},
      {{"sync", path("a"), path("b"), "-w", "nothing"}, "walk, sketch, list, copy"},
      {{"sync"}, "DIRECTORY is missing; allowed: names of RocksDB directories"},
  };
  for (const auto& [words, message] : cases) expect_usage_error(run_semel(words), {message});
}

}  // namespace
}  // namespace semel
