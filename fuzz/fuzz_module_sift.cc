// Any bytes are refused as a sift behind a key, or decode to one that encodes to the same bytes.
#include "fuzz/decode.h"
#include "module/types/sift_value.h"
#include "tests/support/held_value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::HeldValue<semel::module::SiftValue>>(data, size);
  return 0;
}
