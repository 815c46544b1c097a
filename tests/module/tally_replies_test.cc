// The replies of TALLY.*.
#include <algorithm>

#include "tests/module/script.h"

namespace semel {
namespace {

class TallyReplies : public Script {};
INSTANTIATE_TEST_SUITE_P(Protocol, TallyReplies, ::testing::Values(2, 3), protocol_name);

TEST_P(TallyReplies, ReserveTakesOptionsInAnyCaseAndOrder) {
  run({
      {"TALLY.RESERVE t", "+OK"},
      {"TALLY.RESERVE t", "-ERR the key exists already"},
      {"tally.reserve u onfull FORGET maxbytes 1000000 capacity 10 error 0.5 window 7d", "+OK"},
      {"TALLY.RESERVE v EXACT", "+OK"},
      {"TALLY.RESERVE w WINDOW 1", "+OK"},
      {"TALLY.RESERVE w1 WINDOW 250ms", "+OK"},
      {"TALLY.RESERVE w2 WINDOW 30s", "+OK"},
      {"TALLY.RESERVE w3 WINDOW 10m", "+OK"},
      {"TALLY.RESERVE w4 WINDOW 2h", "+OK"},
      {"TALLY.RESERVE \"\" ONFULL refuse", "+OK"},
      {"DBSIZE", "9"},
  });
}

TEST_P(TallyReplies, ReserveSaysWhatIsAllowed) {
  constexpr std::string_view kRange = "; allowed: 1e-12 or more, below 1";
  std::vector<Step> steps = {
      {"TALLY.RESERVE", "-ERR wrong number of arguments for 'tally.reserve' command"},
      {"TALLY.RESERVE t WINDOW", "-ERR WINDOW needs a value"},
      {"TALLY.RESERVE t COLOUR red", "-ERR unknown option 'COLOUR'"},
      {"TALLY.RESERVE t \"\"", "-ERR unknown option ''"},
      {"TALLY.RESERVE t \"\\x00\\xff\"",
       "-ERR unknown option '?"
       "?'"},
      {"TALLY.RESERVE t EXACT EXACT", "-ERR EXACT is given twice"},
      {"TALLY.RESERVE t WINDOW 1s WINDOW 1s", "-ERR WINDOW is given twice"},
      {"TALLY.RESERVE t EXACT ERROR 0.1", "-ERR EXACT and ERROR exclude each other"},
      {"TALLY.RESERVE t FILTER EXACT", "-ERR FILTER and EXACT exclude each other"},
      {"TALLY.RESERVE t ONFULL explode", "-ERR ONFULL is refuse or forget"},
      {"TALLY.RESERVE t CAPACITY 0", "-ERR CAPACITY cannot be '0'; allowed: 1 to 274877906944"},
      {"TALLY.RESERVE t CAPACITY 274877906945",
       "-ERR CAPACITY cannot be '274877906945'; allowed: 1 to 274877906944"},
      {"TALLY.RESERVE t MAXBYTES 8191",
       "-ERR MAXBYTES cannot be '8191'; allowed: 8192 to 9223372036854775807, or a "
       "size such as 64mb"},
      // Only effects have these options.
      {"TALLY.RESERVE t SECRET 0123456789abcdef0123456789abcdef", "-ERR unknown option 'SECRET'"},
      {"DBSIZE", "0"},
  };
  std::vector<std::string> texts;  // the steps hold views of these
  texts.reserve(64);
  const auto refuse = [&](std::string_view option, std::string_view value, std::string_view rest) {
    const std::string_view command =
        texts.emplace_back("TALLY.RESERVE t " + std::string(option) + ' ' + std::string(value));
    steps.push_back({command, texts.emplace_back("-ERR " + std::string(option) + " cannot be '" +
                                                 std::string(value) + "'" + std::string(rest))});
  };
  for (const char* const value : {"0", "-1", "1.5s", "9223372036854775808", "106751991168d", "s"}) {
    refuse("WINDOW", value, "; allowed: milliseconds, 1 or more, or 30s, 10m, 2h, 7d");
  }
  for (const char* const value : {"0", "1", "-0.1", "nan", "inf", "x", "0.1x", "1e-400"}) {
    refuse("ERROR", value, kRange);
  }
  steps.push_back({"DBSIZE", "0"});
  run(steps);
}

TEST_P(TallyReplies, IncrementsCountOnceForEachId) {
  run({
      {"TALLY.INCRBY t a 5", "[5, \"applied\"]"},
      {"TALLY.INCRBY t a 5", "[10, \"applied\"]"},
      {"TALLY.INCRBY t a -3 ID x", "[7, \"applied\"]"},
      {"TALLY.INCRBY t a -3 ID x", "[7, \"duplicate\"]"},
      {"TALLY.INCRBY t a 1 op c 7", "[8, \"applied\"]"},
      {"TALLY.INCRBY t a 1 OP c 7", "[8, \"duplicate\"]"},
      {"TALLY.INCRBY t a 1 OP d 7", "[9, \"applied\"]"},
      {"TALLY.INCRBY t a 1 ID \"\"", "[10, \"applied\"]"},
      {"TALLY.INCRBY t a 1 id \"\"", "[10, \"duplicate\"]"},
      {"TALLY.INCRBY t \"\" 0", "[0, \"applied\"]"},
      {"TALLY.INCRBY t b 9223372036854775807", "[9223372036854775807, \"applied\"]"},
      {"TALLY.INCRBY t b 1", "-ERR increment or decrement would overflow"},
      {"TALLY.INCRBY t b 1 ID y", "-ERR increment or decrement would overflow"},
      {"TALLY.INCRBY t c -9223372036854775808", "[-9223372036854775808, \"applied\"]"},
      {"TALLY.INCRBY t c -1", "-ERR increment or decrement would overflow"},
      // A refused operation is not remembered either.
      {"TALLY.INCRBY t b -1", "[9223372036854775806, \"applied\"]"},
      {"TALLY.INCRBY t b 1 ID y", "[9223372036854775807, \"applied\"]"},
  });
}

TEST_P(TallyReplies, IncrementSaysWhatIsAllowed) {
  const std::string long_name(2049, 'n');
  const std::string long_id(1025, 'i');
  const std::string name = "TALLY.INCRBY t " + long_name + " 1";
  const std::string id = "TALLY.INCRBY t a 1 ID " + long_id;
  const std::string client = "TALLY.INCRBY t a 1 OP " + long_id + " 1";
  const std::string_view kInteger = "-ERR value is not an integer or out of range";
  const std::string_view kSyntax = "-ERR syntax error; allowed: ID id, or OP client seq";
  run({
      {"TALLY.INCRBY t a", "-ERR wrong number of arguments for 'tally.incrby' command"},
      {"TALLY.INCRBY t a x", kInteger},
      {"TALLY.INCRBY t a \"\"", kInteger},
      {"TALLY.INCRBY t a 1.0", kInteger},
      {"TALLY.INCRBY t a \" 1\"", kInteger},
      {"TALLY.INCRBY t a 9223372036854775808", kInteger},
      {"TALLY.INCRBY t a 1 ID", kSyntax},
      {"TALLY.INCRBY t a 1 ID x y", kSyntax},
      {"TALLY.INCRBY t a 1 OP c", kSyntax},
      {"TALLY.INCRBY t a 1 OP c 1 2", kSyntax},
      {"TALLY.INCRBY t a 1 KEY x", kSyntax},
      {"TALLY.INCRBY t a 1 OP c -1", "-ERR a sequence is a number, 0 or more"},
      {"TALLY.INCRBY t a 1 OP c x", "-ERR a sequence is a number, 0 or more"},
      {name, "-ERR the name of a counter has at most 2048 bytes"},
      {id, "-ERR an id has at most 1024 bytes"},
      {client, "-ERR an id has at most 1024 bytes"},
      {"DBSIZE", "0"},
  });
}

TEST_P(TallyReplies, AnIdBelongsToTheTableAndNotToACounter) {
  run({
      {"TALLY.MINCRBY t IDS a 1 x b 2 x", "[[1, \"applied\"], [nil, \"duplicate\"]]",
       "[[1, \"applied\"], [null, \"duplicate\"]]"},
      {"TALLY.INCRBY t b 2 ID x", "[nil, \"duplicate\"]", "[null, \"duplicate\"]"},
      {"TALLY.INCRBY t a 1 OP c 7", "[2, \"applied\"]"},
      {"TALLY.INCRBY t b 1 OP c 7", "[nil, \"duplicate\"]", "[null, \"duplicate\"]"},
      {"TALLY.GET t b", "nil", "null"},
      {"TALLY.RESERVE e EXACT", "+OK"},
      {"TALLY.MINCRBY e IDS a 1 x b 2 x",
       "[[1, \"applied\"], -CONFLICT the id was used before, for another counter or delta]"},
      // A counter may be removed after it was counted.
      {"TALLY.DEL e a", "1"},
      {"TALLY.INCRBY e a 1 ID x", "[nil, \"duplicate\"]", "[null, \"duplicate\"]"},
  });
}

TEST_P(TallyReplies, ExactTablesTellAConflict) {
  run({
      {"TALLY.RESERVE t EXACT", "+OK"},
      {"TALLY.INCRBY t a 1 ID x", "[1, \"applied\"]"},
      {"TALLY.INCRBY t a 1 ID x", "[1, \"duplicate\"]"},
      {"TALLY.INCRBY t a 2 ID x", "-CONFLICT the id was used before, for another counter or delta"},
      {"TALLY.INCRBY t b 1 ID x", "-CONFLICT the id was used before, for another counter or delta"},
  });
}

TEST_P(TallyReplies, ManyIncrementsAreAnsweredOneByOne) {
  run({
      {"TALLY.MINCRBY t NOID a 1 b 2 a 3",
       "[[1, \"applied\"], [2, \"applied\"], [4, \"applied\"]]"},
      {"TALLY.MINCRBY t IDS a 1 x a 1 x b 1 y",
       "[[5, \"applied\"], [5, \"duplicate\"], [3, \"applied\"]]"},
      {"TALLY.MINCRBY t OP c 10 a 1 b 1", "[[6, \"applied\"], [4, \"applied\"]]"},
      {"TALLY.MINCRBY t OP c 11 b 1 b 1", "[[4, \"duplicate\"], [5, \"applied\"]]"},
      {"TALLY.MINCRBY t NOID b 9223372036854775807 a 1",
       "[-ERR increment or decrement would overflow, [7, \"applied\"]]"},
      {"TALLY.MGET t a b", "[7, 5]"},
  });
}

TEST_P(TallyReplies, ManyIncrementsSayWhatIsAllowedAndAreAllOrNone) {
  constexpr std::string_view kModes = "-ERR syntax error; allowed: NOID, IDS, or OP client seq";
  run({
      {"TALLY.MINCRBY t", "-ERR wrong number of arguments for 'tally.mincrby' command"},
      {"TALLY.MINCRBY t WITH a 1", kModes},
      {"TALLY.MINCRBY t \"\" a 1", kModes},
      {"TALLY.MINCRBY t NOID a 1 b", "-ERR syntax error; allowed: counter delta ..."},
      {"TALLY.MINCRBY t IDS a 1 x b 2", "-ERR syntax error; allowed: counter delta id ..."},
      {"TALLY.MINCRBY t OP c 1 a", "-ERR syntax error; allowed: counter delta ..."},
      {"TALLY.MINCRBY t OP c 1 a 1 b", "-ERR syntax error; allowed: counter delta ..."},
      {"TALLY.MINCRBY t OP c x a 1", "-ERR a sequence is a number, 0 or more"},
      {"TALLY.MINCRBY t OP c 18446744073709551615 a 1 b 1", "-ERR a sequence has at most 64 bits"},
      {"TALLY.MINCRBY t NOID a 1 b x", "-ERR value is not an integer or out of range"},
      {"TALLY.MINCRBY t IDS a 1 x b 1.5 y", "-ERR value is not an integer or out of range"},
      {"DBSIZE", "0"},
  });
}

TEST_P(TallyReplies, ReadsOfTablesAndOfNone) {
  run({
      {"TALLY.GET t a", "nil", "null"},
      {"TALLY.MGET t a b", "[nil, nil]", "[null, null]"},
      {"TALLY.RANGE t - +", "[]", "{}"},
      {"TALLY.SUM t", "0"},
      {"TALLY.COUNT t", "0"},
      {"TALLY.DEL t a", "0"},
      {"TALLY.INFO t", "-ERR not found"},
      {"EXISTS t", "0"},
      {"TALLY.MINCRBY t NOID a 1 b -2 c 3 d 4", "[[...]]"},
      {"TALLY.GET t b", "-2"},
      {"TALLY.GET t e", "nil", "null"},
      {"TALLY.MGET t d e a", "[4, nil, 1]", "[4, null, 1]"},
      {"TALLY.RANGE t - +", "[\"a\", 1, \"b\", -2, \"c\", 3, \"d\", 4]",
       "{\"a\": 1, \"b\": -2, \"c\": 3, \"d\": 4}"},
      {"TALLY.RANGE t [b [c", "[\"b\", -2, \"c\", 3]", "{\"b\": -2, \"c\": 3}"},
      {"TALLY.RANGE t (b (d", "[\"c\", 3]", "{\"c\": 3}"},
      {"TALLY.RANGE t - + LIMIT 1", "[\"a\", 1]", "{\"a\": 1}"},
      {"TALLY.RANGE t + -", "[]", "{}"},
      {"TALLY.RANGE t [c [b", "[]", "{}"},
      {"TALLY.SUM t", "6"},
      {"TALLY.SUM t [b (d", "1"},
      {"TALLY.COUNT t", "4"},
      {"TALLY.COUNT t - (c", "2"},
      {"TALLY.DEL t a e a", "1"},
      {"TALLY.COUNT t", "3"},
      {"TALLY.INCRBY t a 9", "[9, \"applied\"]"},
  });
}

TEST_P(TallyReplies, ReadsSayWhatIsAllowed) {
  constexpr std::string_view kBounds =
      "-ERR min or max not valid string range item; allowed: -, +, [name, (name";
  run({
      {"TALLY.GET t", "-ERR wrong number of arguments for 'tally.get' command"},
      {"TALLY.GET t a b", "-ERR wrong number of arguments for 'tally.get' command"},
      {"TALLY.MGET t", "-ERR wrong number of arguments for 'tally.mget' command"},
      {"TALLY.RANGE t -", "-ERR wrong number of arguments for 'tally.range' command"},
      {"TALLY.RANGE t a b", kBounds},
      {"TALLY.RANGE t - \"\"", kBounds},
      {"TALLY.RANGE t - + LIMIT", "-ERR LIMIT needs a value"},
      {"TALLY.RANGE t - + LIMIT 0", "-ERR LIMIT cannot be '0'; allowed: 1 to 18446744073709551615"},
      {"TALLY.RANGE t - + COUNT 1", "-ERR unknown option 'COUNT'"},
      {"TALLY.SUM t -", "-ERR syntax error; allowed: key, or key min max"},
      {"TALLY.SUM t - + 1", "-ERR syntax error; allowed: key, or key min max"},
      {"TALLY.SUM t a b", kBounds},
      {"TALLY.COUNT t - x", kBounds},
      {"TALLY.DEL t", "-ERR wrong number of arguments for 'tally.del' command"},
      {"TALLY.INFO", "-ERR wrong number of arguments for 'tally.info' command"},
      {"TALLY.INFO t x", "-ERR wrong number of arguments for 'tally.info' command"},
  });
}

TEST_P(TallyReplies, SumsBeyond64BitsAreAnError) {
  run({
      {"TALLY.MINCRBY t NOID a 9223372036854775807 b 1", "[[...]]"},
      {"TALLY.SUM t", "-ERR the value does not fit into 64 bits"},
      {"TALLY.SUM t [b +", "1"},
  });
}

TEST_P(TallyReplies, FullTablesRefuseAndStayAsTheyAre) {
  std::string many = "TALLY.MINCRBY t IDS";
  for (int i = 0; i < 4000; ++i) many += " a 1 " + std::to_string(i);
  run({
      {"TALLY.RESERVE t EXACT CAPACITY 500 MAXBYTES 20000 ONFULL refuse", "+OK"},
      {many,
       "[[1, \"applied\"], [...], -FULL the table has no room to remember the operation; see "
       "MAXBYTES and ONFULL]"},
      {"TALLY.INCRBY t a 1 ID more",
       "-FULL the table has no room to remember the operation; see MAXBYTES and ONFULL"},
      {"TALLY.INCRBY t a 1 ID 0", "[[...], \"duplicate\"]"},
  });
}

// Lines of a script are shorter than a table is large, so the table is above the limit from the
// start.
TEST_P(TallyReplies, TablesAtTheLimitRefuseNewCounters) {
  constexpr std::string_view kRefused =
      "-ERR the table would take more memory than semel.max-value-bytes allows, 1000 bytes";
  const std::string refused(kRefused);
  const std::string between = "[[3, \"applied\"], " + refused + ", [4, \"applied\"]]";
  const std::string known = "[[5, \"applied\"], " + refused + ", [5, \"duplicate\"]]";
  const std::string numbered = "[[6, \"applied\"], " + refused + ", [7, \"applied\"]]";
  run({
      {"TALLY.INCRBY t a 1 ID x", "[1, \"applied\"]"},
      {"TALLY.INCRBY t gone 1 ID y", "[1, \"applied\"]"},
      {"TALLY.DEL t gone", "1"},
      {"CONFIG SET semel.max-value-bytes 1000", "+OK"},
      {"TALLY.INCRBY t b 1", kRefused},
      {"TALLY.INCRBY t b 1 ID z", kRefused},
      {"TALLY.INCRBY t b 1 OP c 1", kRefused},
      {"TALLY.INCRBY t a 1 ID z", "[2, \"applied\"]"},
      // Retries are told first.
      {"TALLY.INCRBY t a 1 ID x", "[2, \"duplicate\"]"},
      {"TALLY.INCRBY t gone 1 ID y", "[nil, \"duplicate\"]", "[null, \"duplicate\"]"},
      {"TALLY.MINCRBY t NOID a 1 b 1 a 1", between},
      {"TALLY.MINCRBY t IDS a 1 i b 1 j a 1 i", known},
      {"TALLY.MINCRBY t OP c 1 a 1 b 1 a 1", numbered},
      {"TALLY.GET t b", "nil", "null"},
      {"TALLY.INCRBY t b many", "-ERR value is not an integer or out of range"},
      {"TALLY.INCRBY u a 1",
       "-ERR could not create the table: a recogniser needs 8192 bytes "
       "(semel.max-value-bytes is 1000)"},
      {"CONFIG SET semel.max-value-bytes auto", "+OK"},
      {"TALLY.INCRBY t b 1 OP c 2", "[1, \"applied\"]"},
      {"DBSIZE", "1"},
  });
}

TEST_P(TallyReplies, AFilterRecognisesNumberedAndOpaqueIds) {
  run({
      {"TALLY.RESERVE t FILTER", "+OK"},
      {"TALLY.INFO t", "[[...]+Recognition, \"filter\", [...]]",
       "{[...]+Recognition: \"filter\", [...]}"},
      {"TALLY.INCRBY t a 5 OP c 7", "[5, \"applied\"]"},
      {"TALLY.INCRBY t a 5 OP c 7", "[5, \"duplicate\"]"},
      {"TALLY.INCRBY t a 5 OP c 3", "[10, \"applied\"]"},
      {"TALLY.INCRBY t a 1 ID x", "[11, \"applied\"]"},
      {"TALLY.INCRBY t a 1 ID x", "[11, \"duplicate\"]"},
  });
}

TEST_P(TallyReplies, InfoIsAMap) {
  run({
      {"TALLY.RESERVE t WINDOW 10s ERROR 0.5 CAPACITY 100", "+OK"},
      {"TALLY.INFO t",
       "[+Counters, 0, +Window, 10000, +Recognition, \"clients\", +Error rate, "
       "\"0.5\", "
       "+Error rate now, \"0\", +Expected under-count, \"0\", +Capacity, 100, "
       "+Max bytes, [...], +On full, \"refuse\", +Size, [...], +Recogniser size, "
       "[...], "
       "+Last change, [...], +Recognised since, [...], +Refused, 0, "
       "+Stale, 0, +Forgotten early, 0]",
       "{+Counters: 0, +Window: 10000, +Recognition: \"clients\", +Error rate: ,0.5, "
       "+Error rate now: ,0, +Expected under-count: ,0, +Capacity: 100, "
       "+Max bytes: [...], +On full: \"refuse\", +Size: [...], +Recogniser size: "
       "[...], "
       "+Last change: [...], +Recognised since: [...], +Refused: 0, "
       "+Stale: 0, +Forgotten early: 0}"},
      {"TALLY.RESERVE u EXACT MAXBYTES 100000 ONFULL forget", "+OK"},
      {"TALLY.INFO u",
       "[[...]+Recognition, \"exact\", +Error rate, \"0\", [...]"
       "+Max bytes, 100000, +On full, \"forget\", [...]]",
       "{[...]+Recognition: \"exact\", +Error rate: ,0, [...]"
       "+Max bytes: 100000, +On full: \"forget\", [...]}"},
  });
}

TEST(TallyTime, SequencesBelowAForgottenOneAreStale) {
  const std::string stale = "-STALE the operation is too old to tell whether it was counted";
  const RedisServer server(with_module());
  Talk talk(server);
  ASSERT_EQ(talk("TALLY.RESERVE t WINDOW 1s"), "+OK");
  // One transaction, so that no time passes. Number 5 leaves the window, 9 does not.
  for (const char* const command :
       {"MULTI", "TALLY.INCRBY t a 1 OP c 5", "DEBUG SLEEP 0.9", "TALLY.INCRBY t a 1 OP c 9",
        "DEBUG SLEEP 0.6", "TALLY.INCRBY t a 1 OP c 3", "TALLY.MINCRBY t OP c 4 a 1 a 1 a 1"}) {
    talk(command);
  }
  EXPECT_EQ(talk("EXEC"), "[[1, \"applied\"], +OK, [2, \"applied\"], +OK, " + stale + ", [" +
                              stale + ", " + stale + ", [3, \"applied\"]]]");
  for (const int protocol : {2, 3}) {
    const std::map<std::string, std::string> info = info_of(server, protocol, "TALLY.INFO t");
    EXPECT_EQ(info.at("Refused"), "0");
    EXPECT_EQ(info.at("Stale"), "3");
  }
}

// An operation for which there is no room is refused, and is not stale.
TEST(TallyRoom, OperationsWithoutRoomAreRefused) {
  const RedisServer server(with_module());
  Talk talk(server);
  ASSERT_EQ(talk("TALLY.RESERVE t EXACT MAXBYTES 40000"), "+OK");
  Words many = {"TALLY.MINCRBY", "t", "IDS"};
  for (int i = 0; i < 4000; ++i) many.insert(many.end(), {"a", "1", std::to_string(i)});
  const Answer answer = talk.call(many);
  const auto refused = std::count_if(answer.parts.begin(), answer.parts.end(), [](const Answer& a) {
    return a.is_error() && a.text.starts_with("FULL ");
  });
  EXPECT_GT(refused, 0);
  for (const int protocol : {2, 3}) {
    const std::map<std::string, std::string> info = info_of(server, protocol, "TALLY.INFO t");
    EXPECT_EQ(info.at("Refused"), std::to_string(refused));
    EXPECT_EQ(info.at("Stale"), "0");
  }
}

}  // namespace
}  // namespace semel
