#include "semel/store/internal/rocksdb_status.h"

#include <array>
#include <cstdio>

#include "semel/store/internal/rocksdb_merge.h"

namespace semel {

using rocksdb::Status;

Error error_of(const Status& status) {
  if (status.IsNoSpace()) return {Errc::io, "RocksDB: no space is left on the device"};
  if (failed_to_merge(status)) return {Errc::corrupt, "RocksDB: a record could not be merged"};
  if (status.IsCorruption()) {
    return {Errc::io, "RocksDB: a file is damaged; restore the directory from a copy or a replica"};
  }
  if (status.IsNotSupported()) return {Errc::unsupported, "RocksDB: not supported here"};
  if (status.IsInvalidArgument()) return {Errc::io, "RocksDB: refused an argument"};
  return {Errc::io, "RocksDB: reading or writing failed"};
}

std::string words_of(const Status& status) {
  std::string words = status.ToString();
  words.erase(words.find_last_not_of(" \n") + 1);
  if (status.IsCorruption() && !failed_to_merge(status)) {
    words += "; restore the directory from a copy or a replica";
  }
  return words;
}

Error open_error(const Status& status, std::string& why) {
  const std::string text = why = words_of(status);
  // Not if the file that is locked could not even be opened.
  if (status.IsIOError() && (text.find("While lock file") != std::string::npos ||
                             text.find("lock hold by current process") != std::string::npos)) {
    return {Errc::busy, "the database is in use by another process"};
  }
  if (status.IsNotSupported() && text.find("PutEntityCF") != std::string::npos) {
    why = "its write-ahead log has records with wide columns, which are not supported";
    return {Errc::unsupported, "a record has wide columns"};
  }
  const bool missing = text.find("No such file") != std::string::npos;
  if (missing &&
      (text.find(".ldb") != std::string::npos || text.find(".sst") != std::string::npos ||
       text.find(".blob") != std::string::npos)) {
    why +=
        "; or say where its tables are, if its owner has them elsewhere (db_paths; cf_paths are "
        "not supported)";
    return {Errc::outside, "a table file is not where it is expected"};
  }
  if (status.IsInvalidArgument() && text.find("comparator") != std::string::npos) {
    return {Errc::unsupported, "the database orders its keys otherwise than by their bytes"};
  }
  return error_of(status);
}

std::string shown(std::string_view bytes) {
  constexpr std::size_t kMost = 64;
  std::string out = "'";
  for (const char byte : bytes.substr(0, kMost)) {
    if (byte >= ' ' && byte <= '~' && byte != '\\') {
      out += byte;
      continue;
    }
    std::array<char, 8> escaped{};
    std::snprintf(escaped.data(), escaped.size(), "\\x%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(byte)));
    out += escaped.data();
  }
  return out.append(bytes.size() > kMost ? "...'" : "'");
}

}  // namespace semel
