#include "fuzz/decode.h"
#include "semel/window/window.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::Window>(data, size);
  return 0;
}
