// The server's types by name only, for headers that leave module/host: those never include api.h.
#pragma once

namespace semel::host::api {

struct Ctx;
struct Key;
struct String;

}  // namespace semel::host::api
