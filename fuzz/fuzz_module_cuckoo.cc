#include "fuzz/module_chunks.h"
#include "module/types/cuckoo_value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_filter<semel::module::CuckooValue>(data, size, {0.01, 4, 2, 20, 1});
  return 0;
}
