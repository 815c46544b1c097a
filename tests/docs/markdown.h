// Markdown: the fenced blocks, links and headings of a file.
//
// Limits    It reads lines, not Markdown: a link that is broken over two lines is not seen. Links
//           and headings within blocks, and links within `code`, do not count.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace semel::docs {

struct Block {
  std::size_t line;                // of the opening fence, from 1
  std::string language;            // the first word after the fence; empty if there is none
  std::vector<std::string> lines;  // without the indentation of the fence
  bool closed = false;
};

struct Link {
  std::size_t line;
  std::string target;
};

struct Markdown {
  std::vector<Block> blocks;
  std::vector<Link> links;
  std::vector<std::string> anchors;  // of the headings: "Which part" is which-part
};

Markdown parse_markdown(std::string_view text);

std::vector<std::string> lines_of(std::string_view text);
// Without the indentation that all lines share; blank lines do not count.
std::vector<std::string> dedented(std::vector<std::string> lines);

}  // namespace semel::docs
