// The property that every decoder is fuzzed for: any bytes are refused, or yield an object that
// encodes to the same bytes. A mutation hardly ever hits a checksum. So each input is tried as it
// is, and again with its last eight bytes replaced by the right checksum.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "fuzz/accepted.h"
#include "semel/core/codec.h"
#include "semel/hash/digest.h"
#include "semel/hash/internal/checksum.h"

namespace semel {

template <class Type>
void decode_refuses_or_round_trips(ByteView bytes) {
  const auto object = Type::decode(bytes);
  if (!object) return;
  ++accepted_inputs;
  Bytes again;
  object->encode(again);
  if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) std::abort();
}

template <class Type>
void fuzz_decode(const std::uint8_t* data, std::size_t size) {
  decode_refuses_or_round_trips<Type>({data, size});
  if (size < 8) return;
  Bytes repaired(data, data + size);
  const std::size_t body = size - 8;
  store_u64(repaired.data() + body, checksum(ByteView(repaired).first(body)));
  decode_refuses_or_round_trips<Type>(repaired);
}

}  // namespace semel
