// SeriesGoal: what a series of sub-filters promises, and what follows for each sub-filter.
//
// Each site adds to a chain of its own. A sub-filter is named by its chain and its link in the
// chain: 1, 2, 3, ... Its capacity and its share of the error follow from the goal alone, so sites
// agree on its shape before they meet:
//
//             capacity of link i         share of link i in each chain      sum over all links
//    own      first_keys * growth^(i-1)  fpr * 6 / (sites * pi^2 * i^2)     fpr, for `sites` chains
//    apart    see below                  fpr * w(i) / (w(1) + w(2) + ...)   fpr, for each chain
//
// Take `own` where the sites are known: the bound is that of all chains together. Take `apart`
// where most series are never merged: a site costs nothing until it comes.
//
// With 1/i^2 a share falls slowly: link 20 takes 9 (cuckoo) to 13 (Bloom) bits per key more than
// the first.
//
// Chains that are apart spend the error where the memory is. Link i + 1 has `growth` times the
// capacity of link i until the chain has room for 2^17 keys. From there on, and from the second
// link on if growth is 1, a link has half the capacity of all links before it, but at least
// first_keys. So at most a third of a large chain is empty. The weight of a link is w =
// 1 / (1 + d)^2, where d is its distance from a centre, in doublings of capacity. The centre is at
// 2^18 keys, or at first_keys if that is more, and w(1) = 1. A million keys at 0.001, starting from
// 100, take 2.7 bytes each, against 5.7 with `own` (docs/math/series.md). With growth 0 a chain has
// one link, which takes the whole error.
#pragma once

#include <compare>
#include <cstdint>

#include "semel/core/api.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/hash/digest.h"

namespace semel {

// Says what the error of a goal bounds.
enum class SeriesChains : std::uint8_t {
  own = 0,    // all chains together, at any frequency of merges and any skew
  apart = 1,  // each chain by itself: n chains have n * fpr
};

// The name of a link. It orders by chain, then by link.
struct LinkId {
  SiteId chain = 0;       // the site that adds to it
  std::uint8_t link = 0;  // from 1 on
  auto operator<=>(const LinkId&) const = default;
};

struct SEMEL_API SeriesGoal {
  static constexpr std::uint32_t kMostSites = 65'536;
  static constexpr std::uint8_t kMostLinks = 255;  // in one chain

  double fpr;
  std::uint64_t first_keys = 1 << 16;  // the capacity of the first link of a chain
  std::uint32_t sites = 1;             // number of sites that will add: 1 to 65,536
  SeriesChains chains = SeriesChains::own;
  std::uint32_t growth = 2;  // capacity of a link as a multiple of the one before; 0, with
                             // SeriesChains::apart: one link
  HashId hash = {};

  // Errc::invalid unless every field is in its range: first_keys, sites and growth are at least 1
  // (growth 0 is allowed with SeriesChains::apart), and fpr is an error rate.
  Result<void> check() const;

  // REQUIRES: check() and capacity(link) succeed.
  double share(std::uint8_t link) const;
  // Errc::limit if the capacity is 2^64 keys or more. Errc::full beyond the one link of growth 0.
  // REQUIRES: check() succeeds, and link > 0.
  Result<std::uint64_t> capacity(std::uint8_t link) const;

  bool operator==(const SeriesGoal&) const = default;
};

}  // namespace semel
