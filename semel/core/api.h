// SEMEL_API: marks what the shared library exports. Everything else is hidden in it.
//
//   class SEMEL_API Window { ... };        // with all its members
//   SEMEL_API bool valid(const Goal&);     // a function outside a class
//   struct SEMEL_LOCAL Body;               // in such a class: not exported after all
//
// A template or an inline function needs no mark.
#pragma once

#define SEMEL_API [[gnu::visibility("default")]]
#define SEMEL_LOCAL [[gnu::visibility("hidden")]]
