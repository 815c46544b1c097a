#include "fuzz/decode.h"
#include "semel/index/internal/index_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::index_internal::IndexCheckpoint>(data, size);
  return 0;
}
