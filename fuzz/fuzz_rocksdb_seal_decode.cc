#include "fuzz/decode.h"
#include "semel/store/internal/rocksdb_seal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::store_internal::RocksSeal>(data, size);
  return 0;
}
