#include "module/host/value_limit.h"

#include <algorithm>
#include <string_view>

#include "module/host/api.h"
#include "module/host/machine_memory.h"

namespace semel::host {
namespace {

constinit std::optional<std::uint64_t> configured;
constinit std::uint64_t available = 0;  // maxmemory, or that of the machine if it is less
enum class Eviction : std::uint8_t { of_some, of_any, of_any_told };
constinit auto eviction = Eviction::of_some;

void look(api::Ctx* ctx) {
  static const std::uint64_t kMachine = machine_memory();
  api::ServerInfo* const info = api::GetServerInfo(ctx, "memory");
  int error = api::kOk;
  const std::uint64_t most = api::ServerInfoGetFieldUnsigned(info, "maxmemory", &error);
  const char* const policy = api::ServerInfoGetFieldC(info, "maxmemory_policy");
  const bool of_any = error == api::kOk && most != 0 && policy != nullptr &&
                      std::string_view(policy).starts_with("allkeys");
  if (!of_any) {
    eviction = Eviction::of_some;
  } else if (eviction == Eviction::of_some) {
    eviction = Eviction::of_any;
  }
  api::FreeServerInfo(ctx, info);
  available = error != api::kOk || most == 0 ? kMachine : std::min(most, kMachine);
}

void changed(api::Ctx* ctx, api::Event /*event*/, std::uint64_t /*subevent*/, void* /*data*/) {
  look(ctx);
}

}  // namespace

std::uint64_t value_limit() {
  return configured ? *configured : std::max(kLeastValueLimit, available / 2);
}

bool eviction_is_news() {
  if (eviction != Eviction::of_any) return false;
  eviction = Eviction::of_any_told;
  return true;
}

void set_value_limit(std::optional<std::uint64_t> bytes) { configured = bytes; }

bool watch_memory(api::Ctx* ctx) {
  look(ctx);
  return api::SubscribeToServerEvent(ctx, {api::kEventConfig}, changed) == api::kOk;
}

}  // namespace semel::host
