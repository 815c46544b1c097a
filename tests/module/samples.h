// A value of each type and structure, with the commands that make and read it. % stands for its
// key, # for a number that differs each time.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/module/talk.h"

namespace semel {

struct Sample {
  std::string_view name;
  std::vector<std::string_view> make;
  std::string_view change;     // changes it, with each number
  std::string_view event;      // the event of the change
  std::string_view no_change;  // a write that changes nothing after `make`
  std::string_view read;
  std::string_view answer;  // the RESP2 answer to a read, after `make` and before `change`
  // How far MEMORY USAGE may be from the memory taken. An allocator rounds a large block up by at
  // most a fifth, and most of a filter is one block.
  double memory_error = 0.1;
};

inline std::ostream& operator<<(std::ostream& out, const Sample& sample) {
  return out << sample.name;
}

inline const std::vector<Sample>& samples() {
  static const std::vector<Sample> kAll = {
      {.name = "Tally",
       .make = {"TALLY.RESERVE % WINDOW 1h CAPACITY 1000", "TALLY.MINCRBY % IDS a 1 x b 2 y c 3 z",
                "TALLY.INCRBY % d 4 OP client 7"},
       .change = "TALLY.INCRBY % e# 1 ID #",
       .event = "tally.incrby",
       .no_change = "TALLY.INCRBY % a 1 ID x",
       .read = "TALLY.RANGE % - +",
       .answer = "[\"a\", 1, \"b\", 2, \"c\", 3, \"d\", 4]"},
      {.name = "TallyExact",
       .make = {"TALLY.RESERVE % EXACT WINDOW 1h CAPACITY 1000", "TALLY.MINCRBY % IDS a 1 x b 2 y",
                "TALLY.INCRBY % d 4 OP client 7"},
       .change = "TALLY.INCRBY % e# 1 ID #",
       .event = "tally.incrby",
       .no_change = "TALLY.INCRBY % d 4 OP client 7",
       .read = "TALLY.RANGE % - +",
       .answer = "[\"a\", 1, \"b\", 2, \"d\", 4]"},
      {.name = "Sift",
       .make = {"SIFT.RESERVE % WINDOW 1h CAPACITY 1000", "SIFT.MADD % a b c",
                "SIFT.CLAIM % d owner 1h"},
       .change = "SIFT.ADD % #",
       .event = "sift.add",
       .no_change = "SIFT.ADD % a",
       .read = "SIFT.MTEST % a b c d",
       .answer = "[1, 1, 1, 0]"},
      {.name = "SiftTimers",
       .make = {"SIFT.RESERVE % TIMERS WINDOW 1h CAPACITY 1000", "SIFT.MADD % a b c",
                "SIFT.CLAIM % d owner 1h"},
       .change = "SIFT.ADD % #",
       .event = "sift.add",
       .no_change = "SIFT.CLAIM % d other 1h",
       .read = "SIFT.MTEST % a b c d",
       .answer = "[1, 1, 1, 0]",
       .memory_error = 0.2},
      {.name = "SiftExact",
       .make = {"SIFT.RESERVE % EXACT WINDOW 1h CAPACITY 1000", "SIFT.MADD % a b c",
                "SIFT.CLAIM % d owner 1h"},
       .change = "SIFT.ADD % #",
       .event = "sift.add",
       .no_change = "SIFT.MADD % a b c d",
       .read = "SIFT.MTEST % a b c d",
       .answer = "[1, 1, 1, 0]"},
      {.name = "Bloom",
       .make = {"BF.RESERVE % 0.001 10", "BF.MADD % a b c d e f g h i j k l m n o p q r s t"},
       .change = "BF.ADD % #",
       .event = "bf.add",
       .no_change = "BF.ADD % a",
       .read = "BF.MEXISTS % a t z",
       .answer = "[1, 1, 0]",
       .memory_error = 0.2},
      {.name = "Cuckoo",
       .make = {"CF.RESERVE % 10", "CF.INSERT % ITEMS a b c d e f g h i j k l m n o p q r s t",
                "CF.DEL % b", "CF.ADD % a"},
       .change = "CF.ADD % #",
       .event = "cf.add",
       .no_change = "CF.ADDNX % a",
       .read = "CF.MEXISTS % a b t z",
       .answer = "[1, 0, 1, 0]",
       .memory_error = 0.2},
  };
  return kAll;
}

inline std::string filled(std::string_view command, std::string_view key, int number = 0) {
  std::string out;
  for (const char c : command) {
    if (c == '%') {
      out += key;
    } else if (c == '#') {
      out += std::to_string(number);
    } else {
      out += c;
    }
  }
  return out;
}

// Returns true if the sample could be made.
inline bool make_sample(Talk& talk, const Sample& sample, std::string_view key) {
  for (const std::string_view command : sample.make) {
    if (talk(filled(command, key)).starts_with('-')) return false;
  }
  return true;
}

}  // namespace semel
