#include "cli/tree_plan.h"

#include <algorithm>
#include <utility>

#include "cli/options.h"
#include "client/url.h"

namespace semel::cli {
namespace {

constexpr std::uint64_t kMostLevels = 64;
constexpr std::uint64_t kMostSlices = 1024;

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = line.find_first_not_of(kBlanks, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

Error fault(std::string words) { return {Errc::invalid, std::move(words)}; }

Result<void> parse_level(const std::vector<std::string_view>& words, const RecordSyntax& syntax,
                         TreePlan& plan) {
  if (words.size() < 2) return fault("a level needs a name");
  TreePlan::Level level;
  level.name = words[1];
  const bool root = plan.levels.empty();
  bool has_key = false;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const std::string_view value = i + 1 < words.size() ? words[i + 1] : "";
    if (words[i] == "slices") {
      const auto slices = parse_count(value);
      if (!slices || *slices == 0 || *slices > kMostSlices) {
        return fault("slices cannot be " + quoted(value) +
                     "; allowed: a whole number from 1 to 1024");
      }
      level.slices = static_cast<std::uint32_t>(*slices);
    } else if (words[i] == "key" && !root) {
      const auto field = parse_field(syntax, value);
      if (!field)
        return fault("key cannot be " + quoted(value) + "; allowed: a field, as for --key");
      level.key = *field;
      has_key = true;
    } else if (words[i] == "at") {
      const auto url = client::parse_url(value);
      // Not repeated: there may be a password in it.
      if (!url) return fault("at cannot be read; allowed: " + url.error().message());
      level.at = value;
    } else {
      return fault("unknown word " + quoted(words[i]) +
                   (root ? "; allowed after the root: slices, at" : "; allowed: key, slices, at"));
    }
  }
  if (!root && !has_key)
    return fault("level " + quoted(level.name) + " needs a key: the field that names its nodes");
  for (const TreePlan::Level& other : plan.levels) {
    if (other.name == level.name) return fault("level " + quoted(level.name) + " is there already");
  }
  if (!root && !level.at.empty() && plan.levels.back().at.empty()) {
    return fault("level " + quoted(level.name) + " is at a server, and " +
                 quoted(plan.levels.back().name) +
                 " above it is not; allowed: all levels from the root");
  }
  if (plan.levels.size() == kMostLevels) return fault("there are more than 64 levels");
  plan.levels.push_back(std::move(level));
  return {};
}

Result<void> parse_line(const std::vector<std::string_view>& words, const RecordSyntax& syntax,
                        TreePlan& plan) {
  if (words[0] == "level") return parse_level(words, syntax, plan);
  const std::string_view value = words.size() == 2 ? words[1] : "";
  if (words[0] == "kind") {
    if (value != "sparse" && value != "dense") {
      return fault("kind cannot be " + quoted(value) + "; allowed: sparse, dense");
    }
    plan.kind = value == "dense" ? TreeKind::dense : TreeKind::sparse;
    return {};
  }
  if (words[0] == "confirm") {
    const auto level = parse_count(value);
    if (!level || *level > kMostLevels) {
      return fault("confirm cannot be " + quoted(value) +
                   "; allowed: the number of a level, 0 to 64");
    }
    plan.confirm_at = *level;
    return {};
  }
  return fault("unknown word " + quoted(words[0]) + "; allowed: kind, confirm, level");
}

}  // namespace

std::string TreePlan::text() const {
  std::string out = kind == TreeKind::dense ? "dense" : "sparse";
  out += " confirm " + std::to_string(confirm_at);
  for (const Level& level : levels) {
    out += "; " + level.name + " key " + level.key.name + " slices " + std::to_string(level.slices);
    if (!level.at.empty()) out += " at " + client::without_password(level.at);
  }
  return out;
}

Result<TreePlan> parse_tree(std::string_view text, const RecordSyntax& syntax) {
  TreePlan plan;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    const Result<void> parsed = parse_line(words, syntax, plan);
    if (!parsed) return parsed.error().about("line " + std::to_string(number));
  }
  if (plan.levels.size() < 2) return fault("a tree needs two levels or more");
  if (plan.confirm_at >= plan.levels.size()) {
    return fault("confirm names a level that is not there");
  }
  if (plan.confirm_at > 0 && plan.remote()) {
    return fault(
        "confirm needs all nodes in this process, and a level is at a server; allowed: "
        "confirm 0");
  }
  return plan;
}

}  // namespace semel::cli
