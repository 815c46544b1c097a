// The replies of BF.*: those of RedisBloom, or those of docs/commands.md where they differ.
#include "tests/module/payload.h"
#include "tests/module/script.h"

namespace semel {
namespace {

class BloomReplies : public Script {};
INSTANTIATE_TEST_SUITE_P(Protocol, BloomReplies, ::testing::Values(2, 3), protocol_name);

TEST_P(BloomReplies, Reserve) {
  run({
      {"BF.RESERVE b 0.01 100", "+OK"},
      {"BF.RESERVE b 0.01 100", "-ERR item exists"},
      {"bf.reserve c 0.001 1000 expansion 4", "+OK"},
      {"BF.RESERVE d 1e-9 1 NONSCALING", "+OK"},
      {"BF.RESERVE e 0.5 1 EXPANSION 1", "+OK"},
  });
}

TEST_P(BloomReplies, ReserveErrors) {
  run({
      {"BF.RESERVE b 0.01", "-ERR wrong number of arguments for 'bf.reserve' command"},
      {"BF.RESERVE b x 100", "-ERR bad error rate"},
      {"BF.RESERVE b 0 100", "-ERR (0 < error rate range < 1) "},
      {"BF.RESERVE b 1 100", "-ERR (0 < error rate range < 1) "},
      {"BF.RESERVE b -0.5 100", "-ERR (0 < error rate range < 1) "},
      {"BF.RESERVE b 5e-324 100", "-ERR error rate too low; allowed: 1e-12 or more, below 1"},
      {"BF.RESERVE b 0.01 100 NONSCALING NONSCALING", "-ERR NONSCALING is given twice"},
      {"BF.RESERVE b 0.01 100 EXPANSION 2 EXPANSION 2", "-ERR EXPANSION is given twice"},
      {"BF.RESERVE b 0.01 x", "-ERR bad capacity"},
      {"BF.RESERVE b 0.01 1.5", "-ERR bad capacity"},
      {"BF.RESERVE b 0.01 0", "-ERR (capacity should be larger than 0)"},
      {"BF.RESERVE b 0.01 -1", "-ERR (capacity should be larger than 0)"},
      {"BF.RESERVE b 0.01 100 EXPANSION", "-ERR no expansion"},
      {"BF.RESERVE b 0.01 100 EXPANSION x", "-ERR bad expansion"},
      {"BF.RESERVE b 0.01 100 EXPANSION 4294967296", "-ERR bad expansion"},
      {"BF.RESERVE b 0.01 100 EXPANSION 0", "-ERR expansion should be greater or equal to 1"},
      {"BF.RESERVE b 0.01 100 NONSCALING EXPANSION 2", "-Nonscaling filters cannot expand"},
      {"BF.RESERVE b 0.01 9223372036854775807",
       "-ERR the filter would take more memory than semel.max-value-bytes allows, [...] bytes"},
      {"BF.RESERVE b 0.01 100 COLOUR red", "-ERR unknown option 'COLOUR'"},
      {"BF.RESERVE b 0.01 100 TAG 1", "-ERR unknown option 'TAG'"},
      {"BF.RESERVE b 0.01 100 SECRET 0123456789abcdef0123456789abcdef",
       "-ERR unknown option 'SECRET'"},
      {"DBSIZE", "0"},
  });
}

TEST_P(BloomReplies, AddAndExist) {
  run({
      {"BF.EXISTS b a", "0", "#f"},
      {"BF.MEXISTS b a c", "[0, 0]", "[#f, #f]"},
      {"BF.CARD b", "0"},
      {"BF.ADD b a", "1", "#t"},
      {"BF.ADD b a", "0", "#f"},
      {"BF.MADD b a c c d", "[0, 1, 0, 1]", "[#f, #t, #f, #t]"},
      {"BF.EXISTS b a", "1", "#t"},
      {"BF.MEXISTS b a z d", "[1, 0, 1]", "[#t, #f, #t]"},
      {"BF.ADD b \"\"", "1", "#t"},
      {"BF.CARD b", "4"},
      {"BF.INSERT b ITEMS a e", "[0, 1]", "[#f, #t]"},
      {"BF.INSERT i CAPACITY 10 ERROR 0.1 EXPANSION 3 ITEMS a b", "[1, 1]", "[#t, #t]"},
      {"BF.INSERT j nonscaling items a", "[1]", "[#t]"},
      {"BF.INSERT i NOCREATE ITEMS a", "[0]", "[#f]"},
      {"BF.INSERT i CAPACITY 9 ERROR 0.5 NOCREATE ITEMS a", "[0]", "[#f]"},
  });
}

TEST_P(BloomReplies, AddErrors) {
  run({
      {"BF.ADD b", "-ERR wrong number of arguments for 'bf.add' command"},
      {"BF.ADD b a c", "-ERR wrong number of arguments for 'bf.add' command"},
      {"BF.MADD b", "-ERR wrong number of arguments for 'bf.madd' command"},
      {"BF.EXISTS b", "-ERR wrong number of arguments for 'bf.exists' command"},
      {"BF.MEXISTS b", "-ERR wrong number of arguments for 'bf.mexists' command"},
      {"BF.CARD", "-ERR wrong number of arguments for 'bf.card' command"},
      {"BF.INSERT", "-ERR wrong number of arguments for 'bf.insert' command"},
      {"BF.INSERT b NOCREATE ITEMS", "-ERR wrong number of arguments for 'bf.insert' command"},
      {"BF.INSERT b NOCREATE ITEMS a", "-ERR not found"},
      {"BF.INSERT b CAPACITY 9 ERROR 0.1 NOCREATE ITEMS a", "-ERR not found"},
      {"BF.INSERT b COLOUR red ITEMS a", "-Unknown argument received"},
      {"BF.INSERT b ERROR x ITEMS a", "-Bad error rate"},
      {"BF.INSERT b ERROR 2 ITEMS a", "-Bad argument received"},
      {"BF.INSERT b ERROR 0 ITEMS a", "-Bad argument received"},
      {"BF.INSERT b ERROR 5e-324 ITEMS a", "-Bad argument received"},
      {"BF.INSERT b NOCREATE NOCREATE ITEMS", "-ERR NOCREATE is given twice"},
      {"BF.INSERT b CAPACITY 9 CAPACITY 9 ITEMS a", "-ERR CAPACITY is given twice"},
      {"BF.INSERT b CAPACITY x ITEMS a", "-Bad capacity"},
      {"BF.INSERT b CAPACITY 0 ITEMS a", "-Bad argument received"},
      {"BF.INSERT b EXPANSION x ITEMS a", "-Bad expansion"},
      {"BF.INSERT b EXPANSION 0 ITEMS a", "-Bad argument received"},
      {"DBSIZE", "0"},
  });
}

TEST_P(BloomReplies, AFullFilterEndsTheArray) {
  std::string many = "BF.MADD b";
  for (int i = 0; i < 100; ++i) many += ' ' + std::to_string(i);
  run({
      {"BF.RESERVE b 0.0001 10 NONSCALING", "+OK"},
      {many, "[1, [...], -ERR non scaling filter is full]",
       "[#t, [...], -ERR non scaling filter is full]"},
      {"BF.ADD b new", "-ERR non scaling filter is full"},
      {"BF.ADD b 0", "0", "#f"},
      {"BF.MADD b 0 new newer 0", "[0, -ERR non scaling filter is full]",
       "[#f, -ERR non scaling filter is full]"},
  });
}

// Returns a call that adds the items first, first + 1, ... to the key b.
Words adding(int first, int items) {
  Words words = {"BF.MADD", "b"};
  for (int i = first; i < first + items; ++i) words.push_back(std::to_string(i));
  return words;
}

// Returns the capacities of the parts of b.
std::vector<std::int64_t> capacities(Talk& talk) {
  std::vector<std::int64_t> all;
  for (const Answer& line : talk.call({"BF.DEBUG", "b"}).parts) {
    constexpr std::string_view kWord = "capacity:";
    const std::size_t at = line.text.find(kWord);
    if (at != std::string::npos) all.push_back(std::stoll(line.text.substr(at + kWord.size())));
  }
  return all;
}

// A part is EXPANSION times as large as the last one, until all have room for 131,072 items.
TEST_P(BloomReplies, AFilterGrowsByItsExpansionAndThenByHalf) {
  Talk talk(server(), GetParam());
  talk("FLUSHALL");
  ASSERT_EQ(talk("BF.RESERVE b 0.01 1000 EXPANSION 4"), "+OK");
  talk.call(adding(0, 6000));
  EXPECT_EQ(capacities(talk), (std::vector<std::int64_t>{1000, 4000, 16000}));
  talk("FLUSHALL");
  ASSERT_EQ(talk("BF.RESERVE b 0.01 131071 EXPANSION 2"), "+OK");
  for (int i = 0; i < 7; ++i) talk.call(adding(60'000 * i, 60'000));
  EXPECT_EQ(capacities(talk), (std::vector<std::int64_t>{131'071, 262'142, 196'606}));
  talk("FLUSHALL");
  ASSERT_EQ(talk("BF.RESERVE b 0.01 131072 EXPANSION 2"), "+OK");
  for (int i = 0; i < 3; ++i) talk.call(adding(60'000 * i, 60'000));
  EXPECT_EQ(capacities(talk), (std::vector<std::int64_t>{131'072, 131'072}));
}

// EXPANSION 1 is for those who know how many items will come. The filter grows all the same, by few
// parts, until it reaches the limit for a key.
TEST_P(BloomReplies, AFilterOfExpansionOneGrowsToTheLimit) {
  Talk talk(server(), GetParam());
  talk("FLUSHALL");
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 200000"), "+OK");
  ASSERT_EQ(talk("BF.RESERVE b 0.01 100 EXPANSION 1"), "+OK");
  const std::string yes = GetParam() == 3 ? "#t" : "1";
  int items = 0;
  for (Answer added; items < 1'000'000; items += 1000) {
    added = talk.call(adding(items, 1000));
    ASSERT_FALSE(added.parts.empty());
    if (!added.parts.back().is_error()) continue;
    EXPECT_TRUE(added.parts.back().text.starts_with("ERR the filter would take more memory than"))
        << added.parts.back().shown();
    items += static_cast<int>(added.parts.size()) - 1;
    break;
  }
  EXPECT_GT(items, 50'000);
  EXPECT_LT(items, 150'000);
  std::vector<std::int64_t> parts = capacities(talk);
  EXPECT_LT(parts.size(), 25u);
  parts.resize(6);
  EXPECT_EQ(parts, (std::vector<std::int64_t>{100, 100, 100, 150, 225, 337}));
  Words ask = adding(0, items);
  ask[0] = "BF.MEXISTS";
  for (const Answer& found : talk.call(ask).parts) ASSERT_EQ(found.shown(), yes);
  talk("CONFIG SET semel.max-value-bytes auto");
}

// A filter without growth takes exactly the items that it was made for.
TEST_P(BloomReplies, AFilterWithoutGrowthEndsAtItsCapacity) {
  Talk talk(server(), GetParam());
  talk("FLUSHALL");
  ASSERT_EQ(talk("BF.RESERVE b 1e-9 1000 NONSCALING"), "+OK");
  const Answer added = talk.call(adding(0, 1001));
  ASSERT_EQ(added.parts.size(), 1001u);
  EXPECT_EQ(added.parts[999].shown(), GetParam() == 3 ? "#t" : "1");
  EXPECT_EQ(added.parts[1000].shown(), "-ERR non scaling filter is full");
  EXPECT_EQ(talk("BF.CARD b"), "1000");
  EXPECT_EQ(capacities(talk), (std::vector<std::int64_t>{1000}));
}

// No part of a filter can have more than 2^46 bits.
TEST_P(BloomReplies, AFilterEndsWhereNoPartCanFollow) {
  Talk talk(server(), GetParam());
  talk("FLUSHALL");
  ASSERT_EQ(talk("BF.RESERVE b 1e-9 2000 EXPANSION 4294967295"), "+OK");
  const Answer added = talk.call(adding(0, 2002));
  ASSERT_EQ(added.parts.size(), 2001u);
  EXPECT_EQ(added.parts[2000].shown(), "-ERR problem inserting into filter");
  EXPECT_EQ(talk("BF.ADD b new"), "-ERR problem inserting into filter");
  EXPECT_EQ(talk("BF.CARD b"), "2000");
}

TEST_P(BloomReplies, AKeyOfAnotherType) {
  constexpr std::string_view kWrongType =
      "-WRONGTYPE Operation against a key holding the wrong kind of value";
  run({
      {"SET s x", "+OK"},
      {"CF.ADD c a", "1", "#t"},
      {"BF.EXISTS s a", "0", "#f"},
      {"BF.EXISTS c a", "0", "#f"},
      {"BF.MEXISTS s a b", "[0, 0]", "[#f, #f]"},
      {"BF.RESERVE s 0.1 10", kWrongType},
      {"BF.ADD s a", kWrongType},
      {"BF.ADD c a", kWrongType},
      {"BF.MADD s a", kWrongType},
      {"BF.INSERT s ITEMS a", kWrongType},
      {"BF.CARD s", kWrongType},
      {"BF.INFO s", kWrongType},
      {"BF.SCANDUMP s 0", kWrongType},
      {"BF.LOADCHUNK s 1 x", kWrongType},
      {"BF.MERGE s s", kWrongType},
      {"BF.ADD b a", "1", "#t"},
      {"BF.MERGE b s", kWrongType},
      {"BF.MERGE s b", kWrongType},
  });
}

// BF.INFO shows only the fields of RedisBloom: some clients fail on others, and drop their
// connection.
TEST_P(BloomReplies, Info) {
  const std::string known2 =
      "+Capacity, 100, +Size, [...], +Number of filters, 1, "
      "+Number of items inserted, 2, +Expansion rate, 2";
  const std::string known3 =
      "+Capacity: 100, +Size: [...], +Number of filters: 1, "
      "+Number of items inserted: 2, +Expansion rate: 2";
  const std::string own2 =
      "+Error rate, \"0.01\", +Error bound, [...], "
      "+Error rate now, [...], +Chains, 1";
  const std::string own3 =
      "+Error rate: ,0.01, +Error bound: ,[...], "
      "+Error rate now: ,[...], +Chains: 1";
  run({
      {"BF.INFO b", "-ERR not found"},
      {"BF.INFO", "-ERR wrong number of arguments for 'bf.info' command"},
      {"BF.RESERVE empty 0.01 100", "+OK"},
      {"BF.INFO empty ALL", "[[...]+Error rate now, \"0\", +Chains, 1]",
       "{[...]+Error rate now: ,0, +Chains: 1}"},
      {"BF.MADD b x y", "[1, 1]", "[#t, #t]"},
      {"BF.INFO b", "[" + known2 + "]", "{" + known3 + "}"},
      {"BF.INFO b all", "[" + known2 + ", " + own2 + "]", "{" + known3 + ", " + own3 + "}"},
      {"BF.INFO b COLOUR", "-Invalid information value"},
      {"BF.INFO b TIGHTENING", "-Invalid information value"},
      {"BF.INFO b SIZE ITEMS", "-ERR wrong number of arguments for 'bf.info' command"},
  });
}

// A single field comes in the form of RedisBloom. In Valkey it comes as in valkey-bloom: its value
// alone.
TEST_P(BloomReplies, InfoOfOneField) {
  Talk talk(server());
  const bool valkey = is_valkey(talk);
  struct Field {
    const char* word;
    const char* name;
    const char* resp2;
    const char* resp3;
  };
  std::vector<std::string> texts;
  texts.reserve(100);
  const auto kept = [&](std::string text) { return std::string_view(texts.emplace_back(text)); };
  std::vector<Step> steps = {{"BF.RESERVE b 0.01 100", "+OK"},
                             {"BF.MADD b x y", "[1, 1]", "[#t, #t]"},
                             {"BF.RESERVE n 0.01 100 NONSCALING", "+OK"}};
  for (const Field& field :
       {Field{"b CAPACITY", "Capacity", "100", "100"}, Field{"b size", "Size", "[...]", "[...]"},
        Field{"b FILTERS", "Number of filters", "1", "1"},
        Field{"b ITEMS", "Number of items inserted", "2", "2"},
        Field{"b EXPANSION", "Expansion rate", "2", "2"},
        Field{"b ERROR", "Error rate", "\"0.01\"", ",0.01"},
        Field{"n EXPANSION", "Expansion rate", "nil", "null"},
        Field{"n MAXSCALEDCAPACITY", "Max scaled capacity", "100", "100"}}) {
    const std::string array = "[" + std::string(field.resp2) + "]";
    const std::string map = "{+" + std::string(field.name) + ": " + field.resp3 + "}";
    steps.push_back({kept(std::string("BF.INFO ") + field.word),
                     valkey ? std::string_view(field.resp2) : kept(array),
                     valkey ? std::string_view(field.resp3) : kept(map)});
  }
  run(steps);
}

TEST_P(BloomReplies, Debug) {
  run({
      {"BF.DEBUG", "-ERR wrong number of arguments for 'bf.debug' command"},
      {"BF.DEBUG b", "-ERR not found"},
      {"BF.RESERVE b 0.01 2", "+OK"},
      {"BF.DEBUG b",
       "[\"size:0\", \"bytes:[...] bits:[...] hashes:[...] hashwidth:64 capacity:2 size:0 "
       "ratio:[...]\"]"},
      {"BF.MADD b x y z", "[1, 1, 1]", "[#t, #t, #t]"},
      {"BF.DEBUG b",
       "[\"size:3\", \"bytes:[...] capacity:2 size:2 ratio:[...]\", \"bytes:[...] capacity:4 "
       "size:1 "
       "ratio:[...]\"]"},
      {"SET s x", "+OK"},
      {"BF.DEBUG s", "-WRONGTYPE [...]"},
  });
}

// A filter can be made without an item, as in valkey-bloom.
TEST_P(BloomReplies, InsertWithoutItems) {
  run({
      {"BF.INSERT b", "[]"},
      {"BF.CARD b", "0"},
      {"BF.INSERT b", "[]"},
      {"BF.INSERT c CAPACITY 7 ERROR 0.1", "[]"},
      {"BF.RESERVE c 0.1 7", "-ERR item exists"},
      {"BF.INSERT d NOCREATE", "-ERR not found"},
      {"BF.INSERT d NOCREATE NONSCALING", "-ERR not found"},
      {"BF.INSERT d CAPACITY", "-ERR wrong number of arguments for 'bf.insert' command"},
      {"BF.INSERT d VALIDATESCALETO", "-ERR wrong number of arguments for 'bf.insert' command"},
      {"BF.INSERT d COLOUR", "-Unknown argument received"},
      {"SET s x", "+OK"},
      {"BF.INSERT s", "-WRONGTYPE [...]"},
  });
}

TEST_P(BloomReplies, InsertTellsWhetherTheFilterCanGrow) {
  const std::string beyond =
      "-ERR provided VALIDATESCALETO causes bloom object to exceed memory limit: "
      "semel.max-value-bytes allows [...] items";
  run({
      {"CONFIG SET semel.max-value-bytes 1000000", "+OK"},
      {"BF.INSERT b VALIDATESCALETO 100000 ITEMS a", "[1]", "[#t]"},
      {"BF.INSERT b VALIDATESCALETO 10000000 ITEMS a", beyond},
      {"BF.INSERT c VALIDATESCALETO 10000000 ITEMS a", beyond},
      {"EXISTS c", "0"},
      {"BF.INSERT c ERROR 0.5 VALIDATESCALETO 500000", "[]"},
      // The filter decides, not the options for a new one.
      {"BF.INSERT b ERROR 0.5 VALIDATESCALETO 500000", beyond},
      {"CONFIG SET semel.max-value-bytes 0", "+OK"},
      {"BF.INSERT b VALIDATESCALETO 10000000", "[]"},
      {"CONFIG SET semel.max-value-bytes auto", "+OK"},
      {"BF.INSERT d VALIDATESCALETO 0", "-ERR (capacity should be larger than 0)"},
      {"BF.INSERT d VALIDATESCALETO -1", "-ERR bad capacity"},
      {"BF.INSERT d VALIDATESCALETO x", "-ERR bad capacity"},
      {"BF.INSERT d VALIDATESCALETO 1 VALIDATESCALETO 1", "-ERR VALIDATESCALETO is given twice"},
      {"BF.INSERT d NONSCALING VALIDATESCALETO 1",
       "-ERR cannot use NONSCALING and VALIDATESCALETO options together"},
      {"BF.INSERT d NOCREATE VALIDATESCALETO 1", "-ERR not found"},
      {"BF.RESERVE n 0.01 100 NONSCALING", "+OK"},
      {"BF.INSERT n VALIDATESCALETO 100", "[]"},
      {"BF.INSERT n VALIDATESCALETO 101",
       "-ERR the filter does not scale: it has room for 100 items"},
      {"SET s x", "+OK"},
      {"BF.INSERT s VALIDATESCALETO 1", "-WRONGTYPE [...]"},
  });
}

// A filter holds at least as many items as it promised, and no more than one link beyond them.
TEST_P(BloomReplies, TheMaxScaledCapacityIsReached) {
  Talk talk(server(), GetParam());
  talk("FLUSHALL");
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 20000"), "+OK");
  ASSERT_EQ(talk("BF.RESERVE b 0.0001 10"), "+OK");
  // A value alone in Valkey; elsewhere the last part of an array or a map.
  const auto reach = [&] {
    const Answer answer = talk.call({"BF.INFO", "b", "MAXSCALEDCAPACITY"});
    return answer.parts.empty() ? answer.integer() : answer.parts.back().integer();
  };
  const std::int64_t promised = reach();
  Words add = {"BF.MADD", "b"};
  for (int i = 0; i < 20'000; ++i) add.push_back(std::to_string(i));
  const Answer added = talk.call(add);
  EXPECT_TRUE(added.parts.back().is_error()) << added.parts.back().shown();
  EXPECT_EQ(talk("BF.CARD b"), std::to_string(promised));
  EXPECT_EQ(reach(), promised);
  talk("CONFIG SET semel.max-value-bytes auto");
}

// What other modules wrote is refused, with the reason.
TEST_P(BloomReplies, DataOfOtherModules) {
  const std::string moving =
      ": another module made these bytes. Its filters cannot be converted, because the items are "
      "not in them. Add the items again: see 'Moving in' in docs/module.md";
  run({
      {"BF.LOAD b", "-ERR wrong number of arguments for 'bf.load' command"},
      {"BF.LOAD b bytes", "-ERR BF.LOAD is not possible" + moving},
      {"BF.LOADCHUNK b 1 \"\\x00\\x00\\x01\"", "-ERR received bad data" + moving},
      {"BF.INSERT b TIGHTENING 0.5 ITEMS a",
       "-ERR TIGHTENING is for the files of valkey-bloom: [...]"},
      {"BF.INSERT b SEED 0123456789abcdef0123456789abcdef ITEMS a",
       "-ERR SEED is for the files of valkey-bloom: [...]"},
      {"DBSIZE", "0"},
      {"BF.ADD b a", "1", "#t"},
      {"BF.LOADCHUNK b 2 y", "-ERR received bad data" + moving},
  });
}

TEST_P(BloomReplies, DumpAndLoadErrors) {
  run({
      {"BF.SCANDUMP b", "-ERR wrong number of arguments for 'bf.scandump' command"},
      {"BF.SCANDUMP b x", "-Second argument must be numeric"},
      {"BF.SCANDUMP b 0", "-ERR not found"},
      {"BF.LOADCHUNK b 1", "-ERR wrong number of arguments for 'bf.loadchunk' command"},
      {"BF.LOADCHUNK b x y", "-ERR Second argument must be numeric"},
      {"BF.LOADCHUNK b 1 MBHy", "-ERR received bad data"},
      {"BF.LOADCHUNK b 1 \"\"", "-ERR received bad data: [...]"},
      {"BF.LOADCHUNK b 2 y", "-ERR not found"},
      {"BF.ADD b a", "1", "#t"},
      {"BF.LOADCHUNK b 1 y", "-ERR received bad data"},
      {"BF.LOADCHUNK b 2 MBPy", "-ERR received bad data"},
      {"BF.SCANDUMP b 9223372036854775807", "[0, \"\"]"},
      {"BF.SCANDUMP b -1", "[0, \"\"]"},
  });
}

// A piece that was made for no such link, or for a larger one, is refused as by RedisBloom.
TEST_P(BloomReplies, PiecesThatFitNowhere) {
  constexpr std::size_t kLink = 16, kFirst = 28;  // docs/formats/module_bloom_v1.md
  Talk talk(server(), GetParam());
  talk("FLUSHALL");
  talk("BF.ADD b a");
  const std::string header = talk.call({"BF.SCANDUMP", "b", "0"}).parts[1].text;
  const std::string piece = talk.call({"BF.SCANDUMP", "b", "1"}).parts[1].text;
  ASSERT_EQ(talk.call({"BF.LOADCHUNK", "copy", "1", header}).shown(), "+OK");
  const Digests before = digests(talk);
  const auto load = [&](const std::string& chunk) {
    return talk.call({"BF.LOADCHUNK", "copy", "2", chunk}).shown();
  };
  EXPECT_EQ(load(with_number(piece, kLink, 4, 0)), "-ERR invalid offset - no link found");
  EXPECT_EQ(load(with_number(piece, kLink, 4, 256)), "-ERR invalid offset - no link found");
  // A filter of 1.5^253 items is impossible.
  EXPECT_EQ(load(with_number(piece, kLink, 4, 255)), "-ERR invalid offset - no link found");
  EXPECT_EQ(load(with_number(piece, kFirst, 8, 1)),
            "-ERR invalid chunk - Too big for current filter");
  EXPECT_EQ(load(with_number(piece, kFirst, 8, ~0ull)),
            "-ERR invalid chunk - Too big for current filter");
  constexpr std::size_t kCapacity = 40;
  EXPECT_EQ(
      talk.call({"BF.LOADCHUNK", "new", "1", with_number(header, kCapacity, 8, ~0ull)}).shown(),
      "-ERR received bad data");
  expect_equal(digests(talk), before);
  EXPECT_EQ(load(piece), "+OK");
  EXPECT_EQ(talk("BF.CARD copy"), "1");
}

TEST_P(BloomReplies, Merge) {
  constexpr std::string_view kCannot =
      "-ERR filters merge only if they have the same error rate, capacity, expansion and secret, "
      "as those that LIKE, COPY and MERGE make";
  run({
      {"BF.MERGE b", "-ERR wrong number of arguments for 'bf.merge' command"},
      {"BF.MERGE b none", "-ERR not found"},
      {"BF.MADD x 1 2 3", "[1, 1, 1]", "[#t, #t, #t]"},
      {"BF.LIKE y x", "+OK"},
      {"BF.MADD y 3 4", "[1, 1]", "[#t, #t]"},
      {"BF.MERGE b x y", "+OK"},
      {"BF.MEXISTS b 1 2 3 4 5", "[1, 1, 1, 1, 0]", "[#t, #t, #t, #t, #f]"},
      {"BF.MERGE b b", "+OK"},
      {"BF.MERGE x y none", "-ERR not found"},
      {"BF.MEXISTS x 4", "[0]", "[#f]"},
      {"BF.RESERVE other 0.1 100", "+OK"},
      {"BF.MERGE x other", kCannot},
      {"BF.MERGE x y other", kCannot},
      {"BF.RESERVE stranger 0.01 100", "+OK"},  // the same goal with another secret
      {"BF.MERGE x stranger", kCannot},
      {"BF.MEXISTS x 4", "[0]", "[#f]"},
      {"BF.ADD b 6", "1", "#t"},
      {"BF.MEXISTS b 1 6", "[1, 1]", "[#t, #t]"},
  });
}

TEST_P(BloomReplies, Like) {
  run({
      {"BF.LIKE b", "-ERR wrong number of arguments for 'bf.like' command"},
      {"BF.LIKE b x y", "-ERR wrong number of arguments for 'bf.like' command"},
      {"BF.LIKE b none", "-ERR not found"},
      {"BF.LIKE b b", "-ERR not found"},
      {"SET s text", "+OK"},
      {"BF.LIKE b s", "-WRONGTYPE [...]"},
      {"CF.ADD cuckoo a", "1", "#t"},
      {"BF.LIKE b cuckoo", "-WRONGTYPE [...]"},
      {"BF.RESERVE x 0.001 77 EXPANSION 4", "+OK"},
      {"BF.ADD x a", "1", "#t"},
      {"BF.LIKE s x", "-WRONGTYPE [...]"},
      {"BF.LIKE x x", "-ERR item exists"},
      {"BF.LIKE b x", "+OK"},
      {"BF.LIKE b x", "-ERR item exists"},
      {"BF.EXISTS b a", "0", "#f"},
      {"BF.INFO b", "[+Capacity, 77, [...]+Expansion rate, 4]",
       "{+Capacity: 77, [...]+Expansion rate: 4}"},
      {"BF.ADD b c", "1", "#t"},
      {"BF.MERGE b x", "+OK"},
      {"BF.MEXISTS b a c", "[1, 1]", "[#t, #t]"},
      {"BF.RESERVE fixed 0.01 10 NONSCALING", "+OK"},
      {"BF.LIKE also fixed", "+OK"},
      {"BF.INFO also", "[[...]+Expansion rate, nil]", "{[...]+Expansion rate: null}"},
  });
}

// The position of a chunk is that of RedisBloom's clients.
TEST_P(BloomReplies, ADumpIsLoadedElsewhere) {
  Talk talk(server(), GetParam());
  talk("FLUSHALL");
  talk("BF.RESERVE b 0.001 100");
  Words add = {"BF.MADD", "b"};
  for (int i = 0; i < 5000; ++i) add.push_back(std::to_string(i));
  ASSERT_EQ(talk.call(add).parts.size(), 5000u);
  std::string iterator = "0";
  int chunks = 0;
  while (true) {
    const Answer chunk = talk.call({"BF.SCANDUMP", "b", iterator});
    ASSERT_EQ(chunk.parts.size(), 2u);
    iterator = chunk.parts[0].text;
    if (iterator == "0") break;
    if (++chunks == 1) {
      EXPECT_EQ(iterator, "1");
    }
    ASSERT_EQ(talk.call({"BF.LOADCHUNK", "copy", iterator, chunk.parts[1].text}).shown(), "+OK");
  }
  EXPECT_GT(chunks, 1);
  EXPECT_EQ(talk("BF.CARD copy"), talk("BF.CARD b"));
  add[0] = "BF.MEXISTS";
  add[1] = "copy";
  for (const Answer& there : talk.call(add).parts) {
    EXPECT_EQ(there.shown(), GetParam() == 3 ? "#t" : "1");
  }
}

}  // namespace
}  // namespace semel
