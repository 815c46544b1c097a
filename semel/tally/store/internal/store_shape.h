// StoreShape: what a table in a store is, so that it is never opened as another.
//
// Format    docs/formats/tally_entries_v2.md, 'The shape'.
#pragma once

#include <bit>
#include <cstdint>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/seal.h"
#include "semel/tally/internal/recogniser.h"

namespace semel::tally {

struct StoreShape {
  Recogniser::Goal recogniser = {};

  void encode(Sink out) const {
    Seal seal(out);
    Writer w(out);
    w.u32(kMagic);
    w.u8(static_cast<std::uint8_t>(recogniser.kind));
    w.u8(static_cast<std::uint8_t>(recogniser.when_full));
    w.u8(static_cast<std::uint8_t>(recogniser.hash.kind));
    w.u64(recogniser.hash.seed);
    w.u64(static_cast<std::uint64_t>(recogniser.window_ms));
    w.u64(std::bit_cast<std::uint64_t>(recogniser.fpr));
    w.u64(recogniser.ids);
    w.u64(recogniser.max_bytes);
    seal.close();
  }

  // Reads one that fills `in` exactly. Whether there can be such a recogniser, its making says.
  static Result<StoreShape> decode(ByteView in) {
    constexpr std::size_t kTrailerSize = 8;
    Reader r(in);
    const std::uint32_t magic = r.u32();
    StoreShape shape;
    Recogniser::Goal& goal = shape.recogniser;
    goal.kind = static_cast<Recogniser::Kind>(r.u8());
    goal.when_full = static_cast<WhenFull>(r.u8());
    goal.hash.kind = static_cast<HashKind>(r.u8());
    goal.hash.seed = r.u64();
    goal.window_ms = static_cast<TimeMs>(r.u64());
    goal.fpr = std::bit_cast<double>(r.u64());
    goal.ids = r.u64();
    goal.max_bytes = r.u64();
    if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "shape of a table"};
    if (magic != kMagic) return Error{Errc::unsupported, "shape of a table: magic"};
    if (r.rest() != kTrailerSize || load_u64(in.data() + in.size() - kTrailerSize) !=
                                        checksum(in.first(in.size() - kTrailerSize))) {
      return Error{Errc::corrupt, "shape of a table: checksum"};
    }
    if (goal.kind > Recogniser::Kind::exact || goal.when_full > WhenFull::forget ||
        !goal.hash.valid()) {
      return Error{Errc::corrupt, "shape of a table: of no kind"};
    }
    return shape;
  }

 private:
  static constexpr std::uint32_t kMagic = 0x32535453;  // "STS2"
};

}  // namespace semel::tally
