#include "fuzz/decode.h"
#include "semel/store/internal/rocksdb_position.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::store_internal::RocksPosition>(data, size);
  return 0;
}
