// Any bytes of a peer give frames within the limit, and the same items whatever pieces they come
// in. They are tried as they are, behind a hello, and as records whose lengths and checksums are
// right.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/pipe_records.h"
#include "semel/hash/digest.h"
#include "semel/hash/internal/checksum.h"

namespace {

using namespace semel;
using namespace semel::cli;
using Item = PipeDecoder::Item;

constexpr std::uint32_t kMostBytes = 4096;

std::vector<std::pair<std::optional<Item>, Bytes>> items_of(std::string_view stream,
                                                            std::size_t piece) {
  PipeDecoder decoder(PipeRole::asks, kMostBytes);
  std::vector<std::pair<std::optional<Item>, Bytes>> items;  // no item: the stream is broken
  while (!stream.empty()) {
    decoder.feed(stream.substr(0, piece));
    stream.remove_prefix(std::min(piece, stream.size()));
    for (;;) {
      Bytes frame;
      const Result<Item> item = decoder.next(frame);
      if (frame.size() > kMostBytes) std::abort();
      if (!item && item.error().message().empty()) std::abort();
      if (item && *item == Item::none) break;
      items.emplace_back(item ? std::optional(*item) : std::nullopt, std::move(frame));
      if (!item || *item == Item::foreign || *item == Item::end) return items;
    }
  }
  return items;
}

void try_stream(const std::string& stream, std::size_t piece) {
  if (items_of(stream, piece) != items_of(stream, stream.size() + 1)) std::abort();
}

// Two bytes give length and kind, those behind them the content.
std::string as_records(ByteView input) {
  std::string stream(hello_of(PipeRole::asks));
  for (std::uint32_t number = 0; input.size() >= 2; ++number) {
    const std::size_t length = std::min(std::size_t{5} * input[0], input.size() - 2);
    Bytes record;
    Writer writer(record);
    writer.u16(static_cast<std::uint16_t>(length));
    writer.u8(input[1] % 8);
    writer.u32(input[1] < 250 ? number : number + 1);
    writer.bytes(input.subspan(2, length));
    writer.u64(checksum(record));
    stream.append(text_of(record));
    input = input.subspan(2 + length);
  }
  return stream;
}

}  // namespace

// The first byte is the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{1} + data[0];
  const ByteView rest(data + 1, size - 1);
  const std::string bytes(text_of(rest));
  try_stream(bytes, piece);
  try_stream(std::string(hello_of(PipeRole::asks)) + bytes, piece);
  try_stream(as_records(rest), piece);
  return 0;
}
