#include "semel/crdt/internal/series_codec.h"

#include <bit>

#include "semel/hash/digest.h"

namespace semel::series_codec {
namespace {

// docs/formats/filter_series_v1.md. All integers are little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic
//         4        1  kind of filter
//         5        1  kind of hash: 0 fast, 1 keyed
//         6        1  chains: 0 own, 1 shared, 2 apart
//         7        1  zero
//         8        8  error, a double
//        16        8  capacity of the first link of a chain
//        24        4  sites
//        28        4  growth
//        32        8  seed of the hash, or name of its key
//        40        8  number of links that follow; each has its chain (2), its link (2), the size
//                     of its content (8), and the content
//   end - 8        8  checksum of all the bytes before it
constexpr std::size_t kLinkHeader = 12;
constexpr std::size_t kTrailerSize = 8;

}  // namespace

FrameWriter::FrameWriter(Sink out, const Header& header, std::uint64_t links)
    : out_(out), seal_(out) {
  Writer w(out);
  w.u32(header.magic);
  w.u8(static_cast<std::uint8_t>(header.kind));
  w.u8(static_cast<std::uint8_t>(header.goal.hash.kind));
  w.u8(static_cast<std::uint8_t>(header.goal.chains));
  w.u8(0);
  w.u64(std::bit_cast<std::uint64_t>(header.goal.fpr));
  w.u64(header.goal.first_keys);
  w.u32(header.goal.sites);
  w.u32(header.goal.growth);
  w.u64(header.goal.hash.seed);
  w.u64(links);
}

void FrameWriter::begin(LinkId id, std::uint64_t size) {
  Writer w(out_);
  w.u16(id.chain);
  w.u16(id.link);
  w.u64(size);
}

Result<Frame> read(ByteView in, std::uint32_t magic, FilterKind kind) {
  Reader r(in);
  const std::uint32_t found_magic = r.u32();
  const auto found_kind = static_cast<FilterKind>(r.u8());
  Frame frame{};
  frame.goal.hash.kind = static_cast<HashKind>(r.u8());
  frame.goal.chains = static_cast<Chains>(r.u8());
  const bool reserved = r.u8() != 0;
  frame.goal.fpr = std::bit_cast<double>(r.u64());
  frame.goal.first_keys = r.u64();
  frame.goal.sites = r.u32();
  frame.goal.growth = r.u32();
  frame.goal.hash.seed = r.u64();
  const std::uint64_t links = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "series: header"};
  if (found_magic != magic) return Error{Errc::unsupported, "series: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "series: checksum"};
  }
  if (found_kind != kind) return Error{Errc::mismatch, "series: of another kind of filter"};
  if (reserved || !frame.goal.check()) return Error{Errc::corrupt, "series: goal"};
  if (links > (r.rest() - kTrailerSize) / kLinkHeader) {
    return Error{Errc::corrupt, "series: number of links"};
  }

  frame.links.reserve(links);
  LinkId last;
  for (std::uint64_t i = 0; i < links; ++i) {
    if (r.rest() < kLinkHeader + kTrailerSize) {
      return Error{Errc::corrupt, "series: number of links"};
    }
    const SiteId chain = r.u16();
    const std::uint16_t link = r.u16();
    const std::uint64_t size = r.u64();
    if (size > r.rest() - kTrailerSize) return Error{Errc::corrupt, "series: size of a link"};
    const bool named =
        link > 0 && link <= SeriesGoal::kMostLinks && (!frame.goal.shared() || chain == 0);
    const LinkId id{chain, static_cast<std::uint8_t>(link)};
    if (!named || id <= last) return Error{Errc::corrupt, "series: name of a link"};
    frame.links.push_back({id, in.subspan(in.size() - r.rest(), size)});
    r.skip(size);
    last = id;
  }
  if (r.rest() != kTrailerSize) return Error{Errc::corrupt, "series: size"};
  return frame;
}

}  // namespace semel::series_codec
