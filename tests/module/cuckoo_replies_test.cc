// The replies of CF.*: those of RedisBloom, or those of docs/commands.md where they differ.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/module/payload.h"
#include "tests/module/script.h"

namespace semel {
namespace {

class CuckooReplies : public Script {};
INSTANTIATE_TEST_SUITE_P(Protocol, CuckooReplies, ::testing::Values(2, 3), protocol_name);

TEST_P(CuckooReplies, Reserve) {
  run({
      {"CF.RESERVE c 1000", "+OK"},
      {"CF.RESERVE c 1000", "-ERR item exists"},
      {"cf.reserve d 1000 bucketsize 4 maxiterations 10 expansion 2", "+OK"},
      {"CF.RESERVE e 4 EXPANSION 0", "+OK"},
  });
}

TEST_P(CuckooReplies, ReserveErrors) {
  constexpr std::string_view kBucket =
      "-BUCKETSIZE: value must be an integer between 1 and 255, inclusive.";
  constexpr std::string_view kIterations =
      "-MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.";
  constexpr std::string_view kExpansion =
      "-EXPANSION: value must be an integer between 0 and 32768, inclusive.";
  run({
      {"CF.RESERVE c", "-ERR wrong number of arguments for 'cf.reserve' command"},
      {"CF.RESERVE c x", "-Bad capacity"},
      {"CF.RESERVE c 0", "-Bad capacity"},
      {"CF.RESERVE c -5", "-Bad capacity"},
      {"CF.RESERVE c 3", "-Capacity must be at least (BucketSize * 2)"},
      {"CF.RESERVE c 7 BUCKETSIZE 4", "-Capacity must be at least (BucketSize * 2)"},
      {"CF.RESERVE c 1000 BUCKETSIZE x", "-Couldn't parse BUCKETSIZE"},
      {"CF.RESERVE c 1000 BUCKETSIZE 0", kBucket},
      {"CF.RESERVE c 1000 BUCKETSIZE 256", kBucket},
      {"CF.RESERVE c 1000 MAXITERATIONS x", "-Couldn't parse MAXITERATIONS"},
      {"CF.RESERVE c 1000 MAXITERATIONS 0", kIterations},
      {"CF.RESERVE c 1000 MAXITERATIONS 65536", kIterations},
      {"CF.RESERVE c 1000 EXPANSION x", "-Couldn't parse EXPANSION"},
      {"CF.RESERVE c 1000 EXPANSION -1", kExpansion},
      {"CF.RESERVE c 1000 EXPANSION 32769", kExpansion},
      {"CF.RESERVE c 9223372036854775807",
       "-ERR the filter would take more memory than semel.max-value-bytes allows, [...] bytes"},
      {"CF.RESERVE c 1000 COLOUR red", "-ERR unknown option 'COLOUR'"},
      {"CF.RESERVE c 1000 TAG 1", "-ERR unknown option 'TAG'"},
      {"CF.RESERVE c 1000 ERROR 0.1", "-ERR unknown option 'ERROR'"},
      {"CF.RESERVE c 1000 EXPANSION 2 EXPANSION 2", "-ERR EXPANSION is given twice"},
      {"CF.RESERVE c 1000 EXPANSION", "-ERR EXPANSION needs a value"},
      {"CF.RESERVE c 1000 BUCKETSIZE", "-ERR BUCKETSIZE needs a value"},
      {"DBSIZE", "0"},
  });
}

TEST_P(CuckooReplies, AddCountAndDelete) {
  run({
      {"CF.ADD c a", "1", "#t"},
      {"CF.ADD c a", "1", "#t"},
      {"CF.ADDNX c a", "0", "#f"},
      {"CF.ADDNX c b", "1", "#t"},
      {"CF.COUNT c a", "2"},
      {"CF.COUNT c z", "0"},
      {"CF.EXISTS c a", "1", "#t"},
      {"CF.EXISTS c z", "0", "#f"},
      {"CF.MEXISTS c a z b", "[1, 0, 1]", "[#t, #f, #t]"},
      {"CF.DEL c a", "1", "#t"},
      {"CF.COUNT c a", "1"},
      {"CF.DEL c a", "1", "#t"},
      {"CF.DEL c a", "0", "#f"},
      {"CF.EXISTS c a", "0", "#f"},
      {"CF.INSERT c ITEMS x x y", "[1, 1, 1]", "[#t, #t, #t]"},
      {"CF.INSERTNX c ITEMS x w w", "[0, 1, 0]"},
      {"CF.INSERT d CAPACITY 64 items x", "[1]", "[#t]"},
      {"CF.INSERTNX e capacity 64 ITEMS x", "[1]"},
      {"CF.INSERT d NOCREATE ITEMS x", "[1]", "[#t]"},
      {"CF.INSERT d CAPACITY 9 NOCREATE ITEMS x", "[1]", "[#t]"},
  });
}

TEST_P(CuckooReplies, AddErrors) {
  run({
      {"CF.ADD c", "-ERR wrong number of arguments for 'cf.add' command"},
      {"CF.ADDNX c", "-ERR wrong number of arguments for 'cf.addnx' command"},
      {"CF.EXISTS c", "-ERR wrong number of arguments for 'cf.exists' command"},
      {"CF.MEXISTS c", "-ERR wrong number of arguments for 'cf.mexists' command"},
      {"CF.COUNT c", "-ERR wrong number of arguments for 'cf.count' command"},
      {"CF.DEL c", "-ERR wrong number of arguments for 'cf.del' command"},
      {"CF.DEL c a", "-Not found"},
      {"CF.INSERT c", "-ERR wrong number of arguments for 'cf.insert' command"},
      {"CF.INSERT c NOCREATE ITEMS", "-ERR wrong number of arguments for 'cf.insert' command"},
      {"CF.INSERT c NOCREATE ITEMS a", "-ERR not found"},
      {"CF.INSERT c CAPACITY 64 NOCREATE ITEMS a", "-ERR not found"},
      {"CF.INSERTNX c NOCREATE CAPACITY 64 ITEMS a", "-ERR not found"},
      {"CF.INSERT c NOCREATE NOCREATE ITEMS", "-ERR NOCREATE is given twice"},
      {"CF.INSERTNX c CAPACITY 9 CAPACITY 9 ITEMS a", "-ERR CAPACITY is given twice"},
      {"CF.INSERTNX c NOCREATE ITEMS a", "-ERR not found"},
      {"CF.INSERT c CAPACITY x ITEMS a", "-Bad capacity"},
      {"CF.INSERT c CAPACITY 0 ITEMS a", "-Bad capacity"},
      {"CF.INSERTNX c CAPACITY 3 ITEMS a", "-Capacity must be at least (BucketSize * 2)"},
      {"CF.INSERT c COLOUR red ITEMS a", "-Unknown argument received"},
      {"DBSIZE", "0"},
  });
}

TEST_P(CuckooReplies, ReadsOfNoFilter) {
  run({
      {"CF.EXISTS c a", "0", "#f"},
      {"CF.MEXISTS c a b", "[0, 0]", "[#f, #f]"},
      {"CF.COUNT c a", "0"},
      {"CF.INFO c", "-ERR not found"},
      {"CF.SCANDUMP c 0", "-ERR not found"},
      {"EXISTS c", "0"},
  });
}

TEST_P(CuckooReplies, AFullFilterRefuses) {
  std::string many = "CF.INSERT c ITEMS";
  std::string many_new = "CF.INSERTNX c ITEMS";
  for (int i = 0; i < 100; ++i) many += ' ' + std::to_string(i);
  for (int i = 100; i < 105; ++i) many_new += ' ' + std::to_string(i);
  run({
      {"CONFIG SET semel.cf-error 1e-9", "+OK"},  // no false positive among the items
      {"CF.RESERVE c 16 EXPANSION 0", "+OK"},
      {"CONFIG SET semel.cf-error 0.001", "+OK"},
      {many, "[1, [...], -1, -1]", "[#t, [...], #f, #f]"},
      {many_new, "[-1, -1, -1, -1, -1]"},
      {"CF.ADD c new", "-Filter is full"},
      {"CF.ADDNX c new", "-Filter is full"},
      {"CF.ADDNX c 0", "0", "#f"},
  });
}

// At the limit for a key, CF.INSERT answers as for a filter that is full, and CF.ADD with an error
// that names the limit.
TEST_P(CuckooReplies, AtTheMemoryLimit) {
  std::string many = "CF.INSERT c ITEMS", many_new = "CF.INSERTNX c ITEMS";
  for (int i = 0; i < 3000; ++i) many += ' ' + std::to_string(i);
  for (int i = 3000; i < 3005; ++i) many_new += ' ' + std::to_string(i);
  const std::string limit =
      "-ERR the filter would take more memory than semel.max-value-bytes allows, 20000 bytes";
  run({
      {"CONFIG SET semel.cf-error 1e-9", "+OK"},  // no false positive among the items
      {"CONFIG SET semel.max-value-bytes 20000", "+OK"},
      {"CF.RESERVE c 500", "+OK"},
      {"CONFIG SET semel.cf-error 0.001", "+OK"},
      {many, "[1, [...], -1, -1]", "[#t, [...], #f, #f]"},
      {"CF.INFO c", "[[...]+Number of filters, 1, [...]]", "{[...]+Number of filters: 1, [...]}"},
      {"CF.COUNT c 0", "1"},
      {"CF.COUNT c 2999", "0"},
      {many_new, "[-1, -1, -1, -1, -1]"},
      {"CF.INSERTNX c ITEMS 0 new", "[0, -1]"},
      {"CF.ADD c new", limit},
      {"CF.ADDNX c new", limit},
      {"CF.ADDNX c 0", "0", "#f"},
      {"CONFIG SET semel.max-value-bytes auto", "+OK"},
      {"CF.INSERTNX c ITEMS 0 new", "[0, 1]"},
  });
}

// No part of a filter can have more than 2^46 bits. Copies of one item open a part for every few of
// them.
TEST_P(CuckooReplies, AFilterEndsWhereNoPartCanFollow) {
  std::string copies = "CF.INSERT c ITEMS";
  for (int i = 0; i < 2000; ++i) copies += " x";
  run({
      {"CONFIG SET semel.max-value-bytes 0", "+OK"},
      {"CF.RESERVE c 4", "+OK"},
      {copies, "[1, [...], -1, -1]", "[#t, [...], #f, #f]"},
      {"CF.ADD c x", "-Maximum expansions reached"},
      {"CF.ADDNX c x", "0", "#f"},
      {"CF.ADD c y", "1", "#t"},
      {"CONFIG SET semel.max-value-bytes auto", "+OK"},
  });
}

// A part is EXPANSION times as large as the last one. 1 counts as 2.
TEST_P(CuckooReplies, AFilterGrowsByItsExpansion) {
  Talk talk(server(), GetParam());
  for (const auto& [expansion, capacity] : std::map<int, int>{{1, 3000}, {2, 3000}, {3, 4000}}) {
    talk("FLUSHALL");
    talk("CF.RESERVE c 1000 EXPANSION " + std::to_string(expansion));
    Words add = {"CF.INSERT", "c", "ITEMS"};
    for (int i = 0; i < 2000; ++i) add.push_back(std::to_string(i));
    talk.call(add);
    const std::vector<Answer> fields = talk.call({"CF.INFO", "c", "ALL"}).parts;
    const auto name = std::find_if(fields.begin(), fields.end(),
                                   [](const Answer& field) { return field.text == "Capacity"; });
    ASSERT_NE(name, fields.end());
    EXPECT_EQ((name + 1)->integer(), capacity) << expansion;
  }
}

TEST_P(CuckooReplies, AKeyOfAnotherType) {
  constexpr std::string_view kWrongType =
      "-WRONGTYPE Operation against a key holding the wrong kind of value";
  run({
      {"SET s x", "+OK"},
      {"BF.ADD b a", "1", "#t"},
      {"CF.EXISTS s a", "0", "#f"},
      {"CF.EXISTS b a", "0", "#f"},
      {"CF.MEXISTS s a b", "[0, 0]", "[#f, #f]"},
      {"CF.COUNT s a", "0"},
      {"CF.DEL s a", "-Not found"},
      {"CF.RESERVE s 100", kWrongType},
      {"CF.ADD s a", kWrongType},
      {"CF.ADDNX b a", kWrongType},
      {"CF.INSERT s ITEMS a", kWrongType},
      {"CF.INSERTNX s ITEMS a", kWrongType},
      {"CF.INFO s", kWrongType},
      {"CF.SCANDUMP s 0", kWrongType},
      {"CF.LOADCHUNK s 1 x", kWrongType},
      {"CF.MERGE s s", kWrongType},
  });
}

TEST_P(CuckooReplies, Info) {
  const std::string known2 =
      "+Size, [...], +Number of buckets, [...], +Number of filters, 1, "
      "+Number of items inserted, 2, +Number of items deleted, 1, +Bucket size, 2, "
      "+Expansion rate, 1, +Max iterations, 20";
  const std::string known3 =
      "+Size: [...], +Number of buckets: [...], +Number of filters: 1, "
      "+Number of items inserted: 2, +Number of items deleted: 1, +Bucket size: 2, "
      "+Expansion rate: 1, +Max iterations: 20";
  const std::string own2 =
      "+Capacity, 1024, +Error rate, \"0.001\", +Error bound, [...], +Error rate now, [...], "
      "+Chains, 1";
  const std::string own3 =
      "+Capacity: 1024, +Error rate: ,0.001, +Error bound: ,[...], +Error rate now: ,[...], "
      "+Chains: 1";
  run({
      {"CF.INFO", "-ERR wrong number of arguments for 'cf.info' command"},
      {"CF.INFO c ALL ALL", "-ERR wrong number of arguments for 'cf.info' command"},
      {"CF.INFO c SIZE", "-ERR wrong number of arguments for 'cf.info' command"},
      {"CF.RESERVE empty 100", "+OK"},
      {"CF.INFO empty ALL", "[[...]+Error rate now, \"0\", +Chains, 1]",
       "{[...]+Error rate now: ,0, +Chains: 1}"},
      {"CF.INSERT c ITEMS a b c", "[1, 1, 1]", "[#t, #t, #t]"},
      {"CF.DEL c a", "1", "#t"},
      {"CF.INFO c", "[" + known2 + "]", "{" + known3 + "}"},
      {"CF.INFO c ALL", "[" + known2 + ", " + own2 + "]", "{" + known3 + ", " + own3 + "}"},
  });
}

TEST_P(CuckooReplies, DebugAndCompact) {
  run({
      {"CF.DEBUG", "-ERR wrong number of arguments for 'cf.debug' command"},
      {"CF.DEBUG c", "-ERR not found"},
      {"CF.COMPACT c", "-Cuckoo filter was not found"},
      {"CF.COMPACT", "-ERR wrong number of arguments for 'cf.compact' command"},
      {"CF.RESERVE c 1000 BUCKETSIZE 4 MAXITERATIONS 10 EXPANSION 2", "+OK"},
      {"CF.INSERT c ITEMS a b", "[1, 1]", "[#t, #t]"},
      {"CF.DEL c a", "1", "#t"},
      {"CF.DEBUG c",
       "\"bktsize:4 buckets:[...] items:1 deletes:1 filters:1 max_iterations:10 expansion:2\""},
      {"CF.COMPACT c", "+OK"},
      {"CF.EXISTS c b", "1", "#t"},
      {"SET s x", "+OK"},
      {"CF.DEBUG s", "-WRONGTYPE [...]"},
      {"CF.COMPACT s", "-Cuckoo filter was not found"},
  });
}

TEST_P(CuckooReplies, DumpAndLoadErrors) {
  run({
      {"CF.SCANDUMP c", "-ERR wrong number of arguments for 'cf.scandump' command"},
      {"CF.SCANDUMP c x", "-Invalid position"},
      {"CF.SCANDUMP c -1", "-Invalid position"},
      {"CF.LOADCHUNK c 1", "-ERR wrong number of arguments for 'cf.loadchunk' command"},
      {"CF.LOADCHUNK c x y", "-Invalid position"},
      {"CF.LOADCHUNK c 0 y", "-Invalid position"},
      {"CF.LOADCHUNK c 1 MCHy", "-Invalid header"},
      {"CF.LOADCHUNK c 1 y",
       "-Invalid header: another module made these bytes. Its filters cannot be converted[...]"},
      {"CF.LOADCHUNK c 2 y", "-ERR not found"},
      {"CF.ADD c a", "1", "#t"},
      {"CF.LOADCHUNK c 1 y", "-ERR item exists"},
      {"CF.LOADCHUNK c 2 MCPy", "-Couldn't load chunk!"},
      {"CF.LOADCHUNK c 2 y", "-Couldn't load chunk!: another module made these bytes[...]"},
      {"CF.SCANDUMP c 9223372036854775807", "[0, nil]", "[0, null]"},
  });
}

TEST_P(CuckooReplies, HeadersOfImpossibleFilters) {
  constexpr std::size_t kCapacity = 40, kBucketSize = 48;  // docs/formats/module_cuckoo_v1.md
  Talk talk(server(), GetParam());
  talk("FLUSHALL");
  talk("CF.ADD c a");
  const std::string header = talk.call({"CF.SCANDUMP", "c", "0"}).parts[1].text;
  const auto load = [&](const std::string& chunk) {
    return talk.call({"CF.LOADCHUNK", "new", "1", chunk}).shown();
  };
  EXPECT_EQ(load(with_number(header, kCapacity, 8, ~0ull)), "-Couldn't create filter!");
  EXPECT_EQ(load(with_number(header, kCapacity, 8, 0)), "-Couldn't create filter!");
  EXPECT_EQ(load(with_number(header, kBucketSize, 2, 0)), "-Couldn't create filter!");
  EXPECT_EQ(load(with_number(header, kBucketSize, 2, 256)), "-Couldn't create filter!");
  EXPECT_EQ(talk("EXISTS new"), "0");
  EXPECT_EQ(load(header), "+OK");
}

TEST_P(CuckooReplies, Merge) {
  constexpr std::string_view kCannot =
      "-ERR filters merge only if they have the same error rate, capacity, expansion and secret, "
      "as those that LIKE, COPY and MERGE make";
  run({
      {"CF.MERGE c", "-ERR wrong number of arguments for 'cf.merge' command"},
      {"CF.MERGE c none", "-ERR not found"},
      {"CF.INSERTNX x ITEMS 1 2 3", "[1, 1, 1]"},
      {"CF.LIKE y x", "+OK"},
      {"CF.INSERTNX y ITEMS 3 4", "[1, 1]"},
      {"CF.MERGE c x y", "+OK"},
      {"CF.MEXISTS c 1 2 3 4 5", "[1, 1, 1, 1, 0]", "[#t, #t, #t, #t, #f]"},
      {"CF.COUNT c 3", "2"},
      {"CF.MERGE c x y", "+OK"},
      {"CF.COUNT c 3", "2"},
      {"CF.DEL c 1", "1", "#t"},
      {"CF.EXISTS c 1", "0", "#f"},
      {"CF.RESERVE other 100", "+OK"},
      {"CF.MERGE x other", kCannot},
      {"CF.RESERVE stranger 1024", "+OK"},  // the same goal with another secret
      {"CF.MERGE x stranger", kCannot},
      {"CF.ADD c 6", "1", "#t"},
      {"CF.MEXISTS c 2 6", "[1, 1]", "[#t, #t]"},
  });
}

TEST_P(CuckooReplies, Like) {
  run({
      {"CF.LIKE c", "-ERR wrong number of arguments for 'cf.like' command"},
      {"CF.LIKE c none", "-ERR not found"},
      {"BF.ADD bloom a", "1", "#t"},
      {"CF.LIKE c bloom", "-WRONGTYPE [...]"},
      {"CF.RESERVE x 100 BUCKETSIZE 4 MAXITERATIONS 7 EXPANSION 3", "+OK"},
      {"CF.ADD x a", "1", "#t"},
      {"CF.LIKE bloom x", "-WRONGTYPE [...]"},
      {"CF.LIKE x x", "-ERR item exists"},
      {"CONFIG SET semel.cf-error 0.5", "+OK"},  // the new filter has the error of the source
      {"CF.LIKE c x", "+OK"},
      {"CONFIG SET semel.cf-error 0.001", "+OK"},
      {"CF.EXISTS c a", "0", "#f"},
      {"CF.INFO c ALL",
       "[[...]+Bucket size, 4, +Expansion rate, 3, +Max iterations, 7, +Capacity, 100, +Error "
       "rate, "
       "\"0.001\", [...]]",
       "{[...]+Bucket size: 4, +Expansion rate: 3, +Max iterations: 7, +Capacity: 100, +Error "
       "rate: "
       ",0.001, [...]}"},
      {"CF.ADD c b", "1", "#t"},
      {"CF.MERGE c x", "+OK"},
      {"CF.MEXISTS c a b", "[1, 1]", "[#t, #t]"},
  });
}

TEST_P(CuckooReplies, ADumpIsLoadedElsewhere) {
  Talk talk(server(), GetParam());
  talk("FLUSHALL");
  talk("CF.RESERVE c 100");
  Words add = {"CF.INSERT", "c", "ITEMS"};
  for (int i = 0; i < 5000; ++i) add.push_back(std::to_string(i));
  ASSERT_EQ(talk.call(add).parts.size(), 5000u);
  ASSERT_FALSE(talk("CF.DEL c 0").starts_with('-'));
  std::string iterator = "0";
  int chunks = 0;
  while (true) {
    const Answer chunk = talk.call({"CF.SCANDUMP", "c", iterator});
    ASSERT_EQ(chunk.parts.size(), 2u);
    iterator = chunk.parts[0].text;
    if (iterator == "0") break;
    ++chunks;
    ASSERT_EQ(talk.call({"CF.LOADCHUNK", "copy", iterator, chunk.parts[1].text}).shown(), "+OK");
  }
  EXPECT_GT(chunks, 1);
  for (int i = 0; i < 5000; i += 97) {
    const std::string count = talk("CF.COUNT c " + std::to_string(i));
    EXPECT_EQ(talk("CF.COUNT copy " + std::to_string(i)), count);
  }
}

}  // namespace
}  // namespace semel
