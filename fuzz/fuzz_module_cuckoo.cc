// Any bytes, as a value and as chunks of a dump. A chunk is taken with the checksum that it should
// have, into a filter that has something in it already; what comes of it must be a sound value.
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include "fuzz/decode.h"
#include "module/types/cuckoo_value.h"
#include "semel/hash/digest.h"
#include "tests/support/held_value.h"

namespace {

using semel::module::CuckooValue;

std::unique_ptr<CuckooValue> filter() {
  const std::array<std::uint8_t, semel::Secret::kSize> secret{1, 2, 3};
  auto value = CuckooValue::make(semel::Secret(secret), {0.01, 4, 2, 20, 1});
  if (!value || !(*value)->begin_chain(1)) std::abort();
  for (const char* item : {"a", "b", "c", "d", "e"}) {
    (void)(*value)->add((*value)->hasher()(item), 0);
  }
  return *std::move(value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::HeldValue<CuckooValue>>(data, size);
  if (size < 8) return 0;
  semel::Bytes chunk(data, data + size);
  semel::store_u64(chunk.data() + size - 8,
                   semel::checksum(semel::ByteView(chunk).first(size - 8)));
  (void)CuckooValue::load_header(chunk);
  const std::unique_ptr<CuckooValue> value = filter();
  (void)value->load(chunk, 1 << 20);
  semel::Bytes after;
  value->encode(after);
  if (!CuckooValue::decode(after)) std::abort();
  return 0;
}
