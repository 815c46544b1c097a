#include "fuzz/decode.h"
#include "semel/crdt/grow_bloom.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::BloomDelta>(data, size);
  return 0;
}
