#include "tests/docs/markdown.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace semel::docs {
namespace {

constexpr std::string_view kBlanks = " \t";

std::size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(kBlanks), line.size());
}

struct Fence {
  std::size_t indent;
  std::string_view mark;  // "```", or longer, or of tildes
  std::string_view info;  // what stands after it
};

std::optional<Fence> fence_in(std::string_view line) {
  const std::size_t indent = indentation(line);
  line.remove_prefix(indent);
  if (!line.starts_with("```") && !line.starts_with("~~~")) return std::nullopt;
  const std::string_view mark = line.substr(0, line.find_first_not_of(line[0]));
  line.remove_prefix(mark.size());
  if (line.find('`') != std::string_view::npos) return std::nullopt;  // code within a line
  return Fence{indent, mark, line.substr(indentation(line))};
}

bool closes(const Fence& fence, const Fence& open) {
  return fence.info.empty() && fence.mark.starts_with(open.mark);
}

std::string without_code(std::string_view line) {
  std::string prose;
  for (bool code = false; const char c : line) {
    if (c == '`') code = !code;
    if (!code) prose += c;
  }
  return prose;
}

// Returns the targets of `[text](target "title")`, `[name]: target`, and of src and href in HTML.
void find_links(std::string_view line, std::size_t number, std::vector<Link>& links) {
  struct Form {
    std::string_view before;
    std::string_view ends;
  };
  const std::string prose = without_code(line);
  for (const Form& form :
       {Form{"](", ") "}, Form{"]: ", " "}, Form{"src=\"", "\""}, Form{"href=\"", "\""}}) {
    for (std::size_t at = prose.find(form.before); at != std::string::npos;
         at = prose.find(form.before, at)) {
      if (form.before == "]: " && prose[indentation(prose)] != '[') break;
      at = std::min(prose.find_first_not_of(" <", at + form.before.size()), prose.size());
      std::string target = prose.substr(at, prose.find_first_of(form.ends, at) - at);
      if (target.ends_with('>')) target.pop_back();
      links.push_back({number, std::move(target)});
    }
  }
}

// Returns "A heading" for "## A heading"; empty if the line is not a heading.
std::string_view heading_in(std::string_view line) {
  const std::size_t level = std::min(line.find_first_not_of('#'), line.size());
  if (level == 0 || level > 6 || !line.substr(level).starts_with(' ')) return "";
  line.remove_prefix(level);
  return line.substr(indentation(line));
}

// Makes anchors as the common hosts do: lower-case letters, digits, dashes for spaces, no
// punctuation.
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80) {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

}  // namespace

Markdown parse_markdown(std::string_view text) {
  Markdown page;
  const std::vector<std::string> lines = lines_of(text);
  std::optional<Fence> open;
  std::size_t number = 0;
  for (const std::string& line : lines) {
    ++number;
    const std::optional<Fence> fence = fence_in(line);
    if (open && fence && closes(*fence, *open)) {
      page.blocks.back().closed = true;
      open.reset();
    } else if (open) {
      page.blocks.back().lines.push_back(line.substr(std::min(open->indent, indentation(line))));
    } else if (fence) {
      open = fence;
      const std::string_view language = fence->info.substr(0, fence->info.find_first_of(kBlanks));
      page.blocks.push_back({number, std::string(language), {}});
    } else {
      const std::string_view heading = heading_in(line);
      if (!heading.empty()) page.anchors.push_back(anchor_of(heading));
      find_links(line, number, page.links);
    }
  }
  return page;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> dedented(std::vector<std::string> lines) {
  std::size_t shared = std::string::npos;
  for (const std::string& line : lines) {
    if (indentation(line) < line.size()) shared = std::min(shared, indentation(line));
  }
  for (std::string& line : lines) line.erase(0, std::min(shared, indentation(line)));
  return lines;
}

}  // namespace semel::docs
