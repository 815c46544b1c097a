#include "fuzz/decode.h"
#include "semel/sift/sifter.h"
#include "semel/window/exact_window.h"
#include "semel/window/forgetful_filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::Sifter<semel::ExactWindow>>(data, size);
  semel::fuzz_decode<semel::Sifter<semel::ForgetfulFilter>>(data, size);
  return 0;
}
