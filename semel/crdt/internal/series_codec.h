// The frame that series and their deltas share in their encodings:
// docs/formats/filter_series_v1.md.
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
#include "semel/hash/seal.h"

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
  FrameWriter(Sink out, const Header& header, std::uint64_t links);

  template <class Content>
  void link(LinkId id, const Content& content) {
    begin(id, encoded_size(content));
    content.encode(out_);
  }
  void finish() { seal_.close(); }

 private:
  void begin(LinkId id, std::uint64_t size);

  Sink out_;
  Seal seal_;
};

struct FramedLink {
  LinkId id;
  ByteView content;  // not looked at yet
};

struct Frame {
  SeriesGoal goal;  // check() holds
  std::vector<FramedLink> links;
};

// REQUIRES: `in` outlives the frame.
Result<Frame> read(ByteView in, std::uint32_t magic, FilterKind kind);

}  // namespace semel::series_codec
