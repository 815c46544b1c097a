#include "cli/store_options.h"

#include <iterator>
#include <utility>

#include "cli/escaped.h"
#include "cli/sync_pipe.h"
#include "semel/index/nye_trie.h"

namespace semel::cli {

KeyRange keys_with(const std::string& prefix) {
  KeyRange range{prefix, prefix};
  while (!range.end->empty() && range.end->back() == '\xff') range.end->pop_back();
  if (range.end->empty()) {
    range.end.reset();
  } else {
    ++range.end->back();
  }
  return range;
}

namespace {

// Parses PATH or PATH:SIZE. A colon without a size behind it belongs to the path.
std::optional<DirectoryPlaces::Tables> tables_in(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && colon > 0) {
    if (const auto bytes = parse_bytes(text.substr(colon + 1))) {
      return DirectoryPlaces::Tables{std::string(text.substr(0, colon)), bytes};
    }
  }
  if (text.empty()) return std::nullopt;
  return DirectoryPlaces::Tables{std::string(text), std::nullopt};
}

}  // namespace

std::optional<KeyRange> RangeOptions::range() const {
  const KeyRange range =
      intersection(KeyRange{first.value_or(""), end}, keys_with(prefix.value_or("")));
  return range.empty() ? std::nullopt : std::optional(range);
}

std::vector<Option> options_of(RangeOptions& to) {
  return {{"first", 'f', escaped_value("KEY", to.first),
           "only keys from this one on; \\xNN stands for a byte"},
          {"end", 'e', escaped_value("KEY", to.end), "only keys before this one"},
          {"prefix", 'p', escaped_value("KEY", to.prefix), "only keys that begin with this"}};
}

std::vector<Option> options_of(IndexOptions& to) {
  constexpr std::uint64_t kLeastFrame = std::uint64_t{64} << 10;
  constexpr std::uint64_t kMostFrame = std::uint64_t{1} << 30;
  return {
      {"key-file", 'k', path_value("FILE", to.key_file),
       "the secret of the digests, the same at both ends: 32 bytes, or 64 hexadecimal digits "
       "(default: zeros; then an attacker who chooses records can hide a difference)"},
      {"burst", 'B', bytes_value("SIZE", to.burst_bytes, NyeTrie::kLeastBurst, NyeTrie::kMostBurst),
       "the most bytes of records that the index sums up as one (default 4K)"},
      {"frame-bytes", 'M', bytes_value("SIZE", to.frame_bytes, kLeastFrame, kMostFrame),
       "the most bytes of one message, either way (default 16M)"},
      {"scrub", 0, flag_value(to.scrub),
       "read every record, tell where the index that was left in a directory is wrong, and go on "
       "with what is there"}};
}

Option column_family_option(std::string& to) {
  return {"column-family", 'F',
          value_of("NAME", "the name of a column family", to,
                   [](std::string_view text) {
                     return text.empty() ? std::nullopt : std::optional(std::string(text));
                   }),
          "the column family of RocksDB (default 'default')"};
}

Option timeout_option(TimeMs& to) {
  return {"timeout", 't',
          value_of("TIME", "a duration from 2s to 1d", to,
                   [](std::string_view text) {
                     const auto ms = parse_duration(text);
                     const bool allowed =
                         ms && *ms >= SyncPipe::kLeastTimeoutMs && *ms <= SyncPipe::kMostTimeoutMs;
                     return allowed ? ms : std::nullopt;
                   }),
          "give up when nothing comes from the other end of the pipe for this long; a busy end "
          "says every second that it is alive (default 60s)"};
}

std::vector<Option> options_of(DirectoryPlaces& to, const std::string& whose) {
  Value tables{"PATH[:SIZE]", "the name of a directory, and how many bytes of tables it is to take",
               [&to](std::string_view text) {
                 std::optional<DirectoryPlaces::Tables> one = tables_in(text);
                 if (one) to.db_paths.push_back(std::move(*one));
                 return one.has_value();
               }};
  tables.path = true;
  return {{"wal-dir" + to.suffix, 0, path_value("PATH", to.wal_dir),
           "where the write-ahead log" + whose +
               " is, if its OPTIONS file names a place outside of the directory; for a copy that "
               "contains its log, the directory itself"},
          {"db-path" + to.suffix, 0, std::move(tables),
           "where tables" + whose +
               " are, if its owner has them outside of the directory (db_paths); give it once for "
               "each place, in the owner's order"}};
}

Value directory_value(std::string placeholder, std::string& to) {
  Value value = path_value(std::move(placeholder), to);
  value.allowed = "the name of a RocksDB directory";
  return value;
}

Value directories_value(std::string placeholder, std::vector<std::string>& to) {
  Value value = paths_value(std::move(placeholder), to);
  value.allowed = "names of RocksDB directories";
  return value;
}

void append(std::vector<Option>& to, std::vector<Option> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace semel::cli
