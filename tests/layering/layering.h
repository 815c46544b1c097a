// Layering: which folder may include which. Dependencies point down, and a test enforces it.
//
// Contract  Folders name each other by paths from the root of the repository:
//           "semel/core/result.h". A header is ours (in a folder of the table), of the language, of
//           the platform, or of one of the libraries below; a header of none of these is a breach
//           until it is entered here. Tests beside the code (*_test.cc) may also include tests/ and
//           the test libraries. What a room keeps in internal/ is seen by the room and its friends
//           (a table). Two things hold through any number of includes: only module/host sees the
//           server's API, and a public header sees only public headers and the standard library.
// Limits    It reads lines, not C++: an include within #if 0 or a block comment counts.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <map>
#include <set>
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

// Paths from the root, and the texts of these files.
using Tree = std::map<std::string, std::string>;
// Reads the files that check_tree() looks at.
Tree read_tree(const std::filesystem::path& root);

// Reads the list of public headers from cmake/SemelHeaders.cmake.
std::set<std::string> read_headers(const std::filesystem::path& root);

// Finds the breaches that show only through other headers. Each is reported once, at the include
// that a reader would have to change.
std::vector<Breach> breaches_through(const Tree& tree, const std::set<std::string>& public_headers);

// Finds public headers whose words send the reader to a header that is not installed, and public
// functions that the shared library does not export.
std::vector<Breach> breaches_of_contract(const Tree& tree,
                                         const std::set<std::string>& public_headers);

// A folder and what it may include.
struct Layer {
  std::string_view folder;
  std::vector<std::string_view> may_include;  // besides itself
};
// From the bottom to the top. docs/architecture.svg is drawn from it.
const std::vector<Layer>& layers();

// Returns a folder of the table that may include one which does not stand above it there; empty if
// there is none. If there is none, there can be no cycle.
std::string upward_dependency();

}  // namespace semel::layering
