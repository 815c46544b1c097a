#include "module/host/migration.h"

#include <array>
#include <span>

#include "module/host/api.h"
#include "module/host/listeners.h"

namespace semel::host {
namespace {

// How many are under way.
constinit unsigned exports = 0;
constinit unsigned imports = 0;

enum class Change : std::uint8_t { none, import_begins, import_ends, export_begins, export_ends };

// In the order of the subevents. Imports of Valkey do not matter: they come by SEMEL.LOAD.
constexpr std::array kInValkey = {Change::none,        Change::export_begins, Change::none,
                                  Change::export_ends, Change::none,          Change::export_ends};
constexpr std::array kInRedis = {Change::import_begins, Change::import_ends, Change::import_ends,
                                 Change::export_begins, Change::export_ends, Change::export_ends};

// A module that was loaded later may hear of an end without a beginning.
void count_down(unsigned& count) {
  if (count > 0) --count;
}

void migrated(api::Ctx* /*ctx*/, api::Event event, std::uint64_t subevent, void* /*data*/) {
  const std::span<const Change> changes = event.id == api::kEventValkeySlots ? kInValkey : kInRedis;
  switch (subevent < changes.size() ? changes[subevent] : Change::none) {
    case Change::none:
      break;
    case Change::import_begins:
      ++imports;
      break;
    case Change::import_ends:
      count_down(imports);
      break;
    case Change::export_begins:
      ++exports;
      listen();
      break;
    case Change::export_ends:
      count_down(exports);
      break;
  }
}

}  // namespace

bool exporting() { return exports > 0; }

bool restores_slots() { return imports > 0; }

bool watch_migrations(api::Ctx* ctx) {
  const std::uint64_t event = api::is_valkey() ? api::kEventValkeySlots : api::kEventRedisSlots;
  return api::SubscribeToServerEvent(ctx, {event}, migrated) == api::kOk;
}

}  // namespace semel::host
