// Any bytes are refused as a state, or make a judge that encodes to the same bytes. Each input is
// tried as it is, and again with its checksum corrected.
#include <algorithm>
#include <cstdlib>

#include "cli/judge.h"
#include "cli/sift_state.h"
#include "semel/hash/internal/checksum.h"

namespace {

using namespace semel;
using namespace semel::cli;

const StateOptions kOptions = {{"--a", "1"}, {"--b", ""}};

std::unique_ptr<Judge> make(std::uint8_t kind) {
  const Memory memory{.window_ms = kind % 4 < 2 ? std::optional<TimeMs>(1000) : std::nullopt,
                      .exact = kind % 2 == 0,
                      .error = 0.1,
                      .hash = {},
                      .now_ms = 0};
  if (kind < 4) return *make_parallel_judge(memory, 2);
  if (kind < 8) return *make_sliced_judge(memory, {SliceLayout::vertical, 2, 1, 2});
  const auto plan = parse_tree("level a slices 2\nlevel b key 1\n", {Format::csv, ','});
  return *make_tree_judge(memory, *plan, nullptr);
}

void run(std::uint8_t kind, ByteView bytes) {
  const std::unique_ptr<Judge> judge = make(kind);
  if (!decode_state(bytes, kOptions, *judge)) return;
  Bytes again;
  const auto encoded = encode_state(kOptions, *judge, [&](ByteView piece) {
    again.insert(again.end(), piece.begin(), piece.end());
    return Result<void>();
  });
  if (!encoded || !std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t kind = data[0] % 12;
  Bytes bytes(data + 1, data + size);
  run(kind, bytes);
  if (bytes.size() < 8) return 0;
  const std::size_t body = bytes.size() - 8;
  store_u64(bytes.data() + body, checksum(ByteView(bytes).first(body)));
  run(kind, bytes);
  return 0;
}
