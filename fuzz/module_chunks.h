// Fuzzes a filter behind a key with any bytes, as a value and as chunks of a dump. The length and
// the checksum of a chunk are made right, and it is loaded into a filter with content. The result
// must be a sound value.
#pragma once

#include <array>
#include <cstdlib>
#include <memory>

#include "fuzz/accepted.h"
#include "fuzz/decode.h"
#include "semel/hash/internal/sealed.h"
#include "semel/hash/keyed_digest.h"
#include "tests/support/held_value.h"

namespace semel {

template <class V>
std::unique_ptr<V> filter_of(const typename V::Goal& goal) {
  const std::array<std::uint8_t, Secret::kSize> secret{1, 2, 3};
  auto value = V::make(Secret(secret), goal);
  if (!value) std::abort();
  if constexpr (requires { V::Begun::here; }) {
    if (!(*value)->begin(1, 2, V::Begun::here)) std::abort();
  } else {
    if (!(*value)->begin_chain(1)) std::abort();
  }
  for (const char* item : {"a", "b", "c", "d", "e"}) {
    (void)(*value)->add((*value)->hasher()(item), 0);
  }
  return *std::move(value);
}

template <class V>
void fuzz_filter(const std::uint8_t* data, std::size_t size, const typename V::Goal& goal) {
  fuzz_decode<HeldValue<V>>(data, size);
  if (size < kSealedHeader + kSealedTrailer) return;
  Bytes chunk(data, data + size);
  store_u64(chunk.data() + kSealedHeader - 8, size - kSealedHeader - kSealedTrailer);
  store_u64(chunk.data() + size - 8, checksum(ByteView(chunk).first(size - 8)));
  if (V::load_header(chunk)) ++accepted_inputs;
  const std::unique_ptr<V> value = filter_of<V>(goal);
  const Result<bool> loaded = value->load(chunk, 1 << 20);
  // A piece is read whole before it is refused as a fork.
  if (loaded || loaded.error().code == Errc::forked) ++accepted_inputs;
  Bytes after;
  value->encode(after);
  if (!V::decode(after)) std::abort();
}

}  // namespace semel
