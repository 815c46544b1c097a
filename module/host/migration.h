// Tells whether slots are on their way to or from this server.
//
// CLUSTER MIGRATESLOTS of Valkey 9 and CLUSTER MIGRATION IMPORT of Redis 8.4 send a snapshot of the
// keys and then the stream of effects, while clients go on writing to the source. Both servers
// report the beginning and the end. The classic migration, key by key with MIGRATE, needs nothing
// of this.
//
// Threads   The thread that runs commands.
#pragma once

#include "module/host/handles.h"

namespace semel::host {

// Returns true while another server receives effects for slots that leave this one.
bool exporting();
// Returns true while this server receives slots by RESTORE, as Redis does.
bool restores_slots();

// Called when the module is loaded. Returns false if the server has no such migration.
bool watch_migrations(api::Ctx* ctx);

}  // namespace semel::host
