// The steps that the clients of a table send until its process is killed. Step n of a client is a
// function of n and the seed, so that the process that killed it knows what was sent.
//
// A client sends one step after the other, and sends a step again until it is answered. It has
// counters of its own, which it also resets and removes, and adds to some that all clients share.
// Every step that adds changes a counter of its own, so that the values tell whether it counted.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "semel/tally/store/tally_directory.h"

namespace semel::crash {

inline constexpr std::uint64_t kClients = 4;

struct Step {
  enum class Kind : std::uint8_t { add, reset, remove };
  struct Addition {
    std::string counter;
    std::int64_t delta;
    tally::OperationId id;
  };

  Kind kind = Kind::add;
  std::vector<Addition> additions;     // of Kind::add: all or nothing
  std::vector<Addition> again;         // the same, of the step before: sent with them, as retries
  std::string counter;                 // of the others
  tally::OperationId id;               // the same
  tally::TallyStore::Values values{};  // whether it asks for them
};

Step step(std::uint64_t seed, std::uint64_t client, std::uint64_t number);

// The prefix of the counters that only this client changes.
std::string own_prefix(std::uint64_t client);

// Every counter that exists.
using Values = std::map<std::string, std::int64_t>;
void carry_out(const Step& step, Values& values);
Values values_in(const tally::TallyStore& table);

enum class Sent : std::uint8_t { counted, known, wrong };
// Sends a step: `counted` if all of it was new, `known` if all had been counted before; `wrong` for
// an answer that is neither, or if a retry of the step before was not told from new ones.
Result<Sent> send(const Step& step, tally::TallyStore& table, TimeMs now_ms);

// Returns the settings of a table for each durability; together they have every recogniser.
tally::TallyStore::Settings tally_settings(tally::Durability durability);

}  // namespace semel::crash
