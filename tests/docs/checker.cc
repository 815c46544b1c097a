#include "tests/docs/checker.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "tests/cli/process.h"
#include "tests/cli/temporary_directory.h"
#include "tests/cli/wildcard.h"

namespace semel::docs {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kLanguages = {"sh",   "text",    "cmake", "json",
                                                        "make", "console", "cpp"};

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "    " + line + '\n';
  return text;
}

// Begins with a word and a colon, as in https: and mailto:
bool has_scheme(std::string_view target) {
  const std::size_t colon = target.find_first_of(":/.#");
  return colon != std::string_view::npos && target[colon] == ':';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Complaint& complaint) {
  return out << complaint.file << ':' << complaint.line << ": " << complaint.what;
}

Checker::Checker(fs::path root, fs::path commands)
    : root_(std::move(root)), commands_(std::move(commands)) {
  if (!fs::exists(root_ / "examples")) return;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "examples")) {
    if (entry.is_regular_file()) examples_.push_back(lines_of(read_file(entry.path())));
  }
}

std::vector<std::string> Checker::documents() const {
  std::vector<std::string> found;
  const auto add = [&](const fs::directory_entry& entry) {
    if (entry.path().extension() == ".md") {
      found.push_back(fs::relative(entry.path(), root_).string());
    }
  };
  for (const auto& entry : fs::directory_iterator(root_)) add(entry);
  if (fs::exists(root_ / "docs")) {
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "docs")) add(entry);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Complaint> Checker::check(const std::string& document) const {
  std::vector<Complaint> complaints;
  const auto complain = [&](std::size_t line, std::string what) {
    complaints.push_back({document, line, std::move(what)});
  };
  const Markdown page = parse_markdown(read_file(root_ / document));
  for (const Block& block : page.blocks) {
    if (!block.closed) complain(block.line, "the block is never closed");
    if (std::find(kLanguages.begin(), kLanguages.end(), block.language) == kLanguages.end()) {
      complain(block.line, "unknown language '" + block.language +
                               "'; allowed: sh, text, cmake, json, make, console, cpp");
    }
    if (block.language == "cpp" && !is_in_examples(block)) {
      complain(block.line, "this code is in no file below examples/");
    }
    if (block.language == "console") check_console(block, document, complaints);
  }
  for (const Link& link : page.links) {
    const std::string wrong = wrong_with_link(document, link.target);
    if (!wrong.empty()) complain(link.line, "'" + link.target + "' leads nowhere: " + wrong);
  }
  return complaints;
}

void Checker::check_console(const Block& block, const std::string& document,
                            std::vector<Complaint>& complaints) const {
  const TemporaryDirectory directory;
  const std::vector<Step> steps = steps_of(block);
  const bool wants_server = std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.command.starts_with("redis-cli");
  });
  if (wants_server && !fs::exists(commands_ / "redis-cli")) return;  // none to be had here
  if (steps.empty()) complaints.push_back({document, block.line, "there is no command"});
  for (const Step& step : steps) {
    if (step.line == 0) {
      complaints.push_back({document, block.line, "there is output before the first command"});
      continue;
    }
    const Outcome outcome = run({.command = {"bash", "-c", step.command},
                                 .directory = directory.path(),
                                 .environment = {{"HOME", directory.path()}, {"LC_ALL", "C"}},
                                 .commands = fs::absolute(commands_),
                                 .merge = true});
    const std::vector<std::string> actual = lines_of(outcome.out);
    if (outcome.timed_out) {
      complaints.push_back({document, step.line, "the command does not end: " + step.command});
    } else if (!matches(step.expected, actual)) {
      complaints.push_back({document, step.line,
                            "the command prints something else: " + step.command +
                                "\n  expected\n" + joined(step.expected) + "  but got\n" +
                                joined(actual)});
    }
  }
}

std::string Checker::wrong_with_link(const std::string& document, std::string_view target) const {
  if (has_scheme(target)) return "";
  const std::size_t hash = std::min(target.find('#'), target.size());
  const std::string file(target.substr(0, hash));
  const std::string anchor(target.substr(std::min(hash + 1, target.size())));

  fs::path path = root_ / document;
  if (file.starts_with('/')) {
    path = root_ / file.substr(1);
  } else if (!file.empty()) {
    path = path.parent_path() / file;
  }
  if (!fs::exists(path)) return "no such file";
  if (anchor.empty() || path.extension() != ".md") return "";
  const std::vector<std::string> anchors = parse_markdown(read_file(path)).anchors;
  const bool known = std::find(anchors.begin(), anchors.end(), anchor) != anchors.end();
  return known ? "" : "no such heading";
}

bool Checker::is_in_examples(const Block& block) const {
  const std::vector<std::string> wanted = dedented(block.lines);
  const auto size = static_cast<std::ptrdiff_t>(wanted.size());
  if (size == 0) return false;
  for (const std::vector<std::string>& lines : examples_) {
    for (auto start = lines.begin(); lines.end() - start >= size; ++start) {
      if (dedented({start, start + size}) == wanted) return true;
    }
  }
  return false;
}

std::vector<Step> steps_of(const Block& block) {
  std::vector<Step> steps;
  bool in_command = false;
  std::size_t number = block.line;
  for (const std::string& line : block.lines) {
    ++number;
    if (line.starts_with("$ ")) {
      steps.push_back({number, line.substr(2), {}});
      in_command = true;
    } else if (in_command && (line.starts_with("> ") || line == ">")) {
      steps.back().command += '\n' + line.substr(std::min<std::size_t>(2, line.size()));
    } else {
      if (steps.empty()) steps.push_back({0, "", {}});
      steps.back().expected.push_back(line);
      in_command = false;
    }
  }
  return steps;
}

// reached[j] is true if the patterns so far match the first j lines.
bool matches(const std::vector<std::string>& expected, const std::vector<std::string>& actual) {
  std::vector<bool> reached(actual.size() + 1, false);
  reached[0] = true;
  for (const std::string& pattern : expected) {
    std::vector<bool> next(actual.size() + 1, false);
    next[0] = pattern == "..." && reached[0];
    for (std::size_t j = 1; j <= actual.size(); ++j) {
      next[j] = pattern == "..." ? reached[j] || next[j - 1]
                                 : reached[j - 1] && matches_wildcard(pattern, actual[j - 1]);
    }
    reached = std::move(next);
  }
  return reached.back();
}

}  // namespace semel::docs
