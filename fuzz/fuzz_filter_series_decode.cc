#include "fuzz/decode.h"
#include "semel/crdt/series.h"

// The header says of which filters a series is.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t kind = size > 4 ? data[4] : 0;
  if (kind == 1) {
    semel::fuzz_decode<semel::GrowBloomSeries>(data, size);
  } else if (kind == 2) {
    semel::fuzz_decode<semel::GrowCuckooSeries>(data, size);
  } else {
    semel::fuzz_decode<semel::ObservedCuckooSeries>(data, size);
  }
  return 0;
}
