// Syntax: all that a subcommand understands, in one table. The table is parsed, explained (--help),
// completed (semel completion) and compared with the man page (tests/cli). Nothing else lists the
// options.
//
// Contract  A value is given as `--name value`, `--name=value`, `-n value` or `-nvalue`. Letters of
//           flags may be joined: `-qn value`. Options and operands mix. After `--` all arguments
//           are operands. `-` alone is an operand, and so is `-5` where operands may be negative.
//           If an option is given twice, the last one counts, except that lists of places
//           (--db-path) grow. Names are never abbreviated. Every subcommand has -h and --help.
//           An argument that does not fit is refused with one line that says what is wrong and what
//           is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/core/clock.h"
#include "semel/core/internal/error_rate.h"
#include "semel/core/internal/parse.h"
#include "semel/core/result.h"

namespace semel::cli {

// Parses a text into a value and stores it. The functions below make these.
struct Value {
  std::string placeholder;                     // as the help shows it: N, FILE
  std::string allowed;                         // as a refusal shows it: "a whole number ..."
  std::function<bool(std::string_view)> take;  // returns false if the text is not allowed
  std::vector<std::string> choices = {};       // if only a few words are allowed
  bool path = false;                           // completed with the names of files
  bool secret = false;                         // never repeated in a refusal
};

struct Option {
  std::string name;  // without its dashes
  char letter;       // of the short form; 0 if there is none
  Value value;       // a flag's has no placeholder
  std::string help;

  bool is_flag() const { return value.placeholder.empty(); }
};

struct Operands {
  Value value;  // takes each of them in turn
  std::size_t least = 0;
  std::size_t most = 0;
  std::vector<Value> before = {};  // one operand for each of these comes first
  bool negative = false;           // operands may be numbers below zero
};

struct Example {
  std::string command;
  std::string purpose;
};

struct Syntax {
  std::string name;     // "semel sift"
  std::string summary;  // one line
  std::string text;     // --help shows it between the summary and the options
  std::vector<Option> options;
  Operands operands = {};
  std::vector<Example> examples = {};
};

struct Parsed {
  bool help = false;  // --help was met; the arguments behind it were ignored
};
// Parses a command line into the values of the syntax. The error says in one line what does not
// fit.
Result<Parsed> parse(const Syntax& syntax, std::span<const char* const> arguments);

// Returns the options as parse() knows them, --help included.
std::vector<Option> all_options(const Syntax& syntax);
std::string help_text(const Syntax& syntax);
// Returns lines of two columns, the second wrapped.
std::string columns(std::span<const std::pair<std::string, std::string>> rows);

// Returns 'text' in quotes: always one line, safe on a terminal, and cut if it is long.
std::string quoted(std::string_view text);
// Returns the name of an input for messages: its path in quotes, or "standard input" for "-".
std::string input_name(const std::string& path);
// Returns "; nearest: X; allowed: X, Y, Z". The nearest is left out unless it is near enough.
std::string allowed_words(std::string_view given, std::span<const std::string> words);

// Returns "; k and M stand for thousands", with the letters that a number up to `most` can have.
std::string letters_allowed(std::uint64_t most);

template <class To, class Parse>
Value value_of(std::string placeholder, std::string allowed, To& to, Parse parse) {
  return {std::move(placeholder), std::move(allowed), [&to, parse](std::string_view text) {
            const auto parsed = parse(text);
            if (parsed) to = *parsed;
            return parsed.has_value();
          }};
}

// REQUIRES, for all below: `to` outlives the table. It is the type of the value, or an optional.
template <class To>
Value count_value(std::string placeholder, To& to, std::uint64_t least, std::uint64_t most) {
  return value_of(std::move(placeholder),
                  "a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                      letters_allowed(most),
                  to, [least, most](std::string_view text) {
                    const auto n = parse_count(text);
                    return n && *n >= least && *n <= most ? n : std::nullopt;
                  });
}

template <class To>
Value bytes_value(std::string placeholder, To& to, std::uint64_t least, std::uint64_t most) {
  return value_of(std::move(placeholder),
                  "a number of bytes from " + std::to_string(least) + " to " +
                      std::to_string(most) + ", such as 80, 64K or 1G",
                  to, [least, most](std::string_view text) {
                    const auto n = parse_bytes(text);
                    return n && *n >= least && *n <= most ? n : std::nullopt;
                  });
}

template <class To>
Value duration_value(std::string placeholder, To& to) {
  return value_of(std::move(placeholder), "a duration such as 250ms, 10s, 5m, 1h, 2d or 1w", to,
                  parse_duration);
}

// Takes a number that `accept` agrees with; `allowed` says in words which those are.
template <class To>
Value number_value(std::string placeholder, To& to, std::string allowed, bool (*accept)(double)) {
  return value_of(std::move(placeholder), std::move(allowed), to, [accept](std::string_view text) {
    const auto x = parse_number(text);
    return x && accept(*x) ? x : std::nullopt;
  });
}

// Takes any text.
template <class To>
Value text_value(std::string placeholder, std::string allowed, To& to) {
  return value_of(std::move(placeholder), std::move(allowed), to,
                  [](std::string_view text) { return std::optional(std::string(text)); });
}

template <class To>
Value error_rate_value(To& to) {
  return number_value("E", to, std::string("a number, ") + kErrorRatesAllowed, is_error_rate);
}

template <class To>
Value path_value(std::string placeholder, To& to) {
  Value value =
      value_of(std::move(placeholder), "the name of a file", to, [](std::string_view text) {
        return text.empty() ? std::nullopt : std::optional(std::string(text));
      });
  value.path = true;
  return value;
}
Value paths_value(std::string placeholder, std::vector<std::string>& to);

template <class To, class Enum>
Value choice_value(std::string placeholder, To& to,
                   std::vector<std::pair<std::string, Enum>> choices) {
  std::vector<std::string> words;
  std::string allowed;
  for (const auto& [word, unused] : choices) {
    words.push_back(word);
    allowed += (allowed.empty() ? "" : ", ") + word;
  }
  Value value = value_of(std::move(placeholder), std::move(allowed), to,
                         [choices = std::move(choices)](std::string_view text) {
                           std::optional<Enum> chosen;
                           for (const auto& [word, meaning] : choices) {
                             if (word == text) chosen = meaning;
                           }
                           return chosen;
                         });
  value.choices = std::move(words);
  return value;
}

// Returns the word of a choice. REQUIRES: there is one.
template <class Enum>
std::string word_of(const std::vector<std::pair<std::string, Enum>>& choices, Enum value) {
  for (const auto& [word, meaning] : choices) {
    if (meaning == value) return word;
  }
  return "";
}

inline Value flag_value(bool& to) {
  return {"", "", [&to](std::string_view) { return to = true; }};
}

}  // namespace semel::cli
