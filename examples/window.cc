// A payment is taken once, though its network retries; after ten minutes its number may come again.
#include "semel/window/window.h"

#include <cstdio>

#include "semel/core/clock.h"
#include "semel/hash/hasher.h"

int main() {
  const semel::Hasher hash = semel::Hasher::fast(42);
  const semel::SystemClock clock;
  auto seen = semel::Window::make(
      {.window_ms = 600'000, .fpr = 1e-6, .max_bytes = 64 << 20, .hash = hash.id()},
      clock.now_ms());
  if (!seen) return std::puts(seen.error().message().c_str()), 1;
  for (const char* payment : {"pay 17", "pay 18", "pay 17"}) {
    seen->advance(clock.now_ms());
    switch (seen->test_and_insert(hash(payment))) {
      case semel::Verdict::fresh:
        std::printf("%s: done\n", payment);
        break;
      case semel::Verdict::duplicate:
        std::printf("%s: done before\n", payment);
        break;
      case semel::Verdict::stale:
        std::printf("%s: too old to judge\n", payment);
        break;
      default:
        std::printf("%s: no memory left, try later\n", payment);
        break;
    }
  }
  std::printf("error now: %.2g, in %llu bytes\n", seen->false_positive_rate(),
              static_cast<unsigned long long>(seen->bytes()));
}
