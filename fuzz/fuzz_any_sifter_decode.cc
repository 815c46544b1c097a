#include "fuzz/decode.h"
#include "semel/sift/any_sifter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::AnySifter>(data, size);
  return 0;
}
