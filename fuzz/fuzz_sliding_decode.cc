#include "fuzz/decode.h"
#include "semel/window/sliding_filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::SlidingFilter>(data, size);
  return 0;
}
