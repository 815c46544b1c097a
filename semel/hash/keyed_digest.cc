#include "semel/hash/keyed_digest.h"

#include <sodium.h>

#include <algorithm>

#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/hash/internal/sip_lanes.h"

namespace semel {
namespace {

constexpr char kContext[] = "semelkey";  // crypto_kdf wants eight bytes that name the application
static_assert(sizeof kContext - 1 == crypto_kdf_CONTEXTBYTES);
static_assert(Secret::kSize == crypto_kdf_KEYBYTES);
static_assert(crypto_shorthash_siphashx24_KEYBYTES == 16 &&
              crypto_shorthash_siphashx24_BYTES == sizeof(Digest));

}  // namespace

Secret::Secret(std::span<const std::uint8_t, kSize> bytes) : bytes_{} {
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

Secret::~Secret() { sodium_memzero(bytes_.data(), bytes_.size()); }

Secret Secret::random() {
  SEMEL_ASSERT(sodium_init() >= 0);  // fails only if the system has no randomness
  std::array<std::uint8_t, kSize> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  Secret secret(bytes);
  sodium_memzero(bytes.data(), bytes.size());
  return secret;
}

// One derivation gives 24 bytes: 16 bytes of key and 8 of name. They are as unrelated as two keys.
DigestKey::DigestKey(const Secret& secret, KeyPurpose purpose) : key_{} {
  std::array<std::uint8_t, 24> derived{};
  const int failed = crypto_kdf_derive_from_key(derived.data(), derived.size(),
                                                static_cast<std::uint64_t>(purpose), kContext,
                                                secret.bytes().data());
  SEMEL_ASSERT(failed == 0);
  std::copy_n(derived.begin(), key_.size(), key_.begin());
  id_ = {HashKind::keyed, load_u64(derived.data() + key_.size())};
  sodium_memzero(derived.data(), derived.size());
}

DigestKey::~DigestKey() { sodium_memzero(key_.data(), key_.size()); }

Digest DigestKey::operator()(std::string_view key) const {
  std::array<std::uint8_t, 16> out{};
  crypto_shorthash_siphashx24(out.data(), reinterpret_cast<const std::uint8_t*>(key.data()),
                              key.size(), key_.data());
  return {load_u64(out.data()), load_u64(out.data() + 8)};
}

void DigestKey::operator()(std::span<const std::string_view> keys,
                           std::span<Digest> digests) const {
  SEMEL_ASSERT(keys.size() == digests.size());
  std::size_t done = 0;
  while (keys.size() - done >= sip_lanes::kLanes) {
    const auto some = keys.subspan(done).first<sip_lanes::kLanes>();
    const auto out = digests.subspan(done).first<sip_lanes::kLanes>();
    if (sip_lanes::can(some)) {
      sip_lanes::digest(key_, some, out);
    } else {
      for (std::size_t i = 0; i < some.size(); ++i) out[i] = (*this)(some[i]);
    }
    done += sip_lanes::kLanes;
  }
  for (; done < keys.size(); ++done) digests[done] = (*this)(keys[done]);
}

}  // namespace semel
