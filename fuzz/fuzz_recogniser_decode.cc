#include "fuzz/decode.h"
#include "semel/tally/internal/recogniser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::tally::internal::Recogniser>(data, size);
  return 0;
}
