// The text of a RocksDB OPTIONS file.
//
// Contract  RocksDB forgets the names of operators and orders that it cannot create, and writes a
//           new file whenever it opens a directory. But the owner must find its own options
//           afterwards.
// Format    That of RocksDB: sections `[CFOptions "name"]` with lines `option=value`.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace semel::store_internal {

class RocksOptionsText {
 public:
  RocksOptionsText() = default;
  explicit RocksOptionsText(std::string text) : text_(std::move(text)) {}
  // Reads the newest OPTIONS file of the directory; empty if there is none.
  static RocksOptionsText of_directory(const std::string& directory);

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

  // Returns the value of an option; empty if it is not there, or is nullptr.
  std::string db_option(std::string_view name) const;
  std::string family_option(std::string_view family, std::string_view name) const;

  // Returns this text with the sections of column families that only `other` has. For families in
  // `replaced` it takes the sections of `other`.
  RocksOptionsText with_families_of(const RocksOptionsText& other,
                                    const std::set<std::string>& replaced) const;
  bool operator==(const RocksOptionsText&) const = default;

 private:
  std::string text_;
};

// Returns the name of the newest OPTIONS file; empty if there is none.
std::string newest_options_file(const std::string& directory);

}  // namespace semel::store_internal
