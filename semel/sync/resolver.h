// Resolver: decides what becomes of a record that two stores do not share.
//
// Contract  Rules:
//           join         both stores get the join of both values, or the record that they lack
//           newest       the same with the value of the later time; of equal times, the greater one
//           source       the destination gets the value of the source; with `remove_extra` it loses
//                        records that the source does not have
//           destination  the destination gets the records that it lacks, and keeps its own values
//           callback     both stores get what the function returns; nullopt removes the record
//           Under join and newest both ends decide, each by itself. So the functions must be the
//           same at both ends, and commutative, associative and idempotent. Then the order in which
//           records arrive, repetitions and concurrent writes do not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "semel/core/api.h"

namespace semel {

enum class SyncRule : std::uint8_t {
  join = 0,
  newest = 1,
  source = 2,
  destination = 3,
  callback = 4
};

// The end that is the source. It does not matter for join and newest.
enum class SyncRole : std::uint8_t { initiator_is_source = 0, responder_is_source = 1 };

struct SEMEL_API Resolver {
  using Join =
      std::function<std::string(std::string_view key, std::string_view a, std::string_view b)>;
  using TimeOf = std::function<std::uint64_t(std::string_view key, std::string_view value)>;
  using Callback = std::function<std::optional<std::string>(
      std::string_view key, std::optional<std::string_view> source,
      std::optional<std::string_view> destination)>;

  SyncRule rule = SyncRule::join;
  SyncRole role = SyncRole::initiator_is_source;
  bool remove_extra = false;  // only for SyncRule::source
  Join join = greater;
  TimeOf time_of = leading_time;
  Callback callback = nullptr;

  // A join for any values: returns the one that is greater in the order of its bytes.
  static std::string greater(std::string_view key, std::string_view a, std::string_view b);
  // Returns the time in milliseconds from the first eight bytes, the highest byte first, or 0 if
  // there are fewer.
  static std::uint64_t leading_time(std::string_view key, std::string_view value);

  // Returns the outcome for two values of one key under join or newest.
  std::string merged(std::string_view key, std::string_view a, std::string_view b) const;
};

}  // namespace semel
