#include "fuzz/decode.h"
#include "semel/window/endless_set.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::EndlessSet>(data, size);
  return 0;
}
