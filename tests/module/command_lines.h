// CommandLines: lines of one command that follow its syntax in COMMAND DOCS.
//
// A line is built from groups: an argument, or an option with its values. Damage works on whole
// groups (an option twice, options in another order) and on words (lost, doubled, swapped, cut
// off), because a parser of options fails at other places than a parser of words.
#pragma once

#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "tests/module/talk.h"

namespace semel {

// Returns a number, duration or text, good or bad.
std::string any_value(Random& random);

class CommandLines {
 public:
  CommandLines(Talk& talk, std::string command);

  // Returns a line with random arguments: good, almost good or any bytes. Half of the lines are
  // damaged.
  Words random(Random& random) const;
  // Returns a line with random arguments in their places, and this key for every key.
  Words about(const std::string& key, Random& random) const;
  // Returns the number of arguments. More arguments can go wrong in more ways.
  std::size_t arguments() const { return arguments_.parts.size(); }

  // Returns lines with every option in its place, every option twice (next to itself and at the
  // end), every option moved to the end, and each of these cut off after every word.
  std::vector<Words> all() const;

 private:
  std::string command_;
  Answer arguments_;  // from COMMAND DOCS
};

}  // namespace semel
