// StoreOptions: options that several subcommands share, for the records of a directory and their
// digests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/directory.h"
#include "cli/options.h"
#include "semel/core/clock.h"
#include "semel/store/key_range.h"
#include "semel/sync/sync.h"

namespace semel::cli {

struct RangeOptions {
  std::optional<std::string> first;
  std::optional<std::string> end;
  std::optional<std::string> prefix;

  // Returns the range in which all given limits hold; nullopt if no key can be in it.
  std::optional<KeyRange> range() const;
};
std::vector<Option> options_of(RangeOptions& to);
inline constexpr const char* kEmptyRange =
    "no key is in the range; allowed: --first, --end and --prefix that leave some";

// Returns the range of all keys that begin with this.
KeyRange keys_with(const std::string& prefix);

struct IndexOptions {
  std::optional<std::string> key_file;
  std::uint64_t burst_bytes = 4096;
  std::uint64_t frame_bytes = SyncLimits{}.frame_bytes;
  bool scrub = false;
};
std::vector<Option> options_of(IndexOptions& to);

inline constexpr const char* kDefaultColumnFamily = "default";
Option column_family_option(std::string& to);

// The option for how long the other end of a pipe may be silent.
Option timeout_option(TimeMs& to);
inline constexpr TimeMs kDefaultTimeoutMs = 60'000;

// The options for the parts of a directory that are outside of it. `whose` names it in the help.
std::vector<Option> options_of(DirectoryPlaces& to, const std::string& whose = "");

Value directory_value(std::string placeholder, std::string& to);
Value directories_value(std::string placeholder, std::vector<std::string>& to);

// Appends options to the end of `to`.
void append(std::vector<Option>& to, std::vector<Option> more);

}  // namespace semel::cli
