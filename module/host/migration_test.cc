// Migration: what the events of each server mean, and what they never mean in another server.
#include "module/host/migration.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "module/host/api.h"
#include "module/host/listeners.h"

namespace semel::host {
namespace {

// A server that has every function, and those of Valkey if it is one.
struct Server {
  int (*get_api)(const char* name, void* function);
};

template <bool kIsValkey>
int get_api(const char* name, void* function) {
  if (!kIsValkey && std::string_view(name).starts_with("ValkeyModule_")) return api::kErr;
  void* const anything = function;
  std::memcpy(function, &anything, sizeof(anything));
  return api::kOk;
}

api::EventFn told = nullptr;
std::uint64_t event = 0;

// Loads the module into a server.
void load(bool is_valkey) {
  Server server = {is_valkey ? get_api<true> : get_api<false>};
  ASSERT_TRUE(api::resolve(reinterpret_cast<api::Ctx*>(&server)));
  ASSERT_EQ(api::is_valkey(), is_valkey);
  api::SubscribeToServerEvent = [](api::Ctx* /*ctx*/, api::Event to, api::EventFn function) {
    told = function;
    event = to.id;
    return api::kOk;
  };
  ASSERT_TRUE(watch_migrations(nullptr));
}

void tell(std::uint64_t subevent) { told(nullptr, {event}, subevent, nullptr); }

TEST(Migration, FollowsTheEventsOfValkey) {
  load(true);
  EXPECT_EQ(event, 19u);
  for (const std::uint64_t end : {3u, 5u}) {  // aborted, completed
    tell(1);
    EXPECT_TRUE(exporting());
    EXPECT_TRUE(someone_listens());
    tell(1);
    tell(end);
    EXPECT_TRUE(exporting());
    tell(end);
    EXPECT_FALSE(exporting());
    tell(end);  // of one that began before the module was loaded
    EXPECT_FALSE(exporting());
  }
  for (const std::uint64_t of_import : {0u, 2u, 4u, 6u, 99u}) {
    tell(of_import);
    EXPECT_FALSE(exporting());
    EXPECT_FALSE(restores_slots());
  }
}

TEST(Migration, FollowsTheEventsOfRedis) {
  load(false);
  EXPECT_EQ(event, 18u);
  for (const std::uint64_t end : {1u, 2u}) {  // failed, completed
    tell(0);
    tell(0);  // it tries again
    EXPECT_TRUE(restores_slots());
    EXPECT_FALSE(exporting());
    tell(end);
    EXPECT_FALSE(restores_slots());
  }
  for (const std::uint64_t end : {4u, 5u}) {
    tell(3);
    EXPECT_TRUE(exporting());
    EXPECT_FALSE(restores_slots());
    tell(6);  // a module may send something first
    EXPECT_TRUE(exporting());
    tell(end);
    EXPECT_FALSE(exporting());
  }
}

// Bit 25 says in Redis 8 that clients may use DEBUG.
TEST(Migration, ABitOfAnotherServerMeansNothing) {
  constexpr int kBit = 1 << 25;
  load(false);
  EXPECT_FALSE(api::is_replicated(kBit));
  EXPECT_FALSE(api::is_slot_import(kBit));
  EXPECT_TRUE(api::is_replicated(api::kFlagReplicated));
  load(true);
  EXPECT_TRUE(api::is_replicated(kBit));
  EXPECT_TRUE(api::is_slot_import(kBit));
  EXPECT_FALSE(api::is_replicated(api::kFlagLoading | api::kFlagReplica));
}

}  // namespace
}  // namespace semel::host
