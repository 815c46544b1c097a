// Escaped: turns any bytes into text on one line, for machines and back, or for people.
//
// Contract  unescaped(escaped(x)) == x. Printable ASCII stays as it is, a backslash is doubled,
//           every other byte is \xNN. So the text has no tab and no newline, and is safe on a
//           terminal. printable(x) is also safe on a terminal, and keeps the letters of all
//           languages. It cannot be read back. printable(printable(x)) == printable(x).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/options.h"

namespace semel::cli {

std::string escaped(std::string_view bytes);
// Writes \xNN for every byte that is not UTF-8, and for characters that move the cursor, or that
// colour, hide or reorder text: controls (C0, DEL, C1), line separators and direction marks.
std::string printable(std::string_view bytes);
// Returns nullopt if anything but a backslash or xNN follows a backslash. Bytes that need no escape
// may be escaped or not.
std::optional<std::string> unescaped(std::string_view text);

// REQUIRES: `to` outlives the table. It is a string, or an optional one.
template <class To>
Value escaped_value(std::string placeholder, To& to) {
  return value_of(std::move(placeholder), "bytes, with \\xNN for one that cannot be typed", to,
                  unescaped);
}

}  // namespace semel::cli
