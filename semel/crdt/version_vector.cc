#include "semel/crdt/version_vector.h"

#include <algorithm>

#include "semel/core/assert.h"
#include "semel/crdt/internal/partial_order.h"

namespace semel {
namespace {

template <class Sites>
auto first_from(Sites& sites, SiteId site) {
  return std::lower_bound(sites.begin(), sites.end(), site,
                          [](const VersionVector::Site& a, SiteId b) { return a.site < b; });
}

}  // namespace

std::uint64_t VersionVector::find(SiteId site) const {
  const auto found = first_from(sites_, site);
  return found != sites_.end() && found->site == site ? found->counter : 0;
}

Result<Dot> VersionVector::next(SiteId site) const {
  const std::uint64_t seen = at(site);
  if (seen == Dot::kLastCounter) {
    return Error{Errc::limit, "the site has used up its numbers: give it another id"};
  }
  return Dot{site, seen + 1};
}

void VersionVector::insert(Dot dot) {
  const auto found = first_from(sites_, dot.site);
  if (found != sites_.end() && found->site == dot.site) {
    found->counter = std::max(found->counter, dot.counter);
  } else {
    sites_.insert(found, {dot.site, dot.counter});
  }
}

std::uint64_t VersionVector::sum() const {
  std::uint64_t sum = 0;
  for (const Site& site : sites_) sum += site.counter;
  return sum;
}

bool VersionVector::merge(const VersionVector& other) {
  const std::partial_ordering order = compare(other);
  if (order == std::partial_ordering::equivalent || order == std::partial_ordering::greater) {
    return false;
  }
  for (const Site& site : other.sites_) advance({site.site, site.counter});
  return true;
}

std::partial_ordering VersionVector::compare(const VersionVector& other) const {
  const auto within = [](const VersionVector& a, const VersionVector& b) {
    return std::all_of(a.sites_.begin(), a.sites_.end(),
                       [&](const Site& site) { return site.counter <= b.at(site.site); });
  };
  return crdt_internal::order_of(within(*this, other), within(other, *this));
}

void VersionVector::encode(Sink out) const {
  Writer w(out);
  w.u32(static_cast<std::uint32_t>(sites_.size()));
  for (const Site& site : sites_) w.u64(Dot{site.site, site.counter}.packed());
}

Result<VersionVector> VersionVector::decode(Reader& in, std::size_t most_sites) {
  const std::uint32_t count = in.u32();
  if (!in.ok()) return Error{Errc::truncated, "version vector: number of sites"};
  if (count > most_sites) return Error{Errc::limit, "version vector: too many sites"};
  if (in.rest() / 8 < count) return Error{Errc::corrupt, "version vector: size"};
  VersionVector vector;
  vector.sites_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Dot last = Dot::unpacked(in.u64());
    if (last.counter == 0) return Error{Errc::corrupt, "version vector: a site without events"};
    if (i > 0 && last.site <= vector.sites_.back().site) {
      return Error{Errc::corrupt, "version vector: order of sites"};
    }
    vector.sites_.push_back({last.site, last.counter});
  }
  return vector;
}

}  // namespace semel
