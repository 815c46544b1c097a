// FilesBelow: the contents of all files below some folders. A test uses it to show that none of
// them has changed.
#pragma once

#include <filesystem>
#include <map>
#include <ostream>
#include <string>

#include "tests/cli/temporary_directory.h"

namespace semel {

class FilesBelow {
 public:
  template <class... Roots>
  explicit FilesBelow(const Roots&... roots) {
    (read(roots), ...);
  }
  bool operator==(const FilesBelow&) const = default;

  // Prints each file with its size and a sum, so that a failed test shows which ones differ.
  friend void PrintTo(const FilesBelow& files, std::ostream* out) {
    for (const auto& [path, bytes] : files.files_) {
      *out << '\n'
           << path << ' ' << bytes.size() << " bytes, sum " << std::hash<std::string>()(bytes);
    }
  }

 private:
  void read(const std::filesystem::path& root) {
    using Options = std::filesystem::directory_options;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root, Options::follow_directory_symlink)) {
      if (entry.is_regular_file()) files_[entry.path()] = read_file(entry.path());
    }
  }

  std::map<std::string, std::string> files_;
};

}  // namespace semel
