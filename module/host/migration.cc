#include "module/host/migration.h"

#include <array>
#include <span>

#include "module/host/api.h"
#include "module/host/listeners.h"

namespace semel::host {
namespace {

constinit unsigned exports = 0;   // under way
constinit bool restores = false;  // there is at most one import

enum class Change : std::uint8_t { none, import_begins, import_ends, export_begins, export_ends };

// In the order of the subevents. Imports of Valkey do not matter: they come by SEMEL.LOAD.
constexpr std::array kInValkey = {Change::none,        Change::export_begins, Change::none,
                                  Change::export_ends, Change::none,          Change::export_ends};
constexpr std::array kInRedis = {Change::import_begins, Change::import_ends, Change::import_ends,
                                 Change::export_begins, Change::export_ends, Change::export_ends};

void migrated(api::Ctx* /*ctx*/, api::Event event, std::uint64_t subevent, void* /*data*/) {
  const std::span<const Change> changes = event.id == api::kEventValkeySlots ? kInValkey : kInRedis;
  switch (subevent < changes.size() ? changes[subevent] : Change::none) {
    case Change::none:
      break;
    case Change::import_begins:
      restores = true;
      break;
    case Change::import_ends:
      restores = false;
      break;
    case Change::export_begins:
      ++exports;
      listen();
      break;
    case Change::export_ends:
      if (exports > 0) --exports;  // a module that was loaded later hears of the end alone
      break;
  }
}

}  // namespace

bool exporting() { return exports > 0; }

bool restores_slots() { return restores; }

bool watch_migrations(api::Ctx* ctx) {
  const std::uint64_t event = api::is_valkey() ? api::kEventValkeySlots : api::kEventRedisSlots;
  return api::SubscribeToServerEvent(ctx, {event}, migrated) == api::kOk;
}

}  // namespace semel::host
