// Hasher: the one place where keys become digests, at the edge of a process.
//
// A Hasher is either fast or keyed. Its id() goes into the shape of every structure that it feeds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/hash/digest.h"
#include "semel/hash/keyed_digest.h"

namespace semel {

class Hasher {
 public:
  static Hasher fast(std::uint64_t seed) { return Hasher({HashKind::fast, seed}, std::nullopt); }
  static Hasher keyed(const DigestKey& key) { return Hasher(key.id(), key); }

  Digest operator()(std::string_view key) const {
    return key_ ? (*key_)(key) : digest(key, id_.seed);
  }
  // Hashes many keys. REQUIRES: the spans are of equal size.
  void operator()(std::span<const std::string_view> keys, std::span<Digest> digests) const {
    SEMEL_ASSERT(keys.size() == digests.size());
    if (key_) return (*key_)(keys, digests);
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = digest(keys[i], id_.seed);
  }
  // Returns the digest of the numbers' bytes, eight for each number, little-endian.
  template <class... Numbers>
  Digest of_numbers(Numbers... numbers) const {
    std::array<std::uint8_t, 8 * sizeof...(numbers)> bytes;
    std::uint8_t* to = bytes.data();
    (store_u64(std::exchange(to, to + 8), static_cast<std::uint64_t>(numbers)), ...);
    return (*this)({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  HashId id() const { return id_; }

 private:
  Hasher(HashId id, std::optional<DigestKey> key) : id_(id), key_(std::move(key)) {}

  HashId id_;
  std::optional<DigestKey> key_;
};

}  // namespace semel
