// Whether anybody hears what commands did: replicas, or an AOF file.
//
// An effect costs as much as the command itself: its arguments are copied, and its name is looked up.
// Where nobody listens that is for nothing. The server does not say so directly; but nobody begins to
// listen without one of these: a fork (a full synchronisation, an AOF rewrite), the loading of a file
// (after which replicas may go on where they were), a change of role. From then on effects are sent,
// until the server's own figures say that there are no replicas, no backlog and no AOF file.
//
// If this were ever wrong, replicas would get the command itself in place of its effect: they would
// count by their own clocks, and miss nothing.
#pragma once

#include "module/host/api.h"

namespace semel::host {

bool someone_listens();

// False if the server does not tell its events. Called when the module is loaded.
bool watch_listeners(api::Ctx* ctx);

}  // namespace semel::host
