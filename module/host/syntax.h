// CommandSyntax: the arguments of a command, parsed from a line such as
//
//   key counter delta [ID id | OP client seq]
//
// Words in capitals are literal; others stand for what the caller chooses. [ ] is optional, < >
// groups, | separates alternatives, ... repeats what is before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace semel::host {

struct CommandSyntax {
  enum class Kind { token, word, sequence, choice };

  Kind kind = Kind::sequence;
  std::string text = {};  // of a token or word
  bool optional = false;
  bool multiple = false;
  std::vector<CommandSyntax> parts = {};

  // REQUIRES: `line` is well formed. Lines are constants of the table.
  static CommandSyntax parse(std::string_view line);

  // Returns the least number of arguments.
  int least() const;
  // Returns true if there may be more arguments than the least.
  bool varies() const;
};

}  // namespace semel::host
