#include "module/host/listeners.h"

#include <chrono>
#include <initializer_list>

#include "module/host/api.h"
#include "module/host/census.h"
#include "module/host/command.h"
#include "module/host/migration.h"
#include "module/host/type.h"

namespace semel::host {
namespace {

constinit bool listening = true;

// Returns true if one of the fields is not 0, or if the server does not have it.
bool field_is_set(api::Ctx* ctx, const char* section, std::initializer_list<const char*> fields) {
  api::ServerInfo* const info = api::GetServerInfo(ctx, section);
  bool set = false;
  for (const char* const field : fields) {
    int error = api::kOk;
    const unsigned long long value = api::ServerInfoGetFieldUnsigned(info, field, &error);
    set = set || error != api::kOk || value != 0;
  }
  api::FreeServerInfo(ctx, info);
  return set;
}

void look(api::Ctx* ctx) {
  const bool replica = (api::GetContextFlags(ctx) & api::kFlagReplica) != 0;
  listening = replica || exporting() ||
              field_is_set(ctx, "replication", {"connected_slaves", "repl_backlog_active"}) ||
              field_is_set(ctx, "persistence", {"aof_enabled", "loading"});
}

void begin(api::Ctx* /*ctx*/, api::Event /*event*/, std::uint64_t /*subevent*/, void* /*data*/) {
  listen();
}

// A module has one function for an event. This one serves two purposes.
void load(api::Ctx* ctx, api::Event event, std::uint64_t subevent, void* data) {
  begin(ctx, event, subevent, data);
  if (subevent == api::kLoadingEnded) loading_ended(ctx);
}

// The server calls this ten times a second by default. This function, too, serves two purposes.
void tick(api::Ctx* ctx, api::Event /*event*/, std::uint64_t /*subevent*/, void* /*data*/) {
  forget_unlinked();
  census.catch_up(std::chrono::microseconds(500));
  constexpr unsigned kTicks = 10;
  static unsigned ticks = 0;
  if (listening && ++ticks % kTicks == 0) look(ctx);
}

}  // namespace

bool someone_listens() { return listening; }

void listen() { listening = true; }

bool watch_listeners(api::Ctx* ctx) {
  for (const std::uint64_t event : {api::kEventRole, api::kEventReplica, api::kEventForkChild}) {
    if (api::SubscribeToServerEvent(ctx, {event}, begin) != api::kOk) return false;
  }
  return api::SubscribeToServerEvent(ctx, {api::kEventLoading}, load) == api::kOk &&
         api::SubscribeToServerEvent(ctx, {api::kEventCron}, tick) == api::kOk;
}

}  // namespace semel::host
