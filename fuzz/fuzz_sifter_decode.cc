#include "fuzz/decode.h"
#include "semel/sift/sifter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::Sifter>(data, size);
  return 0;
}
