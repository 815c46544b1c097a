// The frame that the bytes of a series and of its deltas share: docs/formats/filter_series_v1.md.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series_goal.h"

namespace semel::series_codec {

inline constexpr std::uint32_t kStateMagic = 0x31534653;  // the bytes "SFS1"
inline constexpr std::uint32_t kDeltaMagic = 0x31444653;  // the bytes "SFD1"

enum class FilterKind : std::uint8_t { grow_bloom = 1, grow_cuckoo = 2, observed_cuckoo = 3 };

template <class Filter>
inline constexpr FilterKind kKindOf =
    std::is_same_v<Filter, GrowBloom>    ? FilterKind::grow_bloom
    : std::is_same_v<Filter, GrowCuckoo> ? FilterKind::grow_cuckoo
                                         : FilterKind::observed_cuckoo;

struct Header {
  std::uint32_t magic;
  FilterKind kind;
  SeriesGoal goal;
};

// Writes a frame piece by piece: the header, the links in ascending order, the checksum.
class FrameWriter {
 public:
  FrameWriter(Bytes& out, const Header& header, std::uint64_t links);

  // `encode` appends the content of the link.
  template <class Encode>
  void link(LinkId id, Encode encode) {
    const std::size_t content_at = begin(id);
    encode(out_);
    store_u64(out_.data() + content_at - 8, out_.size() - content_at);
  }
  void finish();

 private:
  std::size_t begin(LinkId id);

  Bytes& out_;
  std::size_t start_;
};

struct FramedLink {
  LinkId id;
  ByteView content;  // not looked at yet
};

struct Frame {
  SeriesGoal goal;  // check() holds
  std::vector<FramedLink> links;
};

// REQUIRES: what is read outlives the frame.
Result<Frame> read(ByteView in, std::uint32_t magic, FilterKind kind);

}  // namespace semel::series_codec
