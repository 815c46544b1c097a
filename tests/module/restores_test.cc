// Filters of several servers merge after one server has gone back in time: to an older RDB file, to
// a replica that lags, or to an AOF file that lost its end. No item is lost, and no merge is
// refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/module/module_server.h"
#include "tests/module/replicas.h"

namespace semel {
namespace {

void add(const RedisServer& server, const std::string& name, int first, int last) {
  Talk talk(server);
  for (int i = first; i < last; ++i) {
    ASSERT_EQ(talk("CF.ADD f " + name + std::to_string(i)), "1");
  }
}

int held(const RedisServer& server, const std::string& name, int first, int last) {
  Talk talk(server);
  int found = 0;
  for (int i = first; i < last; ++i) {
    found += talk("CF.EXISTS f " + name + std::to_string(i)) == "1" ? 1 : 0;
  }
  return found;
}

// Copies the filter of a server to another one, as a second key, and merges it there.
void bring(const RedisServer& from, const RedisServer& to) {
  Talk source(from), destination(to);
  ASSERT_EQ(destination("DEL came").substr(0, 1) != "-", true);
  for (std::string at = "0";;) {
    const Answer chunk = source.call({"CF.SCANDUMP", "f", at});
    ASSERT_EQ(chunk.parts.size(), 2u) << chunk.shown();
    at = chunk.parts[0].text;
    if (at == "0") break;
    ASSERT_EQ(destination.call({"CF.LOADCHUNK", "came", at, chunk.parts[1].text}).shown(), "+OK");
  }
  ASSERT_EQ(destination("CF.MERGE f came"), "+OK");
}

void exchange(const RedisServer& a, const RedisServer& b) {
  ASSERT_NO_FATAL_FAILURE(bring(a, b));
  ASSERT_NO_FATAL_FAILURE(bring(b, a));
  ASSERT_NO_FATAL_FAILURE(bring(a, b));
}

void expect_same_items(const RedisServer& a, const RedisServer& b, std::int64_t items) {
  for (const RedisServer* const server : {&a, &b}) {
    Talk talk(*server);
    const Answer info = talk.call({"CF.INFO", "f"});
    ASSERT_EQ(info.parts.size(), 16u) << info.shown();
    EXPECT_EQ(info.parts[7].integer(), items) << info.shown();
  }
}

TEST(Restores, ToAnOlderRdbFileLoseNothing) {
  const RedisServer a(with_module());
  RedisServer b(with_module({"--save", "3600", "1000000"}));
  add(a, "a", 0, 10);
  ASSERT_NO_FATAL_FAILURE(bring(a, b));
  add(b, "b", 0, 10);
  Talk at_b(b);
  ASSERT_EQ(at_b("SAVE"), "+OK");
  const std::filesystem::path file = b.directory() / "dump.rdb", backup = b.directory() / "backup";
  std::filesystem::copy_file(file, backup);
  add(b, "b", 10, 20);
  ASSERT_NO_FATAL_FAILURE(exchange(a, b));
  ASSERT_EQ(held(a, "b", 0, 20), 20);

  b.kill();
  std::filesystem::copy_file(backup, file, std::filesystem::copy_options::overwrite_existing);
  b.start();
  add(b, "c", 0, 15);  // more than were lost
  ASSERT_NO_FATAL_FAILURE(exchange(a, b));
  for (const RedisServer* const server : {&a, static_cast<const RedisServer*>(&b)}) {
    EXPECT_EQ(held(*server, "a", 0, 10), 10);
    EXPECT_EQ(held(*server, "b", 0, 20), 20);
    EXPECT_EQ(held(*server, "c", 0, 15), 15);
  }
  expect_same_items(a, b, 45);
}

// The entries of the lost dots were removed, so they cannot contradict those of the new items.
TEST(Restores, ToAnOlderRdbFileLoseNothingWhereTheLostItemsWereRemoved) {
  const RedisServer a(with_module());
  RedisServer b(with_module({"--save", "3600", "1000000"}));
  add(a, "a", 0, 10);
  ASSERT_NO_FATAL_FAILURE(bring(a, b));
  add(b, "b", 0, 10);
  Talk at_a(a), at_b(b);
  ASSERT_EQ(at_b("SAVE"), "+OK");
  add(b, "b", 10, 20);
  ASSERT_NO_FATAL_FAILURE(exchange(a, b));
  for (int i = 10; i < 20; ++i) ASSERT_EQ(at_a("CF.DEL f b" + std::to_string(i)), "1");

  b.kill();  // no further save
  b.start();
  add(b, "c", 0, 10);  // as many as were lost
  ASSERT_NO_FATAL_FAILURE(exchange(a, b));
  for (const RedisServer* const server : {&a, static_cast<const RedisServer*>(&b)}) {
    EXPECT_EQ(held(*server, "b", 0, 10), 10);
    EXPECT_EQ(held(*server, "b", 10, 20), 0);
    EXPECT_EQ(held(*server, "c", 0, 10), 10);
  }
  expect_same_items(a, b, 30);
}

TEST(Restores, ByAReplicaThatLagsLoseNothing) {
  const RedisServer other(with_module());
  RedisServer primary(with_module({"--repl-diskless-sync-delay", "0"}));
  const RedisServer replica(with_module({"--repl-diskless-sync-delay", "0"}));
  add(other, "a", 0, 10);
  ASSERT_NO_FATAL_FAILURE(bring(other, primary));
  add(primary, "b", 0, 10);
  ASSERT_NO_FATAL_FAILURE(follow(replica, primary));
  add(primary, "b", 10, 20);
  ASSERT_NO_FATAL_FAILURE(expect_in_step(primary, replica));
  Talk at_replica(replica);
  ASSERT_EQ(at_replica("REPLICAOF NO ONE"), "+OK");
  add(primary, "b", 20, 30);  // the replica does not get these
  ASSERT_NO_FATAL_FAILURE(exchange(primary, other));
  primary.kill();

  add(replica, "c", 0, 15);
  ASSERT_NO_FATAL_FAILURE(exchange(replica, other));
  for (const RedisServer* const server : {&replica, &other}) {
    EXPECT_EQ(held(*server, "b", 0, 30), 30);
    EXPECT_EQ(held(*server, "c", 0, 15), 15);
  }
  expect_same_items(replica, other, 55);
  // From now on its own replicas have the same bytes.
  const RedisServer next(with_module());
  ASSERT_NO_FATAL_FAILURE(follow(next, replica));
  ASSERT_NO_FATAL_FAILURE(expect_in_step(replica, next));
  add(replica, "d", 0, 5);
  ASSERT_NO_FATAL_FAILURE(expect_in_step(replica, next));
  Talk from(replica), to(next);
  expect_equal(digests(to), digests(from));
  EXPECT_EQ(info(to, "semel", "semel_effects_failed"), 0);
}

TEST(Restores, ByAnAofFileThatLostItsEndLoseNothing) {
  const RedisServer a(with_module());
  RedisServer b(with_module({"--appendonly", "yes", "--appendfsync", "always"}));
  add(a, "a", 0, 10);
  ASSERT_NO_FATAL_FAILURE(bring(a, b));
  add(b, "b", 0, 20);
  ASSERT_NO_FATAL_FAILURE(bring(b, a));
  b.kill();
  for (const auto& file : std::filesystem::directory_iterator(b.directory() / "appendonlydir")) {
    if (file.path().extension() != ".aof" ||
        file.path().string().find("incr") == std::string::npos) {
      continue;
    }
    std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 500);
  }
  b.start();
  ASSERT_LT(held(b, "b", 0, 20), 20);
  add(b, "c", 0, 15);
  ASSERT_NO_FATAL_FAILURE(exchange(a, b));
  for (const RedisServer* const server : {&a, static_cast<const RedisServer*>(&b)}) {
    EXPECT_EQ(held(*server, "b", 0, 20), 20);
    EXPECT_EQ(held(*server, "c", 0, 15), 15);
  }
  expect_same_items(a, b, 45);
}

// Two servers restore one dump, and one makes a copy. All of them add.
TEST(Restores, OfOneDumpAtTwoServersLoseNothing) {
  const RedisServer a(with_module()), b(with_module());
  add(a, "a", 0, 10);
  Talk at_a(a), at_b(b);
  const std::string dump = at_a.call({"DUMP", "f"}).text;
  ASSERT_EQ(at_b.call({"RESTORE", "f", "0", dump}).shown(), "+OK");
  add(a, "b", 0, 10);
  add(b, "c", 0, 15);
  ASSERT_EQ(at_a("COPY f g"), "1");
  ASSERT_EQ(at_a("CF.ADD g d0"), "1");
  ASSERT_EQ(at_a("CF.MERGE f g"), "+OK");
  ASSERT_NO_FATAL_FAILURE(exchange(a, b));
  for (const RedisServer* const server : {&a, &b}) {
    EXPECT_EQ(held(*server, "a", 0, 10), 10);
    EXPECT_EQ(held(*server, "b", 0, 10), 10);
    EXPECT_EQ(held(*server, "c", 0, 15), 15);
    EXPECT_EQ(held(*server, "d", 0, 1), 1);
  }
  expect_same_items(a, b, 36);
  // Restore the dump in the same key, while the server runs.
  ASSERT_EQ(at_b.call({"RESTORE", "f", "0", dump, "REPLACE"}).shown(), "+OK");
  add(b, "e", 0, 12);
  ASSERT_NO_FATAL_FAILURE(exchange(a, b));
  expect_same_items(a, b, 48);
  EXPECT_EQ(held(b, "c", 0, 15), 15);
  EXPECT_EQ(held(a, "e", 0, 12), 12);
}

}  // namespace
}  // namespace semel
