// An order is processed by one of several workers; if that one crashes, by another.
#include <cstdio>

#include "semel/hash/hasher.h"
#include "semel/sift/sifter.h"

using semel::ClaimAnswer;

int main() {
  const semel::Hasher hash = semel::Hasher::fast(42);
  const semel::TimeMs now = semel::SystemClock().now_ms(), later = now + 1000;
  auto orders = semel::Sifter::make(
      {{.structure = semel::Window::Structure::exact, .window_ms = 3'600'000, .hash = hash.id()}},
      now);
  if (!orders) return std::puts(orders.error().message().c_str()), 1;

  const semel::Digest order = hash("order 17");
  const std::uint64_t ann = 1, ben = 2;  // workers: another number for every run of each
  if (orders->claim(order, ann, later, now) == ClaimAnswer::fresh) std::puts("ann works");
  if (orders->claim(order, ben, later, now) == ClaimAnswer::pending) std::puts("ben waits");

  const semel::TimeMs end = later + 1000;  // ann has crashed
  if (orders->claim(order, ben, end, later) == ClaimAnswer::fresh) std::puts("ben works");
  if (orders->commit(order, ben, later) == ClaimAnswer::done) std::puts("ben is done");
  if (orders->commit(order, ann, later) == ClaimAnswer::seen) std::puts("ann is too late");
  if (orders->test_and_insert(order, later) == ClaimAnswer::seen) std::puts("it comes no more");
}
