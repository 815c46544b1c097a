// Syntax: the arguments of a command, read from a line such as
//
//   key counter delta [ID id | OP client seq]
//
// Words in capitals are written as they are; others stand for what the caller chooses. [ ] may be left
// out, < > belongs together, | stands between alternatives, ... repeats what is before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace semel::host {

struct Syntax {
  enum class Kind { token, word, sequence, choice };

  Kind kind = Kind::sequence;
  std::string text = {};  // of a token or word
  bool optional = false;
  bool multiple = false;
  std::vector<Syntax> parts = {};

  // REQUIRES: `line` is well formed: lines are constants of the table.
  static Syntax parse(std::string_view line);

  // The least number of arguments.
  int least() const;
  // Whether there may be more.
  bool varies() const;
};

}  // namespace semel::host
