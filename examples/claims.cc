// An order is processed by one of several workers; if that one crashes, by another.
#include <cstdio>

#include "semel/hash/hasher.h"
#include "semel/sift/sifter.h"

using semel::ClaimAnswer;

int main() {
  const semel::Hasher hash = semel::Hasher::fast(42);
  const semel::TimeMs now_ms = semel::SystemClock().now_ms(), until_ms = now_ms + 1000;
  auto orders = semel::Sifter::make(
      {{.structure = semel::Window::Structure::exact, .window_ms = 3'600'000, .hash = hash.id()},
       60'000},
      now_ms);
  if (!orders) return std::puts(orders.error().message().c_str()), 1;

  const semel::Digest order = hash("order 17");
  const std::uint64_t ann = 1, ben = 2;  // workers: another number for every run of each
  const auto claims = [&](std::uint64_t worker, semel::TimeMs at_ms) {
    return orders->claim(order, worker, at_ms + 1000, at_ms);
  };

  if (claims(ann, now_ms) == ClaimAnswer::fresh) std::puts("ann works");
  if (claims(ben, now_ms) == ClaimAnswer::pending) std::puts("ben waits");
  if (claims(ben, until_ms) == ClaimAnswer::fresh) std::puts("ben works");  // ann has crashed
  if (orders->commit(order, ben, until_ms) == ClaimAnswer::done) std::puts("ben is done");
  if (orders->commit(order, ann, until_ms) == ClaimAnswer::seen) std::puts("ann is too late");
  if (orders->test_and_insert(order, until_ms) == ClaimAnswer::seen) {
    std::puts("and it comes no more");
  }
}
