#include "semel/hash/internal/sip_lanes.h"

#include <cstring>

#include "semel/core/assert.h"
#include "semel/core/codec.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define SEMEL_SIP_LANES
#endif

namespace semel::inline hash_internal::sip_lanes {

#ifdef SEMEL_SIP_LANES
namespace {

using Lanes = std::array<std::uint64_t, kLanes>;

const bool kHasAvx512 = __builtin_cpu_supports("avx512f");
const bool kHasAvx2 = __builtin_cpu_supports("avx2");

// The code below is inlined into one caller for each kind of processor. All lanes take one register
// with AVX-512 and two with AVX2. Vectors are passed by reference, because the convention for
// passing them by value differs between processors.
using Words512 [[gnu::vector_size(64)]] = std::uint64_t;
using Words256 [[gnu::vector_size(32)]] = std::uint64_t;

// The four words of state of each message, for the lanes of one register. The paper uses these
// names.
template <class Words>
struct State {
  Words v0, v1, v2, v3;
};

template <class Words>
[[gnu::always_inline]] inline void rotate(Words& word, int left) {
  word = word << left | word >> (64 - left);
}

// These rotate by 32 and by 16 bits. A shuffle does it in one instruction where AVX2 would
// otherwise take three.
[[gnu::always_inline]] inline void rotate_by_32(Words512& word) { rotate(word, 32); }
[[gnu::always_inline]] inline void rotate_by_16(Words512& word) { rotate(word, 16); }
[[gnu::always_inline]] inline void rotate_by_32(Words256& word) {
  using Halves [[gnu::vector_size(32)]] = std::uint32_t;
  const auto halves = reinterpret_cast<Halves>(word);
  word =
      reinterpret_cast<Words256>(__builtin_shufflevector(halves, halves, 1, 0, 3, 2, 5, 4, 7, 6));
}
[[gnu::always_inline]] inline void rotate_by_16(Words256& word) {
  using Bytes256 [[gnu::vector_size(32)]] = std::uint8_t;
  const auto bytes = reinterpret_cast<Bytes256>(word);
  word = reinterpret_cast<Words256>(
      __builtin_shufflevector(bytes, bytes, 6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13,
                              22, 23, 16, 17, 18, 19, 20, 21, 30, 31, 24, 25, 26, 27, 28, 29));
}

template <class Words>
[[gnu::always_inline]] inline void round(State<Words>& s) {
  s.v0 += s.v1;
  s.v2 += s.v3;
  rotate(s.v1, 13);
  rotate_by_16(s.v3);
  s.v1 ^= s.v0;
  s.v3 ^= s.v2;
  rotate_by_32(s.v0);
  s.v2 += s.v1;
  s.v0 += s.v3;
  rotate(s.v1, 17);
  rotate(s.v3, 21);
  s.v1 ^= s.v2;
  s.v3 ^= s.v0;
  rotate_by_32(s.v2);
}

// The state of all lanes. Each round runs on all registers before the next, so that they do not
// wait for each other.
template <class Words>
class AllLanes {
 public:
  [[gnu::always_inline]] AllLanes(std::uint64_t k0, std::uint64_t k1) {
    const Words zero{};
    for (State<Words>& s : states_) {
      s.v0 = zero + (k0 ^ 0x736f6d6570736575);
      s.v1 = zero + (k1 ^ 0x646f72616e646f6d ^ 0xee);
      s.v2 = zero + (k0 ^ 0x6c7967656e657261);
      s.v3 = zero + (k1 ^ 0x7465646279746573);
    }
  }

  [[gnu::always_inline]] void absorb(const Lanes& lanes) {
    Registers messages;
    std::memcpy(messages.data(), lanes.data(), sizeof messages);
    for (std::size_t i = 0; i < kRegisters; ++i) states_[i].v3 ^= messages[i];
    rounds<2>();
    for (std::size_t i = 0; i < kRegisters; ++i) states_[i].v0 ^= messages[i];
  }

  [[gnu::always_inline]] void squeeze(Lanes& out) {
    rounds<4>();
    Registers words;
    for (std::size_t i = 0; i < kRegisters; ++i) {
      const State<Words>& s = states_[i];
      words[i] = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    }
    std::memcpy(out.data(), words.data(), sizeof words);
  }

  [[gnu::always_inline]] void begin_low() {
    for (State<Words>& s : states_) s.v2 ^= 0xee;
  }
  [[gnu::always_inline]] void begin_high() {
    for (State<Words>& s : states_) s.v1 ^= 0xdd;
  }

 private:
  static constexpr std::size_t kRegisters = sizeof(Lanes) / sizeof(Words);
  using Registers = std::array<Words, kRegisters>;

  template <int kRounds>
  [[gnu::always_inline]] void rounds() {
    for (int n = 0; n < kRounds; ++n) {
      for (State<Words>& s : states_) round(s);
    }
  }

  std::array<State<Words>, kRegisters> states_;
};

// Returns the last word: the bytes after the whole words, and the length.
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

template <class Words>
[[gnu::always_inline]] inline void digest_all(std::span<const std::uint8_t, 16> key,
                                              std::span<const std::string_view, kLanes> messages,
                                              std::span<Digest, kLanes> out) {
  AllLanes<Words> all(load_u64(key.data()), load_u64(key.data() + 8));
  const std::size_t words = messages[0].size() / 8;
  Lanes lanes;
  for (std::size_t i = 0; i < words; ++i) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = load_u64(reinterpret_cast<const std::uint8_t*>(messages[lane].data()) + 8 * i);
    }
    all.absorb(lanes);
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = last_word(messages[lane]);
  all.absorb(lanes);
  Lanes low, high;
  all.begin_low();
  all.squeeze(low);
  all.begin_high();
  all.squeeze(high);
  for (std::size_t lane = 0; lane < kLanes; ++lane) out[lane] = {low[lane], high[lane]};
}

[[gnu::target("avx512f")]] void digest_avx512(std::span<const std::uint8_t, 16> key,
                                              std::span<const std::string_view, kLanes> messages,
                                              std::span<Digest, kLanes> out) {
  digest_all<Words512>(key, messages, out);
}

[[gnu::target("avx2")]] void digest_avx2(std::span<const std::uint8_t, 16> key,
                                         std::span<const std::string_view, kLanes> messages,
                                         std::span<Digest, kLanes> out) {
  digest_all<Words256>(key, messages, out);
}

}  // namespace

bool can(std::span<const std::string_view, kLanes> messages) {
  bool equal = kHasAvx2;
  for (const std::string_view message : messages) {
    equal = equal && message.size() / 8 == messages[0].size() / 8;
  }
  return equal;
}

void digest(std::span<const std::uint8_t, 16> key,
            std::span<const std::string_view, kLanes> messages, std::span<Digest, kLanes> out) {
  SEMEL_ASSERT(can(messages));
  kHasAvx512 ? digest_avx512(key, messages, out) : digest_avx2(key, messages, out);
}

#else

bool can(std::span<const std::string_view, kLanes> /*messages*/) { return false; }
void digest(std::span<const std::uint8_t, 16> /*key*/,
            std::span<const std::string_view, kLanes> messages, std::span<Digest, kLanes> /*out*/) {
  SEMEL_ASSERT(can(messages));
}

#endif

}  // namespace semel::inline hash_internal::sip_lanes
