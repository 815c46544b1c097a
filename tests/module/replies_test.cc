// Replies that all families have in common.
#include <array>

#include "tests/module/script.h"

namespace semel {
namespace {

// Commands on a key, with good arguments. The commands of RedisBloom have rules of their own.
constexpr std::array kOnKeys = {
    "TALLY.RESERVE %",       "TALLY.INCRBY % a 1",    "TALLY.MINCRBY % NOID a 1",
    "TALLY.GET % a",         "TALLY.MGET % a",        "TALLY.RANGE % - +",
    "TALLY.SUM %",           "TALLY.COUNT %",         "TALLY.DEL % a",
    "TALLY.INFO %",          "SIFT.RESERVE %",        "SIFT.ADD % a",
    "SIFT.MADD % a",         "SIFT.INSERT % ITEMS a", "SIFT.TEST % a",
    "SIFT.MTEST % a",        "SIFT.CLAIM % a me 1h",  "SIFT.COMMIT % a me",
    "SIFT.RELEASE % a me",   "SIFT.CARD %",           "SIFT.INFO %",
    "SIFT.MCLAIM % me 1h a", "SIFT.MCOMMIT % me a",   "SIFT.MRELEASE % me a",
};

class Replies : public Script {};
INSTANTIATE_TEST_SUITE_P(Protocol, Replies, ::testing::Values(2, 3), protocol_name);

TEST_P(Replies, AKeyOfAnotherTypeIsRefusedAndStaysAsItIs) {
  constexpr std::string_view kWrongType =
      "-WRONGTYPE Operation against a key holding the wrong kind of value";
  std::vector<std::string> commands;
  for (const std::string_view command : kOnKeys) {
    std::string& text = commands.emplace_back(command);
    text.replace(text.find('%'), 1, "string");
  }
  std::vector<Step> steps = {{"SET string x", "+OK"}};
  for (const std::string& command : commands) steps.push_back({command, kWrongType});
  steps.push_back({"GET string", "\"x\""});
  run(steps);
}

TEST_P(Replies, EffectsAreNotForClients) {
  run({
      {"SEMEL.AT 1 1 TALLY.INCRBY t a 1", "-ERR SEMEL.AT is for replication and AOF files"},
      {"SEMEL.AT", "-ERR wrong number of arguments for 'semel.at' command"},
      {"SEMEL.LOAD t SMLtally- 0 1 x 0", "-ERR SEMEL.LOAD is for replication and AOF files"},
      {"SEMEL.TICK t", "-ERR SEMEL.TICK is for replication and AOF files"},
      {"DBSIZE", "0"},
  });
}

}  // namespace
}  // namespace semel
