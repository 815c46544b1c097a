// An order is processed by one of several workers; if that one crashes, by another.
#include <cstdio>

#include "semel/hash/hasher.h"
#include "semel/sift/sifter.h"
#include "semel/window/exact_window.h"

int main() {
  const semel::Hasher hash = semel::Hasher::fast(42);
  const semel::SystemClock clock;
  auto window =
      semel::ExactWindow::make({.window_ms = 3'600'000, .hash = hash.id()}, clock.now_ms());
  if (!window) return std::puts(window.error().what), 1;
  semel::Sifter orders(*std::move(window), 60'000);

  const semel::Digest order = hash("order 17");
  const std::uint64_t ann = 1, ben = 2;  // workers: another number for every run of each
  const semel::TimeMs until_ms = orders.now() + 1000;

  if (orders.claim(order, ann, until_ms) == semel::Sighting::fresh) std::puts("ann works");
  if (orders.claim(order, ben, until_ms) == semel::Sighting::pending) std::puts("ben waits");

  orders.advance(until_ms);  // ann has crashed
  if (orders.claim(order, ben, until_ms + 1000) == semel::Sighting::fresh) std::puts("ben works");
  if (orders.commit(order, ben) == semel::Commit::done) std::puts("ben is done");
  if (orders.commit(order, ann) == semel::Commit::seen) std::puts("ann is too late");
  if (orders.add(order) == semel::Sighting::seen) std::puts("and it comes no more");
}
