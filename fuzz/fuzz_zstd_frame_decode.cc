// Any bytes are refused, or yield content within the limit that survives another frame. That need not be
// the same frame: zstd has many for one content.
#include <cstdlib>

#include "semel/crdt/zstd_frame.h"
#include "semel/hash/digest.h"

namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;

void refuses_or_gives_content(semel::ByteView in) {
  const auto content = semel::zstd_frame::decode(in, kMostBytes);
  if (!content) return;
  semel::Bytes frame;
  semel::zstd_frame::encode(*content, frame);
  const auto again = semel::zstd_frame::decode(frame, content->size());
  if (content->size() > kMostBytes || !again || *again != *content) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  refuses_or_gives_content({data, size});
  if (size < 8) return 0;
  semel::Bytes repaired(data, data + size);  // with the right checksum, as in fuzz/decode.h
  const std::size_t body = size - 8;
  semel::store_u64(repaired.data() + body, semel::checksum(semel::ByteView(repaired).first(body)));
  refuses_or_gives_content(repaired);
  return 0;
}
