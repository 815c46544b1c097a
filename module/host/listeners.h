// Tells whether anybody receives effects: replicas, an AOF file, or a server that slots move to.
//
// An effect costs as much as the command itself, because its arguments are copied and its name is
// looked up. That is wasted where nobody listens. The server does not say so directly, but nobody
// begins to listen without one of these events: a fork (a full synchronisation, an AOF rewrite),
// the loading of a file (after which replicas may continue where they were), a change of role, a
// slot that begins to move (module/host/migration.h). From then on effects are sent, until the
// server reports no replicas, no backlog and no AOF file, and no slot is on its way.
//
// If this were ever wrong, replicas would get the command itself in place of its effect. They would
// count by their own clocks, and miss nothing.
#pragma once

#include "module/host/handles.h"

namespace semel::host {

bool someone_listens();
// Somebody begins to listen.
void listen();

// Called when the module is loaded. Returns false if the server does not report its events.
bool watch_listeners(api::Ctx* ctx);

}  // namespace semel::host
