// The encoding of Window::Goal inside other formats.
//
// Format    docs/formats/window_v1.md, 'The goal'.
#pragma once

#include "semel/core/codec.h"
#include "semel/window/window.h"

namespace semel::window_internal {

void write(Writer& w, const Window::Goal& goal);
// Reads a goal. Unknown enumerators fail the reader; check() does the other checks.
Window::Goal read_goal(Reader& r);
// Returns an error for a goal that contradicts itself.
Result<void> check(const Window::Goal& goal);

}  // namespace semel::window_internal
