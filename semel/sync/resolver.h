// Resolver: what becomes of a record that two stores do not share.
//
// Rules     join         both stores get the join of both values; a key that one lacks, it gets.
//           newest       the same, with the value of the later time; of equal times the greater.
//           source       the destination gets the value of the source; with `remove_extra` it also
//                        loses what the source does not have.
//           destination  the destination gets what it lacks, and keeps its own values.
//           callback     both stores get what the function says; nullopt removes.
// Agreement  join and newest are decided at both ends, each by itself: the functions must be the
//           same there, commutative, associative and idempotent. Then the order and the number of
//           times in which records arrive, and writes meanwhile, do not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace semel {

enum class Rule : std::uint8_t { join = 0, newest = 1, source = 2, destination = 3, callback = 4 };

// Who of the two ends is the source. Of no matter to join and newest.
enum class Role : std::uint8_t { initiator_is_source = 0, responder_is_source = 1 };

struct Resolver {
  using Join =
      std::function<std::string(std::string_view key, std::string_view a, std::string_view b)>;
  using TimeOf = std::function<std::uint64_t(std::string_view key, std::string_view value)>;
  using Callback = std::function<std::optional<std::string>(
      std::string_view key, std::optional<std::string_view> source,
      std::optional<std::string_view> destination)>;

  Rule rule = Rule::join;
  Role role = Role::initiator_is_source;
  bool remove_extra = false;  // of Rule::source alone
  Join join = greater;
  TimeOf time_of = leading_time;
  Callback callback = nullptr;

  // A join of any values: the greater in the order of their bytes.
  static std::string greater(std::string_view key, std::string_view a, std::string_view b);
  // A time in milliseconds in the first eight bytes, the highest first; 0 if there are fewer.
  static std::uint64_t leading_time(std::string_view key, std::string_view value);

  // Of two values of one key under join or newest.
  std::string merged(std::string_view key, std::string_view a, std::string_view b) const;
};

}  // namespace semel
