#include "cli/options.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "cli/escaped.h"

namespace semel::cli {
namespace {

constexpr std::size_t kHelpColumns = 80;

// Returns how many letters have to be inserted, deleted, replaced or swapped with their neighbour
// to get from one word to the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last;
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

// Breaks at blanks, so that no line is longer than `width` unless a single word is.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  return lines;
}

// Wraps each paragraph. Newlines separate paragraphs.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    for (const std::string& line : wrapped(text.substr(0, end), kHelpColumns)) out += line + '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!text.empty()) out += '\n';
  }
  return out;
}

std::string left_column(const Option& option) {
  std::string left = option.letter ? std::string("-") + option.letter + ", " : "    ";
  left += "--" + option.name;
  if (!option.is_flag()) left += ' ' + option.value.placeholder;
  return left;
}

std::string operand_usage(const Operands& operands) {
  std::string usage;
  for (const Value& value : operands.before) usage += ' ' + value.placeholder;
  if (operands.most == 0) return usage;
  const std::string name = operands.value.placeholder + (operands.most > 1 ? "..." : "");
  return usage + (operands.least == 0 ? " [" + name + "]" : " " + name);
}

// Walks once over the arguments of a command line.
class Parser {
 public:
  Parser(const Syntax& syntax, std::span<const char* const> arguments)
      : syntax_(syntax), options_(all_options(syntax)), arguments_(arguments) {}

  Result<Parsed> run() {
    bool only_operands = false;
    while (next_ < arguments_.size() && !refusal_ && !parsed_.help) {
      const std::string_view argument = arguments_[next_++];
      if (only_operands || is_operand(argument)) {
        operand(argument);
      } else if (argument == "--") {
        only_operands = true;
      } else if (argument.starts_with("--")) {
        long_option(argument.substr(2));
      } else {
        letters(argument);
      }
    }
    const Operands& operands = syntax_.operands;
    if (!refusal_ && !parsed_.help && operands_ < operands.before.size() + operands.least) {
      const Value& value = next_operand();
      refusal_ = value.placeholder + " is missing; allowed: " + value.allowed;
    }
    if (refusal_) return Error{Errc::invalid, *std::move(refusal_)};
    return parsed_;
  }

 private:
  bool is_operand(std::string_view argument) const {
    if (argument == "-" || !argument.starts_with('-')) return true;
    return syntax_.operands.negative && argument.find_first_of("0123456789") == 1;
  }

  const Value& next_operand() const {
    const Operands& operands = syntax_.operands;
    return operands_ < operands.before.size() ? operands.before[operands_] : operands.value;
  }

  void operand(std::string_view text) {
    const Operands& operands = syntax_.operands;
    const Value& value = next_operand();
    if (operands_ >= operands.before.size() &&
        operands_ - operands.before.size() == operands.most) {
      refusal_ = "unexpected " + quoted(text) + "; allowed: " +
                 (operands_ == 0
                      ? "only options"
                      : "at most " + std::to_string(operands.most) + " of " + value.placeholder);
    } else if (!value.take(text)) {
      refusal_ = value.choices.empty() ? value.placeholder + " cannot be " + quoted(text) +
                                             "; allowed: " + value.allowed
                                       : "unknown " + value.placeholder + ' ' + quoted(text) +
                                             allowed_words(text, value.choices);
    }
    ++operands_;
  }

  void long_option(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const Option* option = find([name](const Option& known) { return known.name == name; });
    if (!option) {
      const std::string given = "--" + std::string(name);
      return unknown(given, quoted(given));
    }
    if (equals == std::string_view::npos) {
      option->is_flag() ? flag(*option) : value_from_next(*option, "--" + option->name);
    } else if (option->is_flag()) {
      refusal_ = "--" + option->name + " takes no value; allowed: --" + option->name +
                 " alone, not " + quoted("--" + std::string(text));
    } else {
      value(*option, "--" + option->name, text.substr(equals + 1));
    }
  }

  void letters(std::string_view argument) {
    for (std::size_t i = 1; i < argument.size() && !refusal_; ++i) {
      const char letter = argument[i];
      const Option* option = find([letter](const Option& known) { return known.letter == letter; });
      if (!option) return unknown_letter(letter, argument);
      if (option->is_flag()) {
        flag(*option);
        continue;
      }
      const std::string name = std::string("-") + letter;
      if (i + 1 == argument.size()) return value_from_next(*option, name);
      return value(*option, name, argument.substr(i + 1));
    }
  }

  void flag(const Option& option) {
    if (option.name == "help") parsed_.help = true;
    if (option.value.take) option.value.take("");
  }

  void value_from_next(const Option& option, const std::string& name) {
    if (next_ < arguments_.size()) return value(option, name, arguments_[next_++]);
    refusal_ = name + " needs a value; allowed: " + option.value.allowed;
  }

  void value(const Option& option, const std::string& name, std::string_view text) {
    if (option.value.take(text)) return;
    refusal_ = option.value.secret
                   ? name + " cannot be read; allowed: " + option.value.allowed
                   : name + " cannot be " + quoted(text) + "; allowed: " + option.value.allowed;
  }

  void unknown_letter(char letter, std::string_view argument) {
    const bool legible = letter > ' ' && letter < '\x7f';  // and not a part of a character
    const bool joined = argument.size() > 2 && legible;
    unknown(argument, (joined ? quoted({&letter, 1}) + " in " : "") + quoted(argument));
  }

  void unknown(std::string_view given, const std::string& shown) {
    std::vector<std::string> names;
    for (const Option& option : options_) names.push_back("--" + option.name);
    refusal_ = "unknown option " + shown + allowed_words(given, names);
  }

  template <class Match>
  const Option* find(Match match) const {
    const auto found = std::find_if(options_.begin(), options_.end(), match);
    return found == options_.end() ? nullptr : &*found;
  }

  const Syntax& syntax_;
  const std::vector<Option> options_;
  const std::span<const char* const> arguments_;
  std::size_t next_ = 0;      // the argument to look at
  std::size_t operands_ = 0;  // how many were met
  Parsed parsed_;
  std::optional<std::string> refusal_;
};

}  // namespace

Result<Parsed> parse(const Syntax& syntax, std::span<const char* const> arguments) {
  return Parser(syntax, arguments).run();
}

std::vector<Option> all_options(const Syntax& syntax) {
  std::vector<Option> options = syntax.options;
  options.push_back({"help", 'h', {}, "explain all this and exit"});
  return options;
}

std::string help_text(const Syntax& syntax) {
  std::string out = "Usage: " + syntax.name + " [OPTION...]" + operand_usage(syntax.operands) +
                    "\n\n" + paragraphs(syntax.summary + ".\n" + syntax.text) + "\nOptions:\n";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Option& option : all_options(syntax))
    rows.emplace_back(left_column(option), option.help);
  out += columns(rows);
  if (!syntax.examples.empty()) out += "\nExamples:\n";
  for (const Example& example : syntax.examples) {
    out += "  " + example.command + "\n      " + example.purpose + '\n';
  }
  return out;
}

std::string columns(std::span<const std::pair<std::string, std::string>> rows) {
  std::size_t left_width = 0;
  for (const auto& [left, right] : rows) left_width = std::max(left_width, left.size());
  std::string out;
  for (const auto& [left, right] : rows) {
    std::string margin = "  " + left + std::string(left_width - left.size() + 2, ' ');
    for (const std::string& line : wrapped(right, kHelpColumns - left_width - 4)) {
      out += margin + line + '\n';
      margin.assign(margin.size(), ' ');
    }
  }
  return out;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  if (text.size() <= kLongest) return '\'' + printable(text) + '\'';
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  std::size_t end = kLongest;
  while (end > kLongest - 3 && continues(end)) --end;  // not in the middle of a character
  return '\'' + printable(text.substr(0, end)) + "...'";
}

std::string input_name(const std::string& path) {
  return path == "-" ? "standard input" : quoted(path);
}

std::string allowed_words(std::string_view given, std::span<const std::string> words) {
  std::string list;
  std::string_view nearest;
  std::size_t least = 3;  // a distance of two letters may still be a slip
  for (const std::string& word : words) {
    list += (list.empty() ? "" : ", ") + word;
    const std::size_t distance = edit_distance(given.substr(0, 64), word);
    if (distance < std::min(least, word.size() / 2)) {
      least = distance;
      nearest = word;
    }
  }
  if (!nearest.empty()) list = std::string(nearest) + " is nearest; allowed: " + list;
  return (nearest.empty() ? "; allowed: " : "; ") + list;
}

std::string letters_allowed(std::uint64_t most) {
  if (most < 1'000) return "";
  if (most < 1'000'000) return "; k stands for 1000";
  if (most < 1'000'000'000) return "; k and M stand for thousands";
  if (most < 1'000'000'000'000) return "; k, M and G stand for thousands";
  return "; k, M, G and T stand for thousands";
}

Value paths_value(std::string placeholder, std::vector<std::string>& to) {
  Value value{std::move(placeholder), "names of files, - for standard input",
              [&to](std::string_view text) {
                to.emplace_back(text);
                return !text.empty();
              }};
  value.path = true;
  return value;
}

}  // namespace semel::cli
