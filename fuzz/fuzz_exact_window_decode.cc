#include "fuzz/decode.h"
#include "semel/window/internal/exact_window.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::window_internal::ExactWindow>(data, size);
  return 0;
}
