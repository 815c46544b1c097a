// FilesBelow: what stands in all files below some folders, so that a test can tell that none of
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

  // Names the files of one side that the other does not have, or not so.
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
