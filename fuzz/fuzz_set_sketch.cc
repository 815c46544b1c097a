// Any syndromes: a sketch refuses them, or gives a set that fits and has just these syndromes.
#include <algorithm>
#include <cstdlib>

#include "semel/sync/internal/set_sketch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using semel::sync_internal::SetSketch;
  constexpr std::size_t kMostBytes = std::size_t{4} * 64;  // larger ones are slow, and no different
  size = std::min(size - size % 4, kMostBytes);
  if (size == 0) return 0;
  const SetSketch sketch = SetSketch::of_bytes({data, size});
  const auto numbers = sketch.decode();
  if (!numbers) return 0;
  SetSketch again(sketch.capacity());
  for (const std::uint32_t number : *numbers) {
    if (number == 0) std::abort();
    again.toggle(number);
  }
  if (numbers->size() > sketch.capacity() || !(again == sketch)) std::abort();
  return 0;
}
