#include "fuzz/decode.h"
#include "semel/crdt/grow_cuckoo.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::GrowCuckoo>(data, size);
  return 0;
}
