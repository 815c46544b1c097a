// Makes damaged bytes of an envelope (hash/internal/sealed.h) look sound again, as an attacker
// would.
#pragma once

#include "semel/core/codec.h"
#include "semel/hash/internal/sealed.h"

namespace semel {

// Puts the length of the body and the checksum right. The last eight bytes are the checksum.
inline Bytes resealed(Bytes bytes) {
  const std::size_t body = bytes.size() - kSealedHeader - kSealedTrailer;
  store_u64(bytes.data() + kSealedHeader - 8, body);
  store_u64(bytes.data() + kSealedHeader + body,
            checksum(ByteView(bytes).first(kSealedHeader + body)));
  return bytes;
}

}  // namespace semel
