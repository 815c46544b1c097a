// The replies of SIFT.*.
#include <algorithm>

#include "tests/module/script.h"

namespace semel {
namespace {

class SiftReplies : public Script {};
INSTANTIATE_TEST_SUITE_P(Protocol, SiftReplies, ::testing::Values(2, 3), protocol_name);

TEST_P(SiftReplies, ReserveTakesOptionsInAnyCaseAndOrder) {
  run({
      {"SIFT.RESERVE s", "+OK"},
      {"SIFT.RESERVE s", "-ERR the key exists already"},
      {"sift.reserve f onfull forget capacity 10 error 0.5 window 7d", "+OK"},
      {"SIFT.RESERVE t TIMERS WINDOW 1s", "+OK"},
      {"SIFT.RESERVE e EXACT MAXBYTES 1000000 ONFULL refuse", "+OK"},
      {"DBSIZE", "4"},
  });
}

TEST_P(SiftReplies, ReserveSaysWhatIsAllowed) {
  constexpr std::string_view kDuration = "; allowed: milliseconds, 1 or more, or 30s, 10m, 2h, 7d";
  const std::string window = "-ERR WINDOW cannot be '0'" + std::string(kDuration);
  run({
      {"SIFT.RESERVE", "-ERR wrong number of arguments for 'sift.reserve' command"},
      {"SIFT.RESERVE s WINDOW", "-ERR WINDOW needs a value"},
      {"SIFT.RESERVE s WINDOW 0", window},
      {"SIFT.RESERVE s ERROR 1", "-ERR ERROR cannot be '1'; allowed: 1e-12 or more, below 1"},
      {"SIFT.RESERVE s ERROR 5e-324",
       "-ERR ERROR cannot be '5e-324'; allowed: 1e-12 or more, below 1"},
      {"SIFT.RESERVE s CAPACITY 0", "-ERR CAPACITY cannot be '0'; allowed: 1 to 274877906944"},
      {"SIFT.RESERVE s EXACT TIMERS", "-ERR EXACT and TIMERS exclude each other"},
      {"SIFT.RESERVE s HEAP", "-ERR unknown option 'HEAP'"},
      {"SIFT.RESERVE s EXACT ERROR 0.1", "-ERR EXACT and ERROR exclude each other"},
      {"SIFT.RESERVE s ONFULL wait", "-ERR ONFULL is refuse or forget"},
      {"SIFT.RESERVE s MAXBYTES 0",
       "-ERR MAXBYTES cannot be '0'; allowed: 1 to 9223372036854775807, or a size "
       "such as 64mb"},
      {"SIFT.RESERVE s MAXBYTES 100",
       "-ERR could not create the sift: the first table would take more memory than allowed; see "
       "CAPACITY and MAXBYTES (semel.max-value-bytes is [...])"},
      {"SIFT.RESERVE s TIMERS MAXBYTES 100",
       "-ERR could not create the sift: one filter would take more memory than allowed; see "
       "CAPACITY and MAXBYTES (semel.max-value-bytes is [...])"},
      {"SIFT.RESERVE s COLOUR red", "-ERR unknown option 'COLOUR'"},
      {"SIFT.RESERVE s WINDOW 1s WINDOW 1s", "-ERR WINDOW is given twice"},
      {"SIFT.RESERVE s SECRET 0123456789abcdef0123456789abcdef", "-ERR unknown option 'SECRET'"},
      {"DBSIZE", "0"},
  });
}

TEST_P(SiftReplies, AddSaysWhichIsTheFirst) {
  for (const char* const kind : {"", " TIMERS", " exact"}) {
    const std::string reserve = std::string("SIFT.RESERVE s") + kind;
    run({
        {reserve, "+OK"},
        {"SIFT.ADD s a", "1"},
        {"SIFT.ADD s a", "0"},
        {"SIFT.ADD s \"\"", "1"},
        {"SIFT.ADD s \"\"", "0"},
        {"SIFT.MADD s a b b c", "[0, 1, 0, 1]"},
        {"SIFT.TEST s a", "1"},
        {"SIFT.TEST s z", "0"},
        {"SIFT.MTEST s a z c", "[1, 0, 1]"},
        {"SIFT.INSERT s ITEMS a d", "[0, 1]"},
        {"SIFT.INSERT s renew items a e", "[0, 1]"},
        {"SIFT.INSERT s RENEW TIMED ITEMS f 0",
         "[-STALE the event is too old to tell whether it "
         "was seen]"},
        {"SIFT.INSERT s TIMED ITEMS g 99999999999999 h 99999999999999", "[1, 1]"},
        {"SIFT.CARD s", "[...]"},
    });
  }
}

TEST_P(SiftReplies, EventsThatAreTooOldAreStale) {
  run({
      {"SIFT.ADD s a AT 99999999999999", "1"},
      {"SIFT.ADD s b at 1", "-STALE the event is too old to tell whether it was seen"},
      // It makes no key.
      {"SIFT.ADD none b AT 1", "-STALE the event is too old to tell whether it was seen"},
      {"SIFT.INSERT none TIMED ITEMS b 1 c 2",
       "[-STALE the event is too old to tell whether it was seen, -STALE the event is too old to "
       "tell whether it was seen]"},
      {"EXISTS none", "0"},
  });
}

TEST_P(SiftReplies, ClaimsGiveAnIdToOneOwner) {
  for (const char* const kind : {"", " TIMERS", " exact"}) {
    const std::string reserve = std::string("SIFT.RESERVE s") + kind;
    run({
        {reserve, "+OK"},
        {"SIFT.CLAIM s a me 1h", "\"fresh\""},
        {"SIFT.CLAIM s a you 1h", "\"pending\""},
        {"SIFT.ADD s a", "0"},
        {"SIFT.TEST s a", "0"},
        {"SIFT.COMMIT s a you", "\"lost\""},
        {"SIFT.RELEASE s a you", "0"},
        {"SIFT.COMMIT s a me", "\"done\""},
        {"SIFT.COMMIT s a me", "\"seen\""},
        {"SIFT.CLAIM s a you 1h", "\"seen\""},
        {"SIFT.TEST s a", "1"},
        {"SIFT.CLAIM s b me 3600000", "\"fresh\""},
        {"SIFT.RELEASE s b me", "1"},
        {"SIFT.RELEASE s b me", "0"},
        {"SIFT.CLAIM s b you 30s", "\"fresh\""},
        {"SIFT.COMMIT s c me", "\"lost\""},
    });
  }
}

TEST_P(SiftReplies, ClaimsOfManyAreAnsweredAsOneAfterTheOther) {
  for (const char* const kind : {"", " TIMERS", " exact"}) {
    const std::string reserve = std::string("SIFT.RESERVE s") + kind;
    run({
        {reserve, "+OK"},
        {"SIFT.ADD s old", "1"},
        {"SIFT.CLAIM s b you 1h", "\"fresh\""},
        {"SIFT.MCLAIM s me 1h a b a old c",
         "[\"fresh\", \"pending\", \"fresh\", \"seen\", \"fresh\"]"},
        {"SIFT.MCLAIM s me 1h a b", "[\"fresh\", \"pending\"]"},
        {"SIFT.MCLAIM s you 1h a", "[\"pending\"]"},
        {"SIFT.MRELEASE s me a b a none", "[1, 0, 0, 0]"},
        {"SIFT.MCOMMIT s me a b c c old", "[\"lost\", \"lost\", \"done\", \"seen\", \"seen\"]"},
        {"SIFT.MTEST s a b c", "[0, 0, 1]"},
        {"SIFT.MCOMMIT s you b", "[\"done\"]"},
        {"SIFT.MCLAIM s me 3600000 a b c", "[\"fresh\", \"seen\", \"seen\"]"},
        {"SIFT.CARD s", "3"},
    });
  }
}

TEST_P(SiftReplies, ClaimsOfManyMakeAKeyAndTheirEndsDoNot) {
  run({
      {"SIFT.MCOMMIT s me a b", "[\"lost\", \"lost\"]"},
      {"SIFT.MRELEASE s me a b", "[0, 0]"},
      {"EXISTS s", "0"},
      {"SIFT.MCLAIM s me 1h a b", "[\"fresh\", \"fresh\"]"},
      {"EXISTS s", "1"},
  });
}

TEST_P(SiftReplies, ClaimsOfManyEndWhereTheRoomEnds) {
  std::string claim = "SIFT.MCLAIM s me 1h", commit = "SIFT.MCOMMIT s me";
  for (int i = 0; i < 100; ++i) claim += ' ' + std::to_string(i), commit += ' ' + std::to_string(i);
  run({
      {"SIFT.RESERVE s EXACT CAPACITY 10 MAXBYTES 40000", "+OK"},
      {claim,
       "[\"fresh\", [...], \"fresh\", -FULL the sift has no room for another claim; an eighth of "
       "MAXBYTES is for claims, [...]]"},
      {commit, "[\"done\", [...], \"done\", \"lost\", [...]]"},
  });
}

TEST_P(SiftReplies, ReadsOfNoSift) {
  run({
      {"SIFT.TEST s a", "0"},
      {"SIFT.MTEST s a b", "[0, 0]"},
      {"SIFT.CARD s", "0"},
      {"SIFT.COMMIT s a me", "\"lost\""},
      {"SIFT.RELEASE s a me", "0"},
      {"SIFT.INFO s", "-ERR not found"},
      {"EXISTS s", "0"},
  });
}

TEST_P(SiftReplies, SayWhatIsAllowed) {
  constexpr std::string_view kTime = "-ERR the time of an event is milliseconds since 1970";
  constexpr std::string_view kClaim =
      "-ERR a claim lasts for milliseconds, 1 or more, or 30s, 10m, 2h, 7d";
  constexpr std::string_view kItems =
      "-ERR syntax error; allowed: [RENEW] [TIMED] ITEMS id [id ...]";
  run({
      {"SIFT.ADD s", "-ERR wrong number of arguments for 'sift.add' command"},
      {"SIFT.ADD s a AT", "-ERR syntax error; allowed: key id, or key id AT ms"},
      {"SIFT.ADD s a ON 1", "-ERR syntax error; allowed: key id, or key id AT ms"},
      {"SIFT.ADD s a AT noon", kTime},
      {"SIFT.MADD s", "-ERR wrong number of arguments for 'sift.madd' command"},
      {"SIFT.INSERT s a", "-ERR wrong number of arguments for 'sift.insert' command"},
      {"SIFT.INSERT s RENEW a", "-ERR unknown option 'a'"},
      {"SIFT.INSERT s RENEW ITEMS", kItems},
      {"SIFT.INSERT s RENEW TIMED", "-ERR TIMED takes ITEMS id ms [id ms ...]"},
      {"SIFT.INSERT s TIMED ITEMS a", "-ERR TIMED takes ITEMS id ms [id ms ...]"},
      {"SIFT.INSERT s TIMED ITEMS a noon", kTime},
      {"SIFT.INSERT s TIMED TIMED ITEMS a 1", "-ERR TIMED is given twice"},
      {"SIFT.TEST s", "-ERR wrong number of arguments for 'sift.test' command"},
      {"SIFT.TEST s a b", "-ERR wrong number of arguments for 'sift.test' command"},
      {"SIFT.MTEST s", "-ERR wrong number of arguments for 'sift.mtest' command"},
      {"SIFT.CLAIM s a me", "-ERR wrong number of arguments for 'sift.claim' command"},
      {"SIFT.CLAIM s a me 0", kClaim},
      {"SIFT.CLAIM s a me soon", kClaim},
      {"SIFT.CLAIM s a me -1", kClaim},
      {"SIFT.MCLAIM s me 1h", "-ERR wrong number of arguments for 'sift.mclaim' command"},
      {"SIFT.MCLAIM s me soon a", kClaim},
      {"SIFT.MCLAIM s me 0 a", kClaim},
      {"SIFT.MCOMMIT s me", "-ERR wrong number of arguments for 'sift.mcommit' command"},
      {"SIFT.MRELEASE s me", "-ERR wrong number of arguments for 'sift.mrelease' command"},
      {"SIFT.COMMIT s a", "-ERR wrong number of arguments for 'sift.commit' command"},
      {"SIFT.RELEASE s a", "-ERR wrong number of arguments for 'sift.release' command"},
      {"SIFT.CARD", "-ERR wrong number of arguments for 'sift.card' command"},
      {"SIFT.CARD s a", "-ERR wrong number of arguments for 'sift.card' command"},
      {"SIFT.INFO", "-ERR wrong number of arguments for 'sift.info' command"},
      {"DBSIZE", "0"},
  });
}

TEST_P(SiftReplies, FullSiftsRefuseOrForget) {
  std::string many = "SIFT.MADD s";
  for (int i = 0; i < 4000; ++i) many += ' ' + std::to_string(i);
  run({
      {"SIFT.RESERVE s EXACT MAXBYTES 40000 ONFULL refuse", "+OK"},
      {many, "[1, 1, [...], -FULL the sift has no room for another id; see MAXBYTES and ONFULL]"},
      {"SIFT.TEST s 0", "1"},
      {"SIFT.ADD s 0", "0"},
  });
  run({
      {"SIFT.RESERVE s EXACT MAXBYTES 40000 ONFULL forget", "+OK"},
      {many, "[1, 1, [...], 1, 1]"},
  });
}

TEST_P(SiftReplies, InfoTellsRefusedFromStale) {
  std::string many = "SIFT.MADD s";
  for (int i = 0; i < 4000; ++i) many += ' ' + std::to_string(i);
  run({{"SIFT.RESERVE s EXACT MAXBYTES 40000", "+OK"}});
  Talk talk(server(), GetParam());
  const Answer answer = talk.call(words_of(many));
  const auto refused = std::count_if(answer.parts.begin(), answer.parts.end(), [](const Answer& a) {
    return a.is_error() && a.text.starts_with("FULL ");
  });
  EXPECT_GT(refused, 0);
  EXPECT_EQ(info_of(server(), GetParam(), "SIFT.INFO s").at("Refused"), std::to_string(refused));
  EXPECT_EQ(info_of(server(), GetParam(), "SIFT.INFO s").at("Stale"), "0");
  talk("SIFT.ADD s late AT 1");
  EXPECT_EQ(info_of(server(), GetParam(), "SIFT.INFO s").at("Refused"), std::to_string(refused));
  EXPECT_EQ(info_of(server(), GetParam(), "SIFT.INFO s").at("Stale"), "1");
}

TEST_P(SiftReplies, InfoIsAMap) {
  run({
      {"SIFT.RESERVE s WINDOW 10s ERROR 0.5 CAPACITY 100", "+OK"},
      {"SIFT.INFO s",
       "[+Ids, 0, +Structure, \"forgetful\", +Window, 10000, +Error rate, \"0.5\", "
       "+Error rate now, \"0\", +Capacity, 100, +Max bytes, [...], +On full, "
       "\"refuse\", "
       "+Size, [...], +Claims, 0, +Max claims, [...], +Last change, [...], "
       "+Recognised since, [...], +Refused, 0, +Stale, 0, +Forgotten early, 0]",
       "{+Ids: 0, +Structure: \"forgetful\", +Window: 10000, +Error rate: ,0.5, "
       "+Error rate now: ,0, +Capacity: 100, +Max bytes: [...], +On full: \"refuse\", "
       "+Size: [...], +Claims: 0, +Max claims: [...], +Last change: [...], "
       "+Recognised since: [...], +Refused: 0, +Stale: 0, +Forgotten early: 0}"},
      {"SIFT.RESERVE t EXACT MAXBYTES 100000 ONFULL forget", "+OK"},
      {"SIFT.CLAIM t a me 1h", "\"fresh\""},
      {"SIFT.INFO t",
       "[[...]+Structure, \"exact\", [...]+Error rate, \"0\", [...]+Max bytes, 100000, "
       "+On full, \"forget\", [...]+Claims, 1, +Max claims, [...]]",
       "{[...]+Structure: \"exact\", [...]+Error rate: ,0, [...]+Max bytes: 100000, "
       "+On full: \"forget\", [...]+Claims: 1, +Max claims: [...]}"},
  });
}

}  // namespace
}  // namespace semel
