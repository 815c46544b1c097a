#include "fuzz/decode.h"
#include "semel/window/endless_filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::EndlessFilter>(data, size);
  return 0;
}
