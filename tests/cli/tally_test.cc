// semel tally: real tables in real directories, written by real processes.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>

#include "semel/store/rocksdb_store.h"
#include "semel/tally/store/counter_merger.h"
#include "semel/tally/store/tally_store.h"
#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kGreatest = "9223372036854775807";
constexpr const char* kLeast = "-9223372036854775808";

void expect_in(const std::string& text, const Words& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
}

std::string name(int number) { return std::to_string(number).insert(0, 1, 'n'); }

class Tally : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path() / name; }

  // A subcommand on the table: the directory comes first.
  Outcome tally(const std::string& word, Words words = {}, std::string input = "") const {
    words.insert(words.begin(), {"tally", word, path("table")});
    return run_semel(std::move(words), std::move(input));
  }
  std::string add(Words words) const {
    const Outcome outcome = tally("add", std::move(words));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }
  // Not counted, and why.
  void expect_refused(Words words, const std::string& word, const std::string& reason) const {
    const Outcome outcome = tally("add", std::move(words));
    EXPECT_EQ(outcome.status, 3);
    EXPECT_EQ(outcome.out, word + '\n');
    EXPECT_EQ(outcome.err, "semel tally add: nothing was counted: " + reason + '\n');
  }
  std::string all() const { return tally("get").out; }
  Outcome load(Words words, std::string input) const {
    words.insert(words.begin(), "--quiet");
    return tally("load", std::move(words), std::move(input));
  }

  TemporaryDirectory directory_;
};

// --- add

TEST_F(Tally, CountsOnceForEachId) {
  EXPECT_EQ(add({"likes", "--id", "a"}), "applied 1\n");
  EXPECT_EQ(add({"likes", "--id", "a"}), "duplicate 1\n");
  EXPECT_EQ(add({"likes", "5", "--id", "b"}), "applied 6\n");
  EXPECT_EQ(add({"likes", "-2", "--id", "c"}), "applied 4\n");
  EXPECT_EQ(add({"likes", "+2", "-i", "d"}), "applied 6\n");
  EXPECT_EQ(add({"likes", "-2", "--id", "c"}), "duplicate 6\n");
  EXPECT_EQ(all(), "likes\t6\n");
}

TEST_F(Tally, CountsNumberedOperationsOnce) {
  const auto from = [&](const std::string& client, const std::string& sequence) {
    return add({"likes", "--client", client, "--sequence", sequence});
  };
  EXPECT_EQ(from("ann", "1"), "applied 1\n");
  EXPECT_EQ(from("ann", "3"), "applied 2\n");
  EXPECT_EQ(from("ben", "1"), "applied 3\n");
  EXPECT_EQ(from("ann", "1"), "duplicate 3\n");
  EXPECT_EQ(from("ann", "2"), "applied 4\n");
  EXPECT_EQ(from("ann", "18446744073709551615"), "applied 5\n");
}

TEST_F(Tally, CountsEachTimeWithoutAnId) {
  EXPECT_EQ(add({"visits"}), "applied 1\n");
  EXPECT_EQ(add({"visits"}), "applied 2\n");
  EXPECT_EQ(add({"visits", "0"}), "applied 2\n");
}

TEST_F(Tally, RefusesWhatLeaves64BitsAndKeepsTheIdFree) {
  EXPECT_EQ(add({"up", kGreatest}), std::string("applied ") + kGreatest + '\n');
  expect_refused({"up", "1", "--id", "a"}, "overflow", "the counter would not fit into 64 bits");
  EXPECT_EQ(add({"down", kLeast}), std::string("applied ") + kLeast + '\n');
  expect_refused({"down", "-1", "--id", "a"}, "overflow", "the counter would not fit into 64 bits");
  EXPECT_EQ(add({"up", "-1", "--id", "a"}), "applied 9223372036854775806\n");
  EXPECT_EQ(tally("sum").out, "sum\t-2\ncounters\t2\n");
}

TEST_F(Tally, TellsAConflictInAnExactTable) {
  EXPECT_EQ(add({"likes", "5", "--id", "a", "--exact"}), "applied 5\n");
  EXPECT_EQ(add({"likes", "5", "--id", "a"}), "duplicate 5\n");
  const char* const reason = "its id came before, with another counter or delta";
  expect_refused({"likes", "6", "--id", "a"}, "conflict", reason);
  expect_refused({"other", "5", "--id", "a"}, "conflict", reason);
  EXPECT_EQ(all(), "likes\t5\n");
}

// A client counts until its first operation has left the window. If the machine pauses for a whole
// window, all of the client is forgotten, and the test tries again.
TEST_F(Tally, TellsAStaleOperation) {
  const std::string records =
      "for i in {1..40}; do echo $client,$i,1; sleep 0.12; done; echo $client,1,1";
  Outcome outcome;
  for (int client = 1; client <= 20 && outcome.status != 3; ++client) {
    outcome = run_shell("client=" + std::to_string(client) + "; (" + records +
                        ") | $SEMEL tally load -f csv -c 1 -s 2 -a 3 -w 2s " + path("table"));
  }
  EXPECT_EQ(outcome.status, 3);
  expect_in(outcome.err, {"standard input line 41: not counted: too old to tell whether it was "
                          "counted before\n",
                          "applied          40\n", "stale            1\nrefused          0\n"});
}

TEST_F(Tally, RefusesWhenNoMemoryIsLeft) {
  std::string records;
  for (int i = 0; i < 5000; ++i) records += "likes\t1\tid-" + std::to_string(i) + '\n';
  const Outcome outcome = tally("load", {"--exact", "-m", "64K", "-n", "16", "--json"}, records);
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  expect_in(outcome.err, {": not counted: no memory is left to remember its id\n",
                          " more lines like these\n", "\"stale\":0"});
  expect_refused({"likes", "--id", "one more"}, "full", "no memory is left to remember its id");
  const std::string counted = all();
  EXPECT_LT(std::stoi(counted.substr(counted.find('\t'))), 5000);
  EXPECT_GT(std::stoi(counted.substr(counted.find('\t'))), 100);
  EXPECT_EQ(add({"likes", "0"}), "applied " + counted.substr(counted.find('\t') + 1));
}

TEST_F(Tally, RefusesBadOperandsAndChangesNothing) {
  expect_usage_error(tally("add"), {"COUNTER is missing; allowed: at most 2048 bytes"});
  expect_usage_error(run_semel({"tally", "add"}), {"DIRECTORY is missing"});
  for (const char* delta : {"x", "", "1.5", "1e3", "--", "9223372036854775808",
                            "-9223372036854775809", "+-1", "+", "0x1", " 1", "1 "}) {
    if (std::string(delta) == "--") continue;  // ends the options
    expect_usage_error(tally("add", {"likes", delta}),
                       {"DELTA cannot be '" + std::string(delta) +
                        "'; allowed: a whole number from -9223372036854775808 to "
                        "9223372036854775807"});
  }
  expect_usage_error(tally("add", {"likes", "1", "2"}),
                     {"unexpected '2'; allowed: at most 1 of DELTA"});
  expect_usage_error(tally("add", {std::string(2049, 'n')}),
                     {"COUNTER cannot be 'nnn", "allowed: at most 2048 bytes"});
  expect_usage_error(tally("add", {"a\\q"}), {"COUNTER cannot be"});
  expect_usage_error(tally("add", {"likes", "--id", std::string(1025, 'i')}),
                     {"--id cannot be 'iii", "allowed: 1 to 1024 bytes"});
  expect_usage_error(tally("add", {"likes", "--id", ""}), {"--id cannot be ''"});
  expect_usage_error(tally("add", {"likes", "--client", "ann"}), {"--client needs --sequence"});
  expect_usage_error(tally("add", {"likes", "--sequence", "1"}), {"--sequence needs --client"});
  expect_usage_error(tally("add", {"likes", "-c", "ann", "-s", "-1"}), {"-s cannot be '-1'"});
  expect_usage_error(tally("add", {"likes", "-c", "a", "-s", "18446744073709551616"}),
                     {"-s cannot be"});
  expect_usage_error(tally("add", {"likes", "-c", "ann", "-s", "1", "-i", "a"}),
                     {"--id and --client with --sequence exclude each other"});
  EXPECT_FALSE(std::filesystem::exists(path("table")));
  EXPECT_EQ(add({std::string(2048, 'n'), "--id", std::string(1024, 'i')}), "applied 1\n");
}

// --- shapes

TEST_F(Tally, KeepsItsShapeAndNamesWhatDiffers) {
  const Words shape = {"--filter", "-w", "1h", "-e",        "0.001", "-n",
                       "1k",       "-m", "1M", "--on-full", "forget"};
  Words words = {"likes", "--id", "a"};
  words.insert(words.end(), shape.begin(), shape.end());
  EXPECT_EQ(add(words), "applied 1\n");
  EXPECT_EQ(add(words), "duplicate 1\n");
  EXPECT_EQ(add({"likes", "--id", "a"}), "duplicate 1\n");

  const std::string start =
      "semel tally add: cannot use '" + path("table") + "': it was made with ";
  const auto expect_difference = [&](const Words& option, const std::string& difference) {
    Words other = {"likes", "--id", "b"};
    other.insert(other.end(), option.begin(), option.end());
    expect_usage_error(tally("add", other), {start + difference + '\n'});
  };
  expect_difference({"--exact"}, "--filter, and cannot go on with --exact");
  expect_difference({"-w", "10m"}, "--window 1h, and cannot go on with --window 10m");
  expect_difference({"-e", "1e-6"}, "--error 0.001, and cannot go on with --error 1e-06");
  expect_difference({"-n", "2k"}, "--capacity 1000, and cannot go on with --capacity 2000");
  expect_difference({"-m", "2M"}, "--max-bytes 1048576, and cannot go on with --max-bytes 2097152");
  expect_difference({"--on-full", "refuse"},
                    "--on-full forget, and cannot go on with --on-full refuse");
  EXPECT_EQ(all(), "likes\t1\n");
  EXPECT_EQ(add({"likes", "--id", "b"}), "applied 2\n");

  ASSERT_EQ(run_semel({"tally", "add", path("plain"), "likes"}).status, 0);
  expect_usage_error(run_semel({"tally", "add", path("plain"), "likes", "-x"}),
                     {"it was made with neither --exact nor --filter, and cannot go on with "
                      "--exact\n"});
}

TEST_F(Tally, HashesIdsWithTheSecretOfTheTable) {
  const std::string key = directory_.write("key", std::string(32, 'k'));
  const std::string other = directory_.write("other", std::string(64, 'a'));
  EXPECT_EQ(add({"likes", "--id", "a", "-k", key}), "applied 1\n");
  EXPECT_EQ(add({"likes", "--id", "a", "-k", key}), "duplicate 1\n");
  expect_usage_error(tally("add", {"likes", "--id", "b"}), {"hashed with a secret"});
  expect_usage_error(tally("add", {"likes", "--id", "b", "-k", other}), {"with another secret"});
  const Outcome missing = tally("add", {"likes", "-k", path("none")});
  EXPECT_EQ(missing.status, 1);
  expect_in(missing.err, {"cannot read '" + path("none") + "'"});
  EXPECT_EQ(all(), "likes\t1\n");
  EXPECT_NE(tally("info").out.find("hash             keyed\n"), std::string::npos);

  ASSERT_EQ(run_semel({"tally", "add", path("plain"), "likes"}).status, 0);
  expect_usage_error(run_semel({"tally", "add", path("plain"), "likes", "-k", key}),
                     {"hashed without a secret"});
}

TEST_F(Tally, RefusesOptionsThatContradictEachOther) {
  const auto refused = [&](Words words, const std::string& text) {
    words.insert(words.begin(), "likes");
    expect_usage_error(tally("add", words), {text});
  };
  refused({"-x", "-e", "0.1"}, "--error and --exact exclude each other");
  refused({"-x", "--filter"}, "--exact and --filter exclude each other");
  refused({"-w", "0s"}, "--window cannot be '0'");
  refused({"-e", "0"}, "-e cannot be '0'; allowed: a number, 1e-12 or more, below 1");
  refused({"--on-full", "nothing"}, "allowed: refuse, forget");
  refused({"-P", "1s"}, "--period is for --durability periodic");
  refused({"-d", "periodic", "-P", "0s"}, "--period cannot be '0'");
  refused({"-d", "sometimes"}, "allowed: none, periodic, every-write");
  EXPECT_FALSE(std::filesystem::exists(path("table")));
}

TEST_F(Tally, TakesEveryDurability) {
  int count = 0;
  for (const char* durability : {"none", "periodic", "every-write"}) {
    EXPECT_EQ(add({"likes", "--durability", durability}),
              "applied " + std::to_string(++count) + '\n');
  }
  EXPECT_EQ(add({"likes", "-d", "periodic", "--period", "5s"}), "applied 4\n");
}

// --- get, top, sum

TEST_F(Tally, GetsCountersInTheOrderAskedAndComplainsOfTheOthers) {
  ASSERT_EQ(load({"--no-id"}, "b\t2\na\t1\nc\t-3\n").status, 0);
  const Outcome outcome = tally("get", {"c", "x", "a", "c"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "c\t-3\na\t1\nc\t-3\n");
  EXPECT_EQ(outcome.err, "semel tally get: there is no counter 'x'\n");
  EXPECT_EQ(tally("get", {"b"}).status, 0);
  expect_usage_error(tally("get", {"a", "--prefix", "b"}), {"COUNTER and a range exclude"});
}

TEST_F(Tally, ListsARangeInOrder) {
  ASSERT_EQ(load({"--no-id"}, "b\t2\nba\t3\na\t1\nc\t4\n\\xff\\xff\t5\n").status, 0);
  EXPECT_EQ(all(), "a\t1\nb\t2\nba\t3\nc\t4\n\\xff\\xff\t5\n");
  EXPECT_EQ(tally("get", {"--prefix", "b"}).out, "b\t2\nba\t3\n");
  EXPECT_EQ(tally("get", {"--prefix", "\\xff"}).out, "\\xff\\xff\t5\n");
  EXPECT_EQ(tally("get", {"-f", "b\\x00", "-e", "c\\x00"}).out, "ba\t3\nc\t4\n");
  EXPECT_EQ(tally("sum", {"--prefix", "b"}).out, "sum\t5\ncounters\t2\n");
  EXPECT_EQ(tally("sum", {"-f", "b", "-e", "c"}).out, "sum\t5\ncounters\t2\n");
  EXPECT_EQ(tally("sum", {"--prefix", "none"}).out, "sum\t0\ncounters\t0\n");
  EXPECT_EQ(tally("sum").out, "sum\t15\ncounters\t5\n");
  for (const char* word : {"get", "top", "sum"}) {
    expect_usage_error(tally(word, {"-f", "b", "-e", "b"}), {"no key is in the range"});
  }
}

TEST_F(Tally, KeepsAnyBytesInNamesAndIds) {
  std::string records;
  std::string expected;
  for (int byte = 0; byte < 256; ++byte) {
    std::array<char, 32> line{};
    std::snprintf(line.data(), line.size(), "n\\x%02x\t%d\t\\x%02x\n", byte, byte, byte);
    records += line.data();
  }
  ASSERT_EQ(load({}, records).status, 0);
  EXPECT_EQ(tally("sum").out, "sum\t32640\ncounters\t256\n");
  EXPECT_EQ(tally("get", {"n\\x09", "n\\x0a", "n\\x00", "n\\\\", "n\\xff"}).out,
            "n\\x09\t9\nn\\x0a\t10\nn\\x00\t0\nn\\\\\t92\nn\\xff\t255\n");
  EXPECT_EQ(add({"n\\x09", "9", "--id", "\\x09"}), "duplicate 9\n");
  // A listing can be loaded.
  ASSERT_EQ(run_semel({"tally", "load", "-qN", path("copy")}, all()).status, 0);
  EXPECT_EQ(run_semel({"tally", "get", path("copy")}).out, all());
}

TEST_F(Tally, FindsTheLargestAndTheSmallest) {
  std::string records;
  for (int i = 0; i < 1000; ++i) {
    records += name(i) + '\t' + std::to_string(i * 7919 % 1000 - 500) + '\n';
  }
  records += "equal/c\t499\nequal/a\t499\nequal/b\t499\n";
  ASSERT_EQ(load({"-N"}, records).status, 0);
  const Outcome four = tally("top", {"4"});
  EXPECT_EQ(four.out, "equal/a\t499\nequal/b\t499\nequal/c\t499\nn321\t499\n");
  EXPECT_EQ(tally("top", {"2"}).out, "equal/a\t499\nequal/b\t499\n");
  EXPECT_EQ(tally("top", {"2", "--smallest", "--prefix", "n"}).out, "n0\t-500\nn679\t-499\n");
  EXPECT_EQ(tally("top", {"1", "--prefix", "equal/"}).out, "equal/a\t499\n");
  EXPECT_EQ(tally("top", {"9", "--prefix", "equal/", "-s"}).out,
            "equal/a\t499\nequal/b\t499\nequal/c\t499\n");
  const std::string ten = tally("top").out;
  EXPECT_EQ(std::count(ten.begin(), ten.end(), '\n'), 10);
  expect_usage_error(tally("top", {"0"}), {"N cannot be '0'"});
}

TEST_F(Tally, SumsBeyond64Bits) {
  std::string records;
  for (int i = 0; i < 4; ++i) records += "up" + std::to_string(i) + '\t' + kGreatest + '\n';
  for (int i = 0; i < 8; ++i) records += "down" + std::to_string(i) + '\t' + kLeast + '\n';
  ASSERT_EQ(load({"-N"}, records).status, 0);
  EXPECT_EQ(tally("sum", {"-p", "up"}).out, "sum\t36893488147419103228\ncounters\t4\n");
  EXPECT_EQ(tally("sum", {"-p", "down"}).out, "sum\t-73786976294838206464\ncounters\t8\n");
}

TEST_F(Tally, ReadsNothingFromATableThatIsNotThere) {
  for (const char* word : {"get", "top", "sum", "info"}) {
    const Outcome outcome = tally(word);
    EXPECT_EQ(outcome.status, 1) << word;
    EXPECT_EQ(outcome.out, "");
    expect_in(outcome.err,
              {std::string("semel tally ") + word + ": cannot open '" + path("table")});
  }
  EXPECT_FALSE(std::filesystem::exists(path("table")));
}

TEST_F(Tally, LeavesOtherDirectoriesAndFilesAlone) {
  ASSERT_EQ(run_semel({"load", path("table")}, "key\tvalue\n").status, 0);
  for (const char* word : {"get", "top", "sum", "info"}) EXPECT_EQ(tally(word).status, 1) << word;
  EXPECT_EQ(tally("add", {"likes"}).status, 1);
  EXPECT_EQ(run_semel({"dump", path("table")}).out, "key\tvalue\n");
  EXPECT_EQ(run_semel({"load", path("table")}, "key\tvalue\n").status, 0);  // as its owner would

  directory_.write("file", "text");
  const Outcome outcome = run_semel({"tally", "add", path("file"), "likes"});
  EXPECT_EQ(outcome.status, 1);
  expect_in(outcome.err, {"cannot open '" + path("file") + "'"});
  EXPECT_EQ(read_file(path("file")), "text");
}

// --- load

TEST_F(Tally, LoadsRecordsAndTellsWhatBecameOfThem) {
  const Outcome outcome =
      tally("load", {}, "likes\t1\ta\nlikes\t2\tb\nlikes\t1\ta\nstock\t-5\tc\nlikes\t4\td");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
  expect_in(outcome.err,
            {"records          5\napplied          4\nduplicates       1\n"
             "stale            0\nrefused          0\n"
             "window           10m, for which a retry is recognised\nunder-count      ",
             "memory           ", " records a second\n"});
  EXPECT_EQ(all(), "likes\t7\nstock\t-5\n");
  const Outcome again = tally("load", {"--json"}, "likes\t1\ta\nlikes\t2\tb\n");
  EXPECT_EQ(again.status, 0);
  expect_in(again.err,
            {"{\"records\":2,\"applied\":0,\"duplicates\":2,\"stale\":0,\"refused\":0,"
             "\"conflicts\":0,\"overflows\":0,\"full\":0,\"unreadable\":0,\"window_ms\":600000,"
             "\"expected_undercount\":"});
  EXPECT_EQ(all(), "likes\t7\nstock\t-5\n");
}

TEST_F(Tally, LoadsCsvAndJsonByTheNamesOfFields) {
  const Outcome csv =
      load({"-f", "csv", "-H", "--counter", "page", "--delta", "n", "--id", "rid"},
           "rid,n,page\r\nr1,2,\"a,\"\"b\"\r\nr2,3,\"c\nd\"\r\nr1,2,x\r\nr3,4,back\\slash\r\n");
  EXPECT_EQ(csv.status, 0) << csv.err;
  EXPECT_EQ(all(), "a,\"b\t2\nback\\\\slash\t4\nc\\x0ad\t3\n");
  const Outcome json = load(
      {"-f", "json"},
      "{\"id\":\"r1\",\"delta\":2,\"counter\":\"x\"}\n"
      "{\"id\":17,\"delta\":-9223372036854775808,\"counter\":\"t\\tab\"}\n"
      "{\"id\":\"17\",\"delta\":\"5\",\"counter\":9}\n{\"id\":18,\"delta\":\"5\",\"counter\":9}\n");
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_EQ(all(), std::string("9\t5\na,\"b\t2\nback\\\\slash\t4\nc\\x0ad\t3\nt\\x09ab\t") +
                       kLeast + "\n");
  const Outcome numbered =
      load({"-f", "csv", "-D", ";", "-C", "3", "-a", "4", "-c", "1", "-s", "2"},
           "ann;1;n;10\nben;1;n;20\nann;1;n;10\n");
  EXPECT_EQ(numbered.status, 0) << numbered.err;
  EXPECT_EQ(tally("get", {"n"}).out, "n\t30\n");
  EXPECT_EQ(add({"n", "10", "--client", "ann", "--sequence", "1"}), "duplicate 30\n");
}

TEST_F(Tally, LoadsNothingOfAFileWithAnotherHeader) {
  const std::string a = directory_.write("a.csv", "page,n,rid\np,1,1\n");
  const std::string b = directory_.write("b.csv", "page,rid,n\np,2,20\n");
  for (const Words& fields : {Words{"-C", "page", "-a", "n", "-i", "rid"}, Words{}}) {
    Words words = {"-f", "csv", "-H", a, b};
    words.insert(words.end(), fields.begin(), fields.end());
    const Outcome outcome = load(words, "");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err, "semel tally load: the header of '" + b + "' is not that of '" + a +
                               "': column 2 is 'rid' and not 'n'\n");
    EXPECT_EQ(all(), "p\t1\n");
  }
}

TEST_F(Tally, LoadsNothingThatIsCompressed) {
  const std::string packed = directory_.write("packed", "\x1f\x8b\x08\nlikes\t1\ta\n");
  const Outcome outcome = load({packed, "-E", "skip"}, "");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "semel tally load: cannot read '" + packed +
                             "': it is compressed by gzip; allowed: zcat '" + packed +
                             "' | semel tally load " + path("table") + '\n');
  EXPECT_EQ(all(), "");
}

TEST_F(Tally, StopsAtABadLineWithAllBeforeItDone) {
  const Outcome outcome = tally("load", {}, "a\t1\t1\nb\t1\t2\nc\tmany\t3\nd\t1\t4\n");
  EXPECT_EQ(outcome.status, 1);
  expect_in(
      outcome.err,
      {"semel tally load: standard input line 3: the delta cannot be 'many'; allowed: a whole "
       "number from -9223372036854775808 to 9223372036854775807; the lines before it are "
       "done\n",
       "applied          2\n", "unreadable       1\n"});
  EXPECT_EQ(all(), "a\t1\nb\t1\n");
}

TEST_F(Tally, SkipsBadLinesIfToldTo) {
  const std::string long_name(2049, 'n');
  const std::string long_id(1025, 'i');
  const std::string file = directory_.write(
      "records", "a\t1\t1\nb\t1\nc\t99999999999999999999\t2\nd\\q\t1\t3\n" + long_name +
                     "\t1\t4\ne\t1\t" + long_id + "\nf\t1\t\n\ng\t1\t5\n");
  const Outcome outcome = tally("load", {"--on-error", "skip", file});
  EXPECT_EQ(outcome.status, 0);
  const std::string at = "semel tally load: '" + file + "' line ";
  expect_in(outcome.err,
            {at + "2: there is no column 3, the last one is 2; allowed: counter, delta and id, or "
                  "--no-id\n",
             at + "3: the delta cannot be '99999999999999999999'; allowed: a whole number",
             at + "4: a backslash; allowed: \\\\ and \\xNN\n",
             at + "5: the name of the counter has 2049 bytes; allowed: at most 2048\n",
             at + "6: the id has 1025 bytes; allowed: at most 1024\n",
             at + "7: the id is empty; allowed: 1 to 1024 bytes\n", at + "8: there is no column 2",
             "records          9\napplied          2\n", "unreadable       7\n"});
  EXPECT_EQ(all(), "a\t1\ng\t1\n");
}

TEST_F(Tally, NamesWhatIsWrongWithJson) {
  const Outcome outcome =
      load({"-f", "json", "-E", "skip"},
           "{\"id\":1,\"delta\":1.5,\"counter\":\"a\"}\n{\"id\":1,\"counter\":\"a\"}\nnothing\n"
           "{\"id\":null,\"delta\":1,\"counter\":\"a\"}\n"
           "{\"id\":1,\"delta\":18446744073709551616,\"counter\":\"a\"}\n"
           "{\"id\":1,\"delta\":18446744073709551615,\"counter\":\"a\"}\n");
  EXPECT_EQ(outcome.status, 0);
  expect_in(outcome.err,
            {"line 1: the field 'delta' is neither a string nor a whole number in plain digits\n",
             "line 2: there is no field 'delta'", "line 3: this is not JSON: ",
             "line 4: the field 'id' is neither a string nor a whole number in plain digits\n",
             "line 5: the delta cannot be '18446744073709551616'; allowed: a whole number from",
             "line 6: the delta cannot be '18446744073709551615'; allowed: a whole number from"});
  EXPECT_EQ(all(), "");
}

// A number is refused where 64 bits are needed, and nowhere else.
TEST_F(Tally, TakesJsonNumbersOfAnySize) {
  const std::string large =
      "{\"id\":123456789012345678901234567890,\"delta\":1,\"counter\":\"a\"}\n";
  const Outcome outcome =
      load({"-f", "json", "-E", "skip"},
           large + large +
               "{\"id\":123456789012345678901234567891,\"delta\":2,\"counter\":\"a\"}\n"
               "{\"id\":\"x\",\"delta\":-0,\"counter\":99999999999999999999,\"skipped\":[1e400]}\n"
               "{\"id\":1e400,\"delta\":1,\"counter\":\"a\"}\n"
               "{\"id\":\"\\ud800\",\"delta\":1,\"counter\":\"a\"}\n"
               "{\"id\":\"y\",\"delta\":1E1,\"counter\":\"a\"}\n");
  EXPECT_EQ(outcome.status, 0);
  const std::string digits = "is neither a string nor a whole number in plain digits\n";
  EXPECT_EQ(outcome.err,
            "semel tally load: standard input line 5: the field 'id' " + digits +
                "semel tally load: standard input line 6: the field 'id' has half of a "
                "surrogate pair, which is no character\n"
                "semel tally load: standard input line 7: the field 'delta' " +
                digits);
  EXPECT_EQ(all(), "99999999999999999999\t0\na\t3\n");
}

TEST_F(Tally, TellsRefusedRecordsByTheirLines) {
  const Outcome outcome =
      tally("load", {"--exact"},
            std::string("a\t5\t1\na\t6\t1\nb\t") + kGreatest + "\t2\nb\t1\t3\na\t5\t1\nb\t-1\t3\n");
  EXPECT_EQ(outcome.status, 3);
  expect_in(outcome.err,
            {"semel tally load: standard input line 2: not counted: its id came before, "
             "with another counter or delta\n",
             "semel tally load: standard input line 4: not counted: the counter would "
             "not fit into 64 bits\n",
             "refused          2: 1 conflict, 1 overflow\n"});
  EXPECT_EQ(all(), "a\t5\nb\t9223372036854775806\n");
}

TEST_F(Tally, CountsLinesThroughManyBatchesAndFiles) {
  std::string records;
  for (int i = 0; i < 30000; ++i) records += "n\t1\t" + std::to_string(i) + '\n';
  const std::string one = directory_.write("one", "counter\tdelta\tid\n" + records);
  const std::string two = directory_.write("two", "counter\tdelta\tid\n" + records + "n\tx\tz\n");
  const Outcome outcome = tally("load", {"--header", one, path("none"), two});
  EXPECT_EQ(outcome.status, 1);
  expect_in(outcome.err, {"cannot read '" + path("none") + "': No such file or directory\n",
                          "'" + two + "' line 30002: the delta cannot be 'x'",
                          "applied          30,000\nduplicates       30,000\n"});
  EXPECT_EQ(all(), "n\t30000\n");
}

// Makes a table with one operation that is this old.
void make_old_table(const std::string& path, TimeMs window_ms, TimeMs age_ms, bool with_id) {
  RocksStore::Settings below;
  below.create = true;
  below.merger = &tally::counter_merger();
  const auto store = RocksStore::open(path, below);
  ASSERT_TRUE(store) << store.error().message();
  tally::TallyStore::Settings settings;
  settings.recognition.emplace().window_ms = window_ms;
  const Hasher hasher = Hasher::fast(0);
  settings.recognition->hash = hasher.id();
  const TimeMs at_ms = SystemClock().now_ms() - age_ms;
  const auto table = tally::TallyStore::open(**store, settings, at_ms);
  ASSERT_TRUE(table) << table.error().message();
  const tally::OperationId id =
      with_id ? *tally::opaque_id(hasher, "a") : tally::OperationId::none();
  ASSERT_TRUE((*table)->add({"likes", 1, id}, at_ms));
}

// A file that is loaded again too late gives a warning before it counts twice.
TEST_F(Tally, WarnsWhenEveryIdHasLeftTheWindow) {
  constexpr TimeMs kMinuteMs = 60'000;
  const std::string warning = "semel tally load: warning: '" + path("table") +
                              "' remembers no id of the last 1h, its window: records that were "
                              "loaded before may count again\n";
  for (const bool old : {false, true}) {
    for (const bool with_id : {false, true}) {
      std::filesystem::remove_all(path("table"));
      make_old_table(path("table"), 60 * kMinuteMs, (old ? 180 : 30) * kMinuteMs, with_id);
      const bool known = with_id && !old;
      expect_in(tally("info").out, {known ? "ids              1 in" : "ids              0 in"});
      EXPECT_EQ(tally("load", {"--no-id"}, "").err.find("warning"), std::string::npos);
      EXPECT_EQ(load({}, "").err, "") << "--quiet";
      const Outcome outcome = tally("load", {}, "likes\t1\ta\n");
      EXPECT_EQ(outcome.status, 0);
      EXPECT_EQ(outcome.err.rfind(warning, 0) == 0, !known) << outcome.err;
      EXPECT_EQ(all(), known ? "likes\t1\n" : "likes\t2\n");
      const Outcome again = tally("load", {"--json"}, "likes\t1\ta\n");
      EXPECT_EQ(again.err.rfind("{\"records\":1,\"applied\":0,\"duplicates\":1,", 0), 0u)
          << again.err;
      expect_in(again.err, {",\"window_ms\":3600000,"});
    }
  }
  std::filesystem::remove_all(path("table"));
  EXPECT_EQ(tally("load", {}, "likes\t1\ta\n").err.find("warning"), std::string::npos)
      << "a new table has nothing to forget";
}

TEST_F(Tally, NeedsAWordToLoadWithoutIds) {
  EXPECT_EQ(load({}, "a\t1\n").status, 1);
  EXPECT_EQ(load({"--no-id"}, "a\t1\na\t1\n").status, 0);
  EXPECT_EQ(all(), "a\t2\n");
}

TEST_F(Tally, RefusesLoadOptionsThatContradictEachOther) {
  const auto refused = [&](const Words& words, const std::string& text) {
    expect_usage_error(tally("load", words), {text});
  };
  refused({"-q", "-j"}, "--quiet and --json exclude each other");
  refused({"-f", "json", "-H"}, "--header needs columns");
  refused({"-D", ";"}, "--delimiter is for CSV");
  refused({"-f", "csv", "-D", "ab"}, "--delimiter cannot be 'ab'");
  refused({"-i", "1", "-c", "1", "-s", "2"}, "--id and --client with --sequence exclude");
  refused({"-c", "1"}, "--client needs --sequence");
  refused({"-s", "1"}, "--sequence needs --client");
  refused({"-N", "-i", "1"}, "--no-id and --id or --client exclude each other");
  refused({"-C", "0"}, "--counter cannot be '0'");
  refused({"-C", "name"}, "column 'name' is a name; allowed: with --header, or a number");
  EXPECT_FALSE(std::filesystem::exists(path("table")));
}

// --- processes

TEST_F(Tally, CountsEachRecordOnceThoughALoadIsKilledAgainAndAgain) {
  constexpr int kRecords = 200'000;
  std::string records;
  std::map<std::string, int> expected;
  for (int i = 0; i < kRecords; ++i) {
    const std::string counter = name(i % 97);
    records += counter + '\t' + std::to_string(i % 5 - 1) + "\tid-" + std::to_string(i) + '\n';
    expected[counter] += i % 5 - 1;
  }
  const std::string file = directory_.write("records", records);
  int killed = 0;
  for (const double seconds : {0.05, 0.1, 0.15, 0.2, 0.3}) {
    const Outcome outcome = run_shell("timeout -s KILL " + std::to_string(seconds) +
                                      " $SEMEL tally "
                                      "load -q -r exact " +
                                      path("table") + ' ' + file);
    killed += outcome.status == 0 ? 0 : 1;
  }
  EXPECT_GT(killed, 0);
  // From a pipe that is slower than any machine: it is killed in the middle.
  {
    Process loading({.command = {SEMEL_COMMAND, "tally", "load", "-q", path("table")}});
    loading.write(records.substr(0, records.size() / 2));
    loading.signal(SIGKILL);
    EXPECT_EQ(loading.finish().signal, SIGKILL);
  }
  const Outcome last = tally("load", {"-q", file});
  EXPECT_EQ(last.status, 0) << last.err;
  std::string lines;
  for (const auto& [counter, value] : expected) {
    lines.append(counter).append("\t").append(std::to_string(value)).append("\n");
  }
  EXPECT_EQ(all(), lines);
}

TEST_F(Tally, EndsWithASignalAfterWhatWasReadIsApplied) {
  int applied = 0;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string id = std::to_string(number);
    Process loading({.command = {SEMEL_COMMAND, "tally", "load", path("table")}});
    loading.write("likes\t1\t" + id + "\nlikes\t1\tand ");
    // It is applied before the next wait for input: a reader sees it.
    ++applied;
    while (tally("get", {"likes"}).out != "likes\t" + std::to_string(applied) + '\n')
      ASSERT_EQ(run_shell("sleep 0.02").status, 0);
    loading.signal(number);
    const Outcome outcome = loading.finish();
    EXPECT_EQ(outcome.signal, number);
    expect_in(outcome.err, {"records          1\napplied          1\n"});
  }
}

TEST_F(Tally, IsReadWhileAnotherProcessWritesAndWrittenByOneAlone) {
  Process loading({.command = {SEMEL_COMMAND, "tally", "load", "-q", path("table")}});
  loading.write("likes\t1\ta\n");
  while (tally("get", {"likes"}).out != "likes\t1\n") {
    ASSERT_EQ(run_shell("sleep 0.02").status, 0);
  }
  EXPECT_EQ(tally("sum").out, "sum\t1\ncounters\t1\n");
  EXPECT_EQ(tally("top").out, "likes\t1\n");
  EXPECT_EQ(tally("info").status, 0);
  const Outcome second = tally("add", {"likes"});
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(second.err, "semel tally add: cannot open '" + path("table") +
                            "': it is in use by another process\n");
  loading.write("likes\t1\tb\n");
  EXPECT_EQ(loading.finish().status, 0);
  EXPECT_EQ(all(), "likes\t2\n");
}

// --- info, and the other subcommands

TEST_F(Tally, TellsWhatATableIs) {
  ASSERT_EQ(load({"-w", "1h", "-m", "64M"}, "a\t5\t1\nb\t-7\t2\nb\t1\t3\n").status, 0);
  const Outcome text = tally("info");
  EXPECT_EQ(text.status, 0);
  expect_in(text.out, {"counters         2\nsum              -1\nrecognition      clients\nwindow  "
                       "         1h\nids              3 in the window, capacity 65,536\nerror",
                       " now, at most 1e-06\nunder-count      ", "hash             fast\nmemory   ",
                       " for ids, at most 64.0 MiB, then refuse\ndisk             ",
                       "site             1\nmembers          1\nnot folded       0 operations\n"});
  const Outcome json = tally("info", {"--json"});
  expect_in(json.out, {"{\"counters\":2,\"sum\":\"-1\",\"recognition\":\"clients\",\"window_ms\":"
                       "3600000,\"kept_from_ms\":",
                       "\"ids_in_window\":3,", "\"max_bytes\":67108864,",
                       "\"site\":1,\"members\":[{\"site\":1,\"retired\":false}],\"not_folded\":0,"
                       "\"waiting_for\":null,\"superseded\":false,\"forked\":[]}\n"});
}

TEST_F(Tally, IsDumpedAndComparedLikeAnyOtherDirectory) {
  ASSERT_EQ(load({}, "a\t5\t1\nb\t-7\t2\n").status, 0);
  ASSERT_EQ(run_shell("cp -r table copy", directory_.path()).status, 0);
  const Words both = {path("table"), path("copy")};
  EXPECT_EQ(run_semel({"diff", "-q", both[0], both[1]}).status, 0);
  EXPECT_EQ(add({"c", "--id", "3"}), "applied 1\n");
  const Outcome differ = run_semel({"diff", "-q", both[0], both[1]});
  EXPECT_EQ(differ.status, 1) << differ.err;
  expect_in(differ.out, {"< cc\n"});
  EXPECT_NE(run_semel({"dump", both[0]}).out, "");
}

// Their records mean something together: greater bytes are not the later state.
TEST_F(Tally, IsNotWrittenToByThoseWhoDoNotKnowTables) {
  ASSERT_EQ(load({}, "a\t5\t1\n").status, 0);
  ASSERT_EQ(run_shell("cp -r table copy", directory_.path()).status, 0);
  const std::string before = run_semel({"dump", path("table")}).out;
  for (const Words& words : {Words{"sync", path("table"), path("copy")},
                             {"load", path("table")},
                             {"serve-sync", path("table")}}) {
    const Outcome refused = run_semel(words);
    EXPECT_NE(refused.status, 0);
    expect_in(refused.err, {"it is a table of counters; allowed: semel tally"});
  }
  EXPECT_EQ(run_semel({"dump", path("table")}).out, before);
}

TEST_F(Tally, IsAFamilyOfSubcommands) {
  const Outcome alone = run_semel({"tally"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_EQ(alone.out, "");
  expect_in(alone.err, {"Usage: semel tally SUBCOMMAND", "\n  tally add ", "\n  tally info "});
  for (const Words& words : {Words{"tally", "--help"}, {"tally", "-h"}, {"help", "tally"}}) {
    const Outcome outcome = run_semel(words);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, alone.err);
  }
  EXPECT_EQ(run_semel({"help", "tally", "add"}).out, run_semel({"tally", "add", "--help"}).out);
  expect_usage_error(
      run_semel({"tally", "inof"}),
      {"semel tally: unknown subcommand 'inof'; info is nearest; allowed: add, load, get, "
       "top, sum, info"});
  expect_usage_error(run_semel({"help", "tally", "nothing"}),
                     {"semel help: unknown SUBCOMMAND 'nothing'; allowed: add, load, get, top, "
                      "sum, info"});
  expect_usage_error(run_semel({"help", "sift", "add"}),
                     {"semel help: unexpected 'add'; allowed: nothing after 'sift'"});
}

}  // namespace
}  // namespace semel
