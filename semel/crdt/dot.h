// Dot: the name of one event. The site where the event happened gives each dot out once.
//
// The events of a site are numbered 1, 2, 3, ... in each structure. A dot packs into 64 bits: 16
// for the site, 48 for the number. 2^48 adds last for nine years at a million a second. Then the
// site needs a new id, and every add is refused until it has one: numbers never wrap.
#pragma once

#include <compare>
#include <cstdint>

namespace semel {

using SiteId = std::uint16_t;

struct Dot {
  static constexpr std::uint32_t kBits = 64;  // when packed
  static constexpr std::uint32_t kCounterBits = 48;
  static constexpr std::uint64_t kLastCounter = (std::uint64_t{1} << kCounterBits) - 1;

  SiteId site = 0;
  std::uint64_t counter = 0;  // 1 to kLastCounter

  auto operator<=>(const Dot&) const = default;

  // Packed dots have the order of the dots.
  std::uint64_t packed() const { return std::uint64_t{site} << kCounterBits | counter; }
  static Dot unpacked(std::uint64_t packed) {
    return {static_cast<SiteId>(packed >> kCounterBits), packed & kLastCounter};
  }
};

// A site and one of its lives. A life is a random number. Whoever opens a state to add to it draws
// one: at the first start, after a restart, after a restore (docs/replicas.md).
struct SiteLife {
  SiteId site = 0;
  std::uint64_t life = 0;
  bool operator==(const SiteLife&) const = default;
};

}  // namespace semel
