#include "tests/module/command_lines.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

namespace semel {
namespace {

using Groups = std::vector<Words>;

Answer field(const Answer& map, std::string_view name) {
  for (std::size_t i = 0; i + 1 < map.parts.size(); i += 2) {
    if (map.parts[i].text == name) return map.parts[i + 1];
  }
  return {};
}

bool has_flag(const Answer& argument, std::string_view flag) {
  const Answer flags = field(argument, "flags");
  return std::any_of(flags.parts.begin(), flags.parts.end(),
                     [&](const Answer& one) { return one.text == flag; });
}

// Walks over the syntax. A chooser decides which optional arguments are there, how often an
// argument is repeated, which alternative is taken, and what a value is.
template <class Chooser>
class Walk {
 public:
  explicit Walk(Chooser& chooser) : chooser_(chooser) {}

  Groups groups(const Answer& arguments) {
    Groups out;
    for (const Answer& argument : arguments.parts) {
      if (has_flag(argument, "optional") && !chooser_.wants()) continue;
      const std::uint64_t times = has_flag(argument, "multiple") ? chooser_.times() : 1;
      for (std::uint64_t i = 0; i < times; ++i) append(argument, out.emplace_back());
    }
    return out;
  }

 private:
  void append(const Answer& argument, Words& words) {
    const std::string type = field(argument, "type").text;
    const std::string token = field(argument, "token").text;
    if (!token.empty()) words.push_back(token);
    if (type == "pure-token") return;
    if (type == "block") {
      for (const Words& group : groups(field(argument, "arguments"))) {
        words.insert(words.end(), group.begin(), group.end());
      }
      return;
    }
    if (type == "oneof") {
      const Answer choices = field(argument, "arguments");
      return append(choices.parts[chooser_.below(choices.parts.size())], words);
    }
    words.push_back(chooser_.value(type, field(argument, "name").text));
  }

  Chooser& chooser_;
};

// Chooses every optional argument once, with good values.
struct Full {
  static bool wants() { return true; }
  static std::uint64_t times() { return 1; }
  static std::uint64_t below(std::uint64_t /*bound*/) { return 0; }
  static std::string value(std::string_view type, std::string_view /*name*/) {
    if (type == "key") return "key";
    if (type == "double") return "0.01";
    return "100";
  }
};

// Values of each kind: good ones first, then those at the ends of their range, and beyond it.
constexpr std::array kIntegers = {"100",
                                  "1",
                                  "2",
                                  "10",
                                  "65536",
                                  "0",
                                  "-1",
                                  "-0",
                                  "000",
                                  "32768",
                                  "32769",
                                  "65535",
                                  "255",
                                  "4294967295",
                                  "4294967296",
                                  "274877906944",
                                  "274877906945",
                                  "9223372036854775806",
                                  "9223372036854775807",
                                  "-9223372036854775808",
                                  "9223372036854775808",
                                  "18446744073709551615",
                                  "18446744073709551616",
                                  "1.0",
                                  "0x10",
                                  "1 ",
                                  " 1",
                                  "1e3",
                                  ""};
constexpr std::array kReals = {"0.01",
                               "1e-6",
                               "0.5",
                               "0.9999999999999999",
                               "1e-12",
                               "9.9e-13",
                               "1e-9",
                               "1e-40",
                               "2.2250738585072014e-308",
                               "5e-324",
                               "-5e-324",
                               "1e-400",
                               "0",
                               "-0",
                               "1",
                               "1e308",
                               "1e400",
                               "nan",
                               "inf",
                               "-inf",
                               "0.5x",
                               ""};
constexpr std::array kDurations = {"10m",
                                   "100",
                                   "1",
                                   "1ms",
                                   "1s",
                                   "2h",
                                   "7d",
                                   "0",
                                   "-1",
                                   "1w",
                                   "106751991167d",
                                   "106751991168d",
                                   "9223372036854775807",
                                   ""};
constexpr std::array kTexts = {"a",  "b",  "c", "x y",   "",      "+",  "-",
                               "[a", "(b", "[", "ITEMS", "EXACT", "AT", "OP"};

struct Dice {
  Random& random;
  std::string only_key = {};  // if it is not empty

  bool wants() { return random.below(2) == 0; }
  std::uint64_t times() { return 1 + random.below(4); }
  std::uint64_t below(std::uint64_t bound) { return random.below(bound); }

  std::string value(const std::string& type, const std::string& name) {
    if (type == "key") {
      return only_key.empty() ? "key" + std::to_string(random.below(6)) : only_key;
    }
    if (random.below(16) == 0) return bytes();
    if (random.below(16) == 0) return any_value(random);
    if (type == "integer") return random.below(2) == 0 ? kIntegers[0] : any(kIntegers);
    if (type == "double") return random.below(2) == 0 ? kReals[0] : any(kReals);
    if (name == "duration") return random.below(2) == 0 ? kDurations[0] : any(kDurations);
    return any(kTexts);
  }

 private:
  std::string any(std::span<const char* const> values) {
    return values[random.below(values.size())];
  }
  std::string bytes() {
    std::string out(random.below(50) == 0 ? 5000 : random.below(40), '\0');
    for (char& byte : out) byte = static_cast<char>(random());
    return out;
  }
};

Words joined(const std::string& command, const Groups& groups) {
  Words words = {command};
  for (const Words& group : groups) words.insert(words.end(), group.begin(), group.end());
  return words;
}

void damage(Groups& groups, Random& random) {
  const auto any = [&] {
    return groups.begin() + static_cast<std::ptrdiff_t>(random.below(groups.size()));
  };
  switch (random.below(3)) {
    case 0: {  // repeats an option at once
      const auto at = any();
      groups.insert(at, Words(*at));
      break;
    }
    case 1: {  // repeats an option elsewhere
      const Words again = *any();
      groups.insert(any(), again);
      break;
    }
    default:
      std::iter_swap(any(), any());
  }
}

void damage(Words& words, Random& random) {
  const auto any = [&] {
    return words.begin() + 1 + static_cast<std::ptrdiff_t>(random.below(words.size() - 1));
  };
  switch (random.below(4)) {
    case 0:
      words.erase(any());
      break;
    case 1:
      words.push_back(std::string(*any()));
      break;
    case 2:
      std::iter_swap(any(), any());
      break;
    default:
      words.erase(any(), words.end());
  }
}

}  // namespace

std::string any_value(Random& random) {
  const std::array<std::span<const char* const>, 4> kinds = {kIntegers, kReals, kDurations, kTexts};
  const std::span<const char* const> values = kinds[random.below(kinds.size())];
  return values[random.below(values.size())];
}

CommandLines::CommandLines(Talk& talk, std::string command) : command_(std::move(command)) {
  const Answer docs = talk.call({"COMMAND", "DOCS", command_});
  arguments_ = field(docs.parts.at(1), "arguments");
}

Words CommandLines::random(Random& random) const {
  Dice dice{random};
  Groups groups = Walk(dice).groups(arguments_);
  if (random.below(2) == 0) return joined(command_, groups);
  for (std::uint64_t n = random.below(4); n > 0 && !groups.empty(); --n) damage(groups, random);
  Words words = joined(command_, groups);
  for (std::uint64_t n = random.below(3); n > 0 && words.size() > 1; --n) damage(words, random);
  return words;
}

Words CommandLines::about(const std::string& key, Random& random) const {
  Dice dice{random, key};
  return joined(command_, Walk(dice).groups(arguments_));
}

std::vector<Words> CommandLines::all() const {
  Full full;
  const Groups groups = Walk(full).groups(arguments_);
  std::vector<Groups> orders = {groups};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto place = static_cast<std::ptrdiff_t>(i);
    Groups beside = groups;
    beside.insert(beside.begin() + place, groups[i]);
    orders.push_back(std::move(beside));
    Groups apart = groups;
    apart.push_back(groups[i]);
    orders.push_back(apart);
    apart.erase(apart.begin() + place);
    orders.push_back(std::move(apart));
    // Cut off the rest, so that nothing else refuses the line first.
    Groups alone;
    for (const Words& group : groups) {
      if (&group - groups.data() <= place || group.front() == "ITEMS") alone.push_back(group);
    }
    alone.insert(alone.begin() + place, groups[i]);
    orders.push_back(std::move(alone));
  }
  std::vector<Words> lines;
  for (const Groups& order : orders) {
    Words words = joined(command_, order);
    for (; words.size() > 1; words.pop_back()) lines.push_back(words);
    lines.push_back(words);
  }
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

}  // namespace semel
