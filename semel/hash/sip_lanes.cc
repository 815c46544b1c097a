#include "semel/hash/sip_lanes.h"

#include <cstring>

#include "semel/core/assert.h"
#include "semel/core/codec.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define SEMEL_SIP_LANES [[gnu::target("avx512f")]]
#endif

namespace semel::sip_lanes {

#ifdef SEMEL_SIP_LANES
namespace {

using Words [[gnu::vector_size(8 * kLanes)]] = std::uint64_t;

const bool kHasAvx512 = __builtin_cpu_supports("avx512f");

// The four words of state of each message. The names are those of the paper.
struct State {
  Words v0, v1, v2, v3;
};

SEMEL_SIP_LANES [[gnu::always_inline]] inline void rotate(Words& word, int left) {
  word = word << left | word >> (64 - left);
}

SEMEL_SIP_LANES [[gnu::always_inline]] inline void round(State& s) {
  s.v0 += s.v1;
  s.v2 += s.v3;
  rotate(s.v1, 13);
  rotate(s.v3, 16);
  s.v1 ^= s.v0;
  s.v3 ^= s.v2;
  rotate(s.v0, 32);
  s.v2 += s.v1;
  s.v0 += s.v3;
  rotate(s.v1, 17);
  rotate(s.v3, 21);
  s.v1 ^= s.v2;
  s.v3 ^= s.v0;
  rotate(s.v2, 32);
}

SEMEL_SIP_LANES [[gnu::always_inline]] inline void absorb(State& s, const Words& message) {
  s.v3 ^= message;
  round(s);
  round(s);
  s.v0 ^= message;
}

SEMEL_SIP_LANES [[gnu::always_inline]] inline Words squeeze(State& s) {
  for (int i = 0; i < 4; ++i) round(s);
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

using Lanes = std::array<std::uint64_t, kLanes>;

SEMEL_SIP_LANES [[gnu::always_inline]] inline Words words_of(const Lanes& lanes) {
  Words words;
  std::memcpy(&words, lanes.data(), sizeof words);
  return words;
}

// What is left behind the whole words, and the length.
std::uint64_t last_word(std::string_view message) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(message.data());
  const std::size_t size = message.size(), rest = size % 8;
  const std::uint64_t length = static_cast<std::uint64_t>(size) << 56;
  if (rest == 0) return length;
  if (size > 8) return length | load_u64(bytes + size - 8) >> (64 - 8 * rest);
  std::uint64_t word = length;
  for (std::size_t i = 0; i < rest; ++i) word |= std::uint64_t{bytes[i]} << 8 * i;
  return word;
}

}  // namespace

bool can(std::span<const std::string_view, kLanes> messages) {
  bool equal = kHasAvx512;
  for (const std::string_view message : messages) {
    equal = equal && message.size() / 8 == messages[0].size() / 8;
  }
  return equal;
}

SEMEL_SIP_LANES void digest(std::span<const std::uint8_t, 16> key,
                            std::span<const std::string_view, kLanes> messages,
                            std::span<Digest, kLanes> out) {
  SEMEL_ASSERT(can(messages));
  const std::uint64_t k0 = load_u64(key.data()), k1 = load_u64(key.data() + 8);
  const Words zero{};
  State s{zero + (k0 ^ 0x736f6d6570736575), zero + (k1 ^ 0x646f72616e646f6d ^ 0xee),
          zero + (k0 ^ 0x6c7967656e657261), zero + (k1 ^ 0x7465646279746573)};
  const std::size_t words = messages[0].size() / 8;
  Lanes lanes;
  for (std::size_t i = 0; i < words; ++i) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = load_u64(reinterpret_cast<const std::uint8_t*>(messages[lane].data()) + 8 * i);
    }
    absorb(s, words_of(lanes));
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = last_word(messages[lane]);
  absorb(s, words_of(lanes));
  s.v2 ^= 0xee;
  const Words low = squeeze(s);
  s.v1 ^= 0xdd;
  const Words high = squeeze(s);
  for (std::size_t lane = 0; lane < kLanes; ++lane) out[lane] = {low[lane], high[lane]};
}

#else

bool can(std::span<const std::string_view, kLanes> /*messages*/) { return false; }
void digest(std::span<const std::uint8_t, 16> /*key*/,
            std::span<const std::string_view, kLanes> messages, std::span<Digest, kLanes> /*out*/) {
  SEMEL_ASSERT(can(messages));
}

#endif

}  // namespace semel::sip_lanes
