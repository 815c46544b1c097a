// The secret of a key: the hash of its ids, and how encodings carry it.
// docs/formats/module_values.md.
#pragma once

#include <array>
#include <cstdint>

#include "semel/core/codec.h"
#include "semel/hash/hasher.h"
#include "semel/hash/keyed_digest.h"

namespace semel::module {

inline Hasher hasher_of(const Secret& secret) {
  return Hasher::keyed(DigestKey(secret, KeyPurpose::key));
}

inline void write(Writer& w, const Secret& secret) { w.bytes(secret.bytes()); }

inline Secret read_secret(Reader& r) {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  r.bytes(bytes);
  return Secret(bytes);
}

}  // namespace semel::module
