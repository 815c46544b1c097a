// Any bytes as text on one line: for machines, and back, or for people.
//
// Contract  unescaped(escaped(x)) == x. Printable ASCII stands for itself, a backslash for two, every
//           other byte is \xNN. So a text holds no tab and no newline, and is safe on a terminal.
//           printable(x) is safe on a terminal too, and leaves all letters of the world as they
//           are. It cannot be read back. printable(printable(x)) == printable(x).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/options.h"

namespace semel::cli {

std::string escaped(std::string_view bytes);
// Every byte that is no UTF-8, or part of a character that moves the cursor, colours, hides or
// reorders what is shown, is \xNN: controls (C0, DEL, C1), separators of lines, marks of direction.
std::string printable(std::string_view bytes);
// nullopt if a backslash is followed by anything but a backslash or xNN. Bytes that need no escape
// are taken as they are.
std::optional<std::string> unescaped(std::string_view text);

// `to` is a string, or an optional one; it outlives the table.
template <class To>
Value escaped_value(std::string placeholder, To& to) {
  return value_of(std::move(placeholder), "bytes, with \\xNN for one that cannot be typed", to,
                  unescaped);
}

}  // namespace semel::cli
