#include "fuzz/decode.h"
#include "semel/sift/claim_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::ClaimTable>(data, size);
  return 0;
}
