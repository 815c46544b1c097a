#include "module/host/syntax.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "semel/core/assert.h"

namespace semel::host {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view line) : line_(line) { next(); }

  // Parses up to the bracket that closes the alternatives.
  CommandSyntax alternatives(std::string_view end) {
    std::vector<CommandSyntax> choices = {sequence()};
    while (token_ == "|") {
      next();
      choices.push_back(sequence());
    }
    SEMEL_ASSERT(token_ == end);
    next();
    if (choices.size() == 1) return std::move(choices.front());
    return {.kind = CommandSyntax::Kind::choice, .parts = std::move(choices)};
  }

 private:
  void next() {
    const std::size_t begin = std::min(line_.find_first_not_of(' '), line_.size());
    line_.remove_prefix(begin);
    std::size_t size = line_.find_first_of(" []<>|");
    if (size == 0) size = 1;
    token_ = line_.substr(0, size);
    line_.remove_prefix(token_.size());
  }

  CommandSyntax sequence() {
    CommandSyntax all;
    while (!token_.empty() && token_ != "|" && token_ != "]" && token_ != ">") {
      if (token_ == "...") {
        SEMEL_ASSERT(!all.parts.empty());
        all.parts.back().multiple = true;
        next();
        continue;
      }
      all.parts.push_back(item());
    }
    if (all.parts.size() == 1 && !all.parts.front().multiple) return std::move(all.parts.front());
    return all;
  }

  CommandSyntax item() {
    if (token_ == "[" || token_ == "<") {
      const bool optional = token_ == "[";
      next();
      CommandSyntax inner = alternatives(optional ? "]" : ">");
      if (!optional) return inner;
      // [[a]] becomes [a]. In [a ...] the part stays optional and multiple.
      inner.optional = true;
      return inner;
    }
    const bool capitals = std::none_of(token_.begin(), token_.end(),
                                       [](unsigned char c) { return std::islower(c) != 0; });
    CommandSyntax word{.kind = capitals ? CommandSyntax::Kind::token : CommandSyntax::Kind::word,
                       .text = std::string(token_)};
    next();
    return word;
  }

  std::string_view line_;
  std::string_view token_;
};

}  // namespace

CommandSyntax CommandSyntax::parse(std::string_view line) {
  CommandSyntax all = Parser(line).alternatives("");
  if (all.kind == Kind::sequence && !all.optional) return all;
  CommandSyntax one;
  one.parts.push_back(std::move(all));
  return one;
}

int CommandSyntax::least() const {
  if (optional) return 0;
  if (kind == Kind::token || kind == Kind::word) return 1;
  int least = 0;
  bool first = true;
  for (const CommandSyntax& part : parts) {
    const int needs = part.least();
    if (kind == Kind::choice) {
      least = first ? needs : std::min(least, needs);
      first = false;
    } else {
      least += needs;
    }
  }
  return least;
}

bool CommandSyntax::varies() const {
  if (optional || multiple) return true;
  if (kind == Kind::choice &&
      std::any_of(parts.begin(), parts.end(), [&](const CommandSyntax& part) {
        return part.least() != parts.front().least();
      })) {
    return true;
  }
  return std::any_of(parts.begin(), parts.end(),
                     [](const CommandSyntax& part) { return part.varies(); });
}

}  // namespace semel::host
