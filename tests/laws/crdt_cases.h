// The replicated types as CrdtCases: small enough to collide, to displace, to fill up and to
// overflow.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series.h"
#include "semel/papers/shared_series.h"
#include "tests/laws/crdt_laws.h"
#include "tests/laws/toy_set.h"

namespace semel {

// Keys whose digests differ only in the lowest bits collide in every cuckoo filter, because it
// scales from the highest bits. Here are three such keys, two more, and others with their
// fingerprint or their bucket.
inline std::vector<Digest> colliding_keys() {
  constexpr std::uint64_t kThird = 0x5555'5555'5555'5550, kTop = 0xf000'0000'0000'0000;
  return {{0, 0}, {1, 1}, {2, 2}, {0, kThird}, {3, kThird}, {kThird, 0}, {kTop, kTop}, {kTop, 7}};
}

// Filters that name their entries by dots.
template <class Filter>
struct DotNames {
  using Type = Filter;
  using Delta = typename Type::Delta;
  static constexpr bool kPartialDeltas = false;
  static constexpr bool kSafeRemovals = true;

  static std::vector<Digest> keys() { return colliding_keys(); }
  static Result<Name> add(Type& filter, Digest key, SiteLife site, Delta& delta) {
    const Result<Dot> dot = filter.add(key, site, &delta);
    if (!dot) return dot.error();
    return Name{*dot};
  }
  static std::optional<Name> remove(Type& filter, Digest key, Delta& delta) {
    const std::optional<Dot> dot = filter.remove(key, &delta);
    if (!dot) return std::nullopt;
    return Name{*dot};
  }
  static Result<bool> remove(Type& filter, Digest key, const Name& name, Delta& delta) {
    return filter.remove(key, name.dot, &delta);
  }
  static std::vector<Name> names(const Type& filter, Digest key) {
    std::vector<Name> names;
    for (const Dot dot : filter.dots(key)) names.push_back({dot});
    return names;
  }
};

struct ToyCase : DotNames<ToySet> {
  static ToySet make() { return {}; }
  static ToyDelta delta() { return {}; }
};

template <BloomLayout kLayout, std::uint32_t kProbes, std::uint64_t kBits>
struct GrowBloomCase {
  using Type = GrowBloom;
  static constexpr bool kPartialDeltas = true;
  static constexpr bool kSafeRemovals = true;
  static constexpr BloomShape kShape = {kLayout, kProbes, kBits, {}};

  static std::vector<Digest> keys() { return colliding_keys(); }
  static Type make() { return Type(kShape); }
  static BloomDelta delta() { return BloomDelta(kShape); }
  static Result<bool> add(Type& filter, Digest key, SiteLife, BloomDelta& delta) {
    return filter.add(key, &delta);
  }
};

template <std::uint32_t kSize, std::uint32_t kBits, std::uint64_t kBuckets>
struct GrowCuckooCase {
  using Type = GrowCuckoo;
  static constexpr bool kPartialDeltas = false;
  static constexpr bool kSafeRemovals = true;
  static constexpr CuckooShape kShape = {kSize, kBits, 0, kBuckets, {}};

  static std::vector<Digest> keys() { return colliding_keys(); }
  static Type make() { return Type(kShape); }
  static CuckooDelta delta() { return CuckooDelta(kShape); }
  static Result<bool> add(Type& filter, Digest key, SiteLife, CuckooDelta& delta) {
    return filter.add(key, &delta);
  }
};

template <std::uint32_t kSize, std::uint32_t kBits, std::uint64_t kBuckets>
struct ObservedCuckooCase : DotNames<ObservedCuckoo> {
  static constexpr CuckooShape kShape = {kSize, kBits, Dot::kBits, kBuckets, {}};

  static ObservedCuckoo make() { return ObservedCuckoo(kShape); }
  static ObservedDelta delta() { return ObservedDelta(kShape); }
};

// A series whose chains are the site's own. For SharedCase the thesis's series takes its place.
template <class Filter, std::uint64_t kFirst, std::uint32_t kGrowth>
struct OwnCase {
  using Type = Series<Filter>;
  static constexpr SeriesGoal kGoal = {
      .fpr = 0.3, .first_keys = kFirst, .sites = 5, .growth = kGrowth, .hash = {}};
};
template <class Filter, std::uint64_t kFirst, std::uint32_t kGrowth>
struct SharedCase {
  using Type = papers::SharedSeries<Filter>;
  static constexpr papers::SharedGoal kGoal = {
      .fpr = 0.3, .first_keys = kFirst, .growth = kGrowth, .hash = {}};
};

template <class Filter, class Kind>
struct SeriesCase {
  using Type = typename Kind::Type;
  using Delta = typename Type::Delta;
  static constexpr bool kPartialDeltas = std::is_same_v<Filter, GrowBloom>;
  static constexpr bool kSafeRemovals = false;  // collisions differ from link to link

  static std::vector<Digest> keys() { return colliding_keys(); }
  static Type make() { return *Type::make(Kind::kGoal); }
  static Delta delta() { return Delta(Kind::kGoal); }
};

template <class Filter, template <class, std::uint64_t, std::uint32_t> class Kind,
          std::uint64_t kFirst, std::uint32_t kGrowth>
struct GrowSeriesCase : SeriesCase<Filter, Kind<Filter, kFirst, kGrowth>> {
  using Base = SeriesCase<Filter, Kind<Filter, kFirst, kGrowth>>;
  static Result<bool> add(typename Base::Type& series, Digest key, SiteLife site,
                          typename Base::Delta& delta) {
    return series.add(key, site.site, &delta);
  }
};

template <template <class, std::uint64_t, std::uint32_t> class Kind, std::uint64_t kFirst,
          std::uint32_t kGrowth>
struct ObservedSeriesCase : SeriesCase<ObservedCuckoo, Kind<ObservedCuckoo, kFirst, kGrowth>> {
  using Type = typename Kind<ObservedCuckoo, kFirst, kGrowth>::Type;
  using Delta = typename Type::Delta;

  static Name name_of(const LinkDot& at) { return {at.dot, at.chain, at.link}; }

  static Result<Name> add(Type& series, Digest key, SiteLife site, Delta& delta) {
    const Result<LinkDot> at = series.add(key, site, &delta);
    if (!at) return at.error();
    return name_of(*at);
  }
  static std::optional<Name> remove(Type& series, Digest key, Delta& delta) {
    const std::optional<LinkDot> at = series.remove(key, &delta);
    if (!at) return std::nullopt;
    return name_of(*at);
  }
  static Result<bool> remove(Type& series, Digest key, const Name& name, Delta& delta) {
    return series.remove(key, LinkDot{name.chain, name.link, name.dot}, &delta);
  }
  static std::vector<Name> names(const Type& series, Digest key) {
    std::vector<Name> names;
    for (const auto& [id, filter] : series.links()) {
      for (const Dot dot : filter.dots(key)) {
        if constexpr (requires { id.chain; }) {
          names.push_back({dot, id.chain, id.link});
        } else {
          names.push_back({dot, 0, id});
        }
      }
    }
    return names;
  }
};

}  // namespace semel
