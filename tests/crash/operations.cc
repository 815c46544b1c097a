#include "tests/crash/operations.h"

#include <algorithm>

#include "semel/core/internal/random.h"

namespace semel::crash {
namespace {

// Few enough keys that most are met again, and of such sizes that containers burst and join.
constexpr std::uint64_t kKeys = 5000;
constexpr std::uint64_t kMostValue = 300;
constexpr std::uint64_t kMostBatch = 40;
constexpr std::uint64_t kWidestRange = 50;

std::string numbered_key(std::uint64_t number) {
  std::string key = std::to_string(100'000 + number).insert(0, "key/");
  return number % 7 == 0 ? key + "/below" : key;
}

Operation::Change some_change(Random& random) {
  Operation::Change change{numbered_key(random.below(kKeys)), std::nullopt};
  if (random.below(5) != 0) {
    change.value.emplace(random.below(kMostValue), static_cast<char>('a' + random.below(26)));
  }
  return change;
}

}  // namespace

Operation operation(std::uint64_t seed, std::uint64_t number) {
  Random random(seed ^ number * 0x9e3779b97f4a7c15);
  Operation operation;
  const std::uint64_t draw = random.below(100);
  if (draw < 80) {
    const std::uint64_t size = draw < 60 ? 1 : 1 + random.below(kMostBatch);
    for (std::uint64_t n = 0; n < size; ++n) operation.changes.push_back(some_change(random));
  } else if (draw < 84) {
    operation.kind = Operation::Kind::remove_range;
    const std::uint64_t first = random.below(kKeys);
    operation.range = {numbered_key(first), numbered_key(first + random.below(kWidestRange))};
  } else if (draw < 91) {
    operation.kind = Operation::Kind::view;
  } else if (draw < 97) {
    operation.kind = Operation::Kind::checkpoint;
  } else if (draw < 99) {
    operation.kind = Operation::Kind::flush;
  } else {
    operation.kind = Operation::Kind::compact;
  }
  return operation;
}

void carry_out(const Operation& operation, Model& model) {
  if (operation.kind == Operation::Kind::remove_range) {
    std::erase_if(model,
                  [&](const auto& record) { return operation.range.contains(record.first); });
  }
  for (const Operation::Change& change : operation.changes) {
    if (change.value) {
      model[change.key] = *change.value;
    } else {
      model.erase(change.key);
    }
  }
}

Result<void> carry_out(const Operation& operation, OrderedStore& store) {
  if (operation.kind == Operation::Kind::remove_range) return store.remove_range(operation.range);
  std::vector<RecordWrite> writes;
  for (const Operation::Change& change : operation.changes) {
    writes.push_back({change.key, change.value});
  }
  return store.write(writes);
}

void join_in(const Operation& operation, Model& model) {
  for (const Operation::Change& change : operation.changes) {
    if (!change.value) continue;
    std::string& value = model[change.key];
    value = std::max(value, *change.value);
  }
}

Result<void> join_in(const Operation& operation, OrderedStore& store) {
  Model joined;
  join_in(operation, joined);
  std::vector<std::string_view> keys;
  std::vector<std::string_view> values;
  for (const auto& [key, value] : joined) {
    keys.push_back(key);
    values.push_back(value);
  }
  return store.update(keys, [&](std::size_t index, std::optional<std::string_view> now) {
    return std::optional<std::string>(now ? std::max(*now, values[index]) : values[index]);
  });
}

}  // namespace semel::crash
