#include "fuzz/decode.h"
#include "semel/filter/cuckoo_filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::CuckooFilter>(data, size);
  return 0;
}
