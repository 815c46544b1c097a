#include "semel/store/internal/rocksdb_status.h"

#include <array>
#include <cstdio>

#include "semel/store/internal/rocksdb_merge.h"

namespace semel::store_internal {

using rocksdb::Status;

namespace {

Errc code_of(const Status& status) {
  if (failed_to_merge(status)) return Errc::corrupt;
  return status.IsNotSupported() ? Errc::unsupported : Errc::io;
}

std::string words_of(const Status& status) {
  std::string words = status.ToString();
  words.erase(words.find_last_not_of(" \n") + 1);
  if (status.IsCorruption() && !failed_to_merge(status)) {
    words += "; restore the directory from a copy or a replica";
  }
  return words;
}

}  // namespace

Error error_of(const Status& status) { return {code_of(status), words_of(status)}; }

Error open_error(const Status& status) {
  const std::string text = words_of(status);
  // These words are missing if the lock file could not even be opened.
  if (status.IsIOError() && (text.find("While lock file") != std::string::npos ||
                             text.find("lock hold by current process") != std::string::npos)) {
    return {Errc::busy, text};
  }
  if (status.IsNotSupported() && text.find("PutEntityCF") != std::string::npos) {
    return {Errc::unsupported,
            "its write-ahead log has records with wide columns, which are not supported"};
  }
  const bool missing = text.find("No such file") != std::string::npos;
  if (missing &&
      (text.find(".ldb") != std::string::npos || text.find(".sst") != std::string::npos ||
       text.find(".blob") != std::string::npos)) {
    return {Errc::outside,
            text +
                "; or say where its tables are, if its owner has them elsewhere (db_paths; "
                "cf_paths are not supported)"};
  }
  if (status.IsInvalidArgument() && text.find("comparator") != std::string::npos) {
    return {Errc::unsupported, text};
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

}  // namespace semel::store_internal
