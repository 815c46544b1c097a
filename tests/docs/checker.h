// Checker: checks that the documents are true.
//
//   ```console   is run: `$ ` begins a command and `> ` continues it, both for bash. The lines that
//                follow are its exact output, standard error included. A line `...` stands for any
//                number of lines, and `[...]` within a line for any text. The commands of a block
//                share a fresh directory, and the built semel is first in PATH. The exit status is
//                ignored: a document that needs it shows it (`semel ...; echo $?`).
//   ```cpp       stands word for word in a file below examples/, up to indentation.
//   other        is one of sh, text, cmake, json, make, and is not checked.
//   links        that are relative lead to a file, and to a heading if they name one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tests/docs/markdown.h"

namespace semel::docs {

struct Complaint {
  std::string file;  // from the root
  std::size_t line;
  std::string what;
};
std::ostream& operator<<(std::ostream& out, const Complaint& complaint);

class Checker {
 public:
  // `commands` is the folder of the built semel.
  Checker(std::filesystem::path root, std::filesystem::path commands);

  // Returns the *.md files of the root and below docs/, as paths from the root.
  std::vector<std::string> documents() const;
  std::vector<Complaint> check(const std::string& document) const;

 private:
  void check_console(const Block& block, const std::string& document,
                     std::vector<Complaint>& complaints) const;
  std::string wrong_with_link(const std::string& document, std::string_view target) const;
  bool is_in_examples(const Block& block) const;

  std::filesystem::path root_;
  std::filesystem::path commands_;
  std::vector<std::vector<std::string>> examples_;  // the lines of each file
};

struct Step {
  std::size_t line;
  std::string command;
  std::vector<std::string> expected;
};
// A step of line 0 holds the text before the first command.
std::vector<Step> steps_of(const Block& block);
bool matches(const std::vector<std::string>& expected, const std::vector<std::string>& actual);

}  // namespace semel::docs
