// The bytes of an object.
#pragma once

#include "semel/core/codec.h"

namespace semel {

template <class Type>
Bytes encoded(const Type& object) {
  Bytes bytes;
  object.encode(bytes);
  return bytes;
}

}  // namespace semel
