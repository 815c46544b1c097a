// Zstd frames: any encoding, compressed.
//
// Contract  decode() returns the bytes that encode() was given, or an error. A frame is at most
//           kOverhead bytes larger than its content: content that zstd cannot shrink is stored as
//           it is. Versions of zstd may make different frames of the same content.
// Cost      That of zstd at level 3.
// Format    docs/formats/zstd_frame_v1.md.
// Source    Zstandard, RFC 8878.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel::zstd_frame {

inline constexpr std::size_t kOverhead = 32;

// Appends the frame of `content` to `out`. REQUIRES: `content` does not lie in `out`.
void encode(ByteView content, Bytes& out);

// Reads one frame that fills `in` exactly. `in` is untrusted: content of more than `most_bytes` is
// refused with Errc::limit before it is allocated.
Result<Bytes> decode(ByteView in, std::uint64_t most_bytes);

}  // namespace semel::zstd_frame
