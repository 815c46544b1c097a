// Any bytes are refused as a state, or make a judge that encodes to the same bytes. Each input is
// tried as it is, and again with its checksum corrected.
#include <algorithm>
#include <cstdlib>

#include "fuzz/accepted.h"
#include "fuzz/sift_judges.h"
#include "semel/hash/internal/checksum.h"

namespace {

using namespace semel;
using namespace semel::cli;

void run(std::uint8_t kind, ByteView bytes) {
  const std::unique_ptr<Judge> judge = fuzzed_judge(kind);
  if (!decode_state(bytes, kFuzzedOptions, *judge)) return;
  ++accepted_inputs;
  Bytes again;
  const auto encoded = encode_state(kFuzzedOptions, *judge, [&](ByteView piece) {
    again.insert(again.end(), piece.begin(), piece.end());
    return Result<void>();
  });
  if (!encoded || !std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t kind = data[0] % kFuzzedJudges;
  Bytes bytes(data + 1, data + size);
  run(kind, bytes);
  if (bytes.size() < 8) return 0;
  const std::size_t body = bytes.size() - 8;
  store_u64(bytes.data() + body, checksum(ByteView(bytes).first(body)));
  run(kind, bytes);
  return 0;
}
