#include "fuzz/module_chunks.h"
#include "module/types/bloom_value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_filter<semel::module::BloomValue>(data, size,
                                                {.error = 0.01, .capacity = 4, .expansion = 2});
  return 0;
}
