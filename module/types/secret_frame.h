// What the encodings of all values have in common: a magic, the secret of the key, a body, and a
// checksum over all of it. docs/formats/module_values.md.
#pragma once

#include <cstdint>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/hasher.h"
#include "semel/hash/keyed_digest.h"
#include "semel/hash/seal.h"

namespace semel::module {

inline constexpr std::size_t kFrameHeaderSize = 4 + Secret::kSize;

// The hash that a key's ids go through.
inline Hasher hasher_of(const Secret& secret) {
  return Hasher::keyed(DigestKey(secret, KeyPurpose::key));
}

// Calls `body` with `out`, to append it.
template <class Body>
void encode_frame(Sink out, std::uint32_t magic, const Secret& secret, Body body) {
  Seal seal(out);
  Writer w(out);
  w.u32(magic);
  for (std::size_t i = 0; i < Secret::kSize; i += 8) w.u64(load_u64(secret.bytes().data() + i));
  body(out);
  seal.close();
}

struct Frame {
  Secret secret;
  ByteView body;
};

// Reads one frame that fills `in` exactly. `what` names it in errors.
Result<Frame> decode_frame(ByteView in, std::uint32_t magic, const char* what);

}  // namespace semel::module
