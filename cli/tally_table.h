// TallyTable: the directory of a table that a subcommand was given, and how its ids are hashed.
//
// Contract  To write: a table that is not there is made, in the shape that the options ask for. A
//           table that is there keeps its shape; options that do not agree with it are an error
//           that names the first one.
//           To read: a table that is not there is an error. A table that another process has open
//           is read in its present state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "semel/hash/hasher.h"
#include "semel/tally/store/tally_directory.h"

namespace semel::cli {

// The options of a new table, as given on the command line.
struct ShapeOptions {
  bool exact = false;
  bool filter = false;
  std::optional<TimeMs> window_ms;
  std::optional<double> error;
  std::optional<std::uint64_t> capacity;
  std::optional<std::uint64_t> max_bytes;
  std::optional<OnFull> on_full;
  std::optional<std::string> key_file;
};
std::vector<Option> options_of(ShapeOptions& to);

struct DurabilityOptions {
  tally::Durability durability;
  std::optional<TimeMs> period_ms = {};
};
std::vector<Option> options_of(DurabilityOptions& to, const std::string& default_durability);

class TallyTable {
 public:
  static Result<std::unique_ptr<TallyTable>> open_to_write(const std::string& path,
                                                           const ShapeOptions& shape,
                                                           const DurabilityOptions& durability);
  static Result<std::unique_ptr<TallyTable>> open_to_read(const std::string& path);

  const std::string& path() const { return path_; }
  tally::TallyStore& operator*() const { return directory_->table(); }
  tally::TallyStore* operator->() const { return &directory_->table(); }
  // Returns true if there are counters, and all ids had left the window before the table was
  // opened. Then a retry of an earlier operation may count again.
  Result<bool> has_forgotten_all() const;
  // Sums the counters by a scan. An index would read all counters first, not only the range.
  Result<tally::RangeSum> sum(const tally::NameRange& range) const;
  TimeMs now_ms() const { return directory_->now_ms(); }
  // Returns the error that the table cannot do `what`, followed by the words of the store.
  Error cannot(const std::string& what, const Error& error) const;
  // Closes the directory, with all that was counted on disk. REQUIRES: not used afterwards.
  Result<void> close() const;
  const Hasher& hasher() const { return hasher_; }  // REQUIRES: opened to write

 private:
  TallyTable(std::string path, std::unique_ptr<tally::TallyDirectory> directory, Hasher hasher)
      : path_(std::move(path)), directory_(std::move(directory)), hasher_(std::move(hasher)) {}

  std::string path_;
  std::unique_ptr<tally::TallyDirectory> directory_;
  Hasher hasher_;
};

// Returns the window of a table, and what is left of it if ids were forgotten early.
std::string window_text(const tally::TallyStore::Info& info, TimeMs now_ms);
std::string word_of(tally::Recognition::Kind kind);
std::string word_of(OnFull on_full);
// Returns why an operation was not counted. REQUIRES: neither applied nor duplicate.
std::string reason_of(tally::Outcome outcome);
std::string word_of(tally::Outcome outcome);

// Refuses options for ids that contradict each other. The arguments tell which of them are given.
Result<void> check_id_options(bool id, bool client, bool sequence);

// Parse names and ids, in which bytes may be escaped (escaped.h), of a length that a table takes.
std::optional<std::string> parse_counter(std::string_view text);
std::optional<std::string> parse_id(std::string_view text);
inline constexpr const char* kCounterAllowed =
    "at most 2048 bytes, with \\xNN for one that cannot be typed";
inline constexpr const char* kIdAllowed =
    "1 to 1024 bytes, with \\xNN for one that cannot be typed";
// -5, 5, +5
std::optional<std::int64_t> parse_delta(std::string_view text);
inline constexpr const char* kDeltaAllowed =
    "a whole number from -9223372036854775808 to 9223372036854775807";
inline constexpr const char* kSequenceAllowed = "a whole number from 0 to 18446744073709551615";

std::string decimal(int128 number);

}  // namespace semel::cli
