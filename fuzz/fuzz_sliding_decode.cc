#include "fuzz/decode.h"
#include "semel/window/internal/sliding_filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::window_internal::SlidingFilter>(data, size);
  return 0;
}
