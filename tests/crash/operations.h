// The operations of a process on its store until it is killed. Operation n is a function of n and
// the seed, so that the process that killed it knows what it did.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "semel/store/key_range.h"
#include "semel/store/ordered_store.h"

namespace semel::crash {

using Model = std::map<std::string, std::string>;

struct Operation {
  enum class Kind : std::uint8_t { write, remove_range, view, checkpoint, flush, compact };
  struct Change {
    std::string key;
    std::optional<std::string> value;
  };

  Kind kind = Kind::write;
  std::vector<Change> changes;  // of Kind::write: all or nothing
  KeyRange range;               // of Kind::remove_range
};

Operation operation(std::uint64_t seed, std::uint64_t number);

// The records after it.
void carry_out(const Operation& operation, Model& model);
// Only of what changes records.
Result<void> carry_out(const Operation& operation, OrderedStore& store);

// The values it writes, joined with those that are there: the greater stays. Removals are left out.
void join_in(const Operation& operation, Model& model);
Result<void> join_in(const Operation& operation, OrderedStore& store);

}  // namespace semel::crash
