#include "fuzz/decode.h"
#include "semel/crdt/series.h"
#include "semel/hash/internal/sealed.h"

// The body begins with the kind of the filters.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t kind = size > semel::kSealedHeader ? data[semel::kSealedHeader] : 0;
  if (kind == 1) {
    semel::fuzz_decode<semel::GrowBloomSeries>(data, size);
  } else if (kind == 2) {
    semel::fuzz_decode<semel::GrowCuckooSeries>(data, size);
  } else {
    semel::fuzz_decode<semel::ObservedCuckooSeries>(data, size);
  }
  return 0;
}
