#include "semel/crdt/internal/series_codec.h"

namespace semel::crdt_internal {
namespace {

// docs/formats/series_v1.md.
//
//    OFFSET     SIZE  FIELD OF THE BODY
//         0        1  kind of filter
//         1        1  chains: 0 own, 1 apart
//         2        1  1 if each link comes with its keys, else 0
//         3        8  error, a double
//        11        8  capacity of the first link of a chain
//        19        4  sites
//        23        4  growth
//        27        9  kind and seed of the hash
//        36        8  number of links that follow; each has its chain (2), its link (1), its keys
//                     if they come (8), and its content, an envelope of its own
constexpr std::size_t kLeastLink = 3 + kSealedHeader + kSealedTrailer;

// Reads the bytes of one envelope, which says how long it is.
ByteView read_envelope(Reader& r) {
  Reader ahead = r;
  ahead.skip(4);
  const std::uint64_t length = ahead.u64();
  if (!ahead.ok() || length > ahead.rest()) {
    r.fail();
    return {};
  }
  return r.view(kSealedHeader + length + kSealedTrailer);
}

}  // namespace

void write_header(Writer& w, const SeriesHeader& header, std::uint64_t links) {
  w.enumeration(header.kind);
  w.enumeration(header.goal.chains);
  w.boolean(header.counted);
  w.f64(header.goal.fpr);
  w.u64(header.goal.first_keys);
  w.u32(header.goal.sites);
  w.u32(header.goal.growth);
  write(w, header.goal.hash);
  w.u64(links);
}

void write_link(Writer& w, LinkId id, std::optional<std::uint64_t> keys) {
  w.u16(id.chain);
  w.u8(id.link);
  if (keys) w.u64(*keys);
}

Result<EncodedSeries> read_series(ByteView in, const Format& format, FilterKind kind,
                                  bool counted) {
  Reader r = SEMEL_TRY(open_sealed(in, format));
  const FilterKind found_kind = r.enumeration(FilterKind::observed_cuckoo);
  EncodedSeries series{};
  series.goal.chains = r.enumeration(SeriesChains::apart);
  const bool found_counted = r.boolean();
  series.goal.fpr = r.f64();
  series.goal.first_keys = r.u64();
  series.goal.sites = r.u32();
  series.goal.growth = r.u32();
  series.goal.hash = read_hash_id(r);
  const std::uint64_t links = r.u64();
  if (!r.ok()) return corrupt(format, "goal");
  if (found_kind != kind) return Error{Errc::mismatch, format.what, "another kind of filter"};
  if (found_counted != counted) return corrupt(format, "keys of the links");
  if (!series.goal.check()) return corrupt(format, "goal");
  if (links > r.rest() / kLeastLink) return corrupt(format, "number of links");

  series.links.reserve(links);
  LinkId last;
  for (std::uint64_t i = 0; i < links; ++i) {
    EncodedLink link;
    link.id.chain = r.u16();
    link.id.link = r.u8();
    if (counted) link.keys = r.u64();
    link.content = read_envelope(r);
    if (!r.ok()) return corrupt(format, "size of a link");
    if (link.id.link == 0 || link.id <= last) return corrupt(format, "name of a link");
    last = link.id;
    series.links.push_back(link);
  }
  if (!r.at_end()) return corrupt(format, "size");
  return series;
}

}  // namespace semel::crdt_internal
