// Layering: which folder may include what. Dependencies point down, and a test holds them to it.
//
// Contract  Folders name each other by paths from the root of the repository: "semel/core/result.h".
//           A header is ours (in a folder of the table), of the language, of the platform, or of one
//           of the libraries below; a header of none of these is a breach until it is entered here.
//           Tests beside the code (*_test.cc) may also include tests/ and the test libraries.
// Limits    It reads lines, not C++: an include within #if 0 or a block comment counts.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace semel::layering {

struct Breach {
  std::string file;  // from the root
  std::size_t line;
  std::string what;  // with what is allowed
};
std::ostream& operator<<(std::ostream& out, const Breach& breach);

// One file, by its path from the root.
std::vector<Breach> breaches_in(std::string_view file, std::string_view text);

// All *.h and *.cc below semel/, cli/, client/ and module/ of `root`, in the order of their paths.
struct Report {
  std::size_t files = 0;
  std::vector<Breach> breaches;
};
Report check_tree(const std::filesystem::path& root);

// A folder of the table that may include one which does not stand above it there; empty if none
// does, and then there can be no cycle.
std::string upward_dependency();

}  // namespace semel::layering
