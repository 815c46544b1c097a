// A table of counters behind a key, from any bytes, is refused, or encodes to the very same bytes.
#include "fuzz/decode.h"
#include "module/types/tally_value.h"
#include "tests/support/held_value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::HeldValue<semel::module::TallyValue>>(data, size);
  return 0;
}
