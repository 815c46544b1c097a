#include "fuzz/decode.h"
#include "semel/hash/internal/checksum.h"
#include "semel/window/internal/forgetful_filter.h"

namespace {

// A decoded filter must live on: it keeps its promise to an id that it takes now, while time
// passes, lanes rotate and the filter grows.
void live_on(semel::ByteView bytes) {
  auto filter = semel::window_internal::ForgetfulFilter::decode(bytes);
  if (!filter) return;
  const semel::Digest id = {0x0123456789abcdef, 0xfedcba9876543210};
  const semel::Verdict verdict = filter->test_and_insert(id);
  for (int step = 0; step < 4; ++step) {
    semel::TimeMs later = 0;
    const semel::TimeMs by = filter->goal().window_ms / 4;
    if (__builtin_add_overflow(filter->now(), by, &later)) return;
    filter->advance(later);
    (void)filter->insert({static_cast<std::uint64_t>(step), 1});
    (void)filter->false_positive_rate();
    const bool early = filter->counts().forgotten_early != 0;
    if (verdict == semel::Verdict::fresh && !early &&
        filter->test(id) != semel::Verdict::duplicate) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<semel::window_internal::ForgetfulFilter>(data, size);
  if (size < 8) return 0;
  semel::Bytes repaired(data, data + size);
  semel::store_u64(repaired.data() + size - 8,
                   semel::checksum(semel::ByteView(repaired).first(size - 8)));
  live_on(repaired);
  return 0;
}
