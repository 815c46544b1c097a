#include "fuzz/decode.h"
#include "semel/crdt/observed_cuckoo.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::ObservedDelta>(data, size);
  return 0;
}
