// CommandLines: lines of one command, after the syntax that COMMAND DOCS tells of it.
//
// A line is built from groups: an argument, or an option with its values. Damage works on whole
// groups (an option twice, options in another order) and on words (lost, doubled, swapped, cut
// off), because a parser of options fails at other places than a parser of words.
#pragma once

#include <string>
#include <vector>

#include "semel/core/random.h"
#include "tests/module/talk.h"

namespace semel {

// A number, duration or text, good or not.
std::string any_value(Random& random);

class CommandLines {
 public:
  CommandLines(Talk& talk, std::string command);

  // A line with random arguments, good, almost good or any bytes; half of the lines are damaged.
  Words random(Random& random) const;
  // The number of arguments: the more there are, the more can go wrong.
  std::size_t arguments() const { return arguments_.parts.size(); }

  // Lines with every option in its place, every option twice (beside itself and at the end), every
  // option moved to the end, and each of these cut off behind every word.
  std::vector<Words> all() const;

 private:
  std::string command_;
  Answer arguments_;  // as COMMAND DOCS tells them
};

}  // namespace semel
