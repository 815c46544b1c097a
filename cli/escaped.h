// Any bytes as text on one line, and back.
//
// Contract  unescaped(escaped(x)) == x. Printable ASCII stands for itself, a backslash for two, every
//           other byte is \xNN. So a text holds no tab and no newline, and is safe on a terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/options.h"

namespace semel::cli {

std::string escaped(std::string_view bytes);
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
