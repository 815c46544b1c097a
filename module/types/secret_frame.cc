#include "module/types/secret_frame.h"

namespace semel::module {

Result<Frame> decode_frame(ByteView in, std::uint32_t magic, const char* what) {
  constexpr std::size_t kTrailerSize = 8;
  if (in.size() < kFrameHeaderSize + kTrailerSize) return Error{Errc::truncated, what};
  if (Reader(in).u32() != magic) return Error{Errc::unsupported, what};
  const ByteView framed = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + framed.size()) != checksum(framed)) return Error{Errc::corrupt, what};
  return Frame{Secret(framed.subspan<4, Secret::kSize>()), framed.subspan(kFrameHeaderSize)};
}

}  // namespace semel::module
