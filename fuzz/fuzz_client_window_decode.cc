#include "fuzz/decode.h"
#include "semel/window/client_window.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::ClientWindow>(data, size);
  return 0;
}
