// Two stores took writes independently. sync() makes them agree again, at a cost in proportion to
// their difference.
#include "semel/sync/sync.h"

#include <cstdio>
#include <string>

#include "semel/store/memory_store.h"
#include "semel/sync/responder.h"

namespace {

bool put(semel::OrderedStore& store, const std::string& key, const std::string& value) {
  const semel::RecordWrite write{key, value};
  return store.write({&write, 1}).has_value();
}

}  // namespace

int main() {
  semel::MemoryStore here_store;
  semel::MemoryStore there_store;
  for (int i = 0; i < 100'000; ++i) {
    const std::string key = "user/" + std::to_string(i);
    put(here_store, key, "1");
    put(there_store, key, i % 10'000 == 7 ? "2" : "1");
  }

  // All sites of a group share the secret. This one is random.
  const semel::Secret secret = semel::Secret::random();
  auto here = semel::IndexedStore::open(here_store, secret, {});
  auto there = semel::IndexedStore::open(there_store, secret, {});
  if (!here || !there) return 1;

  // The two stores may be anywhere: they exchange only bytes.
  semel::Responder responder(**there, {});
  semel::LocalPeer peer(responder);
  const auto report = semel::sync(**here, peer, {.seed = 1});
  if (!report) return std::puts(report.error().message().c_str()), 1;

  std::printf("%llu differ; %llu bytes besides them, in %u round trips; proved: %s\n",
              static_cast<unsigned long long>(report->differences()),
              static_cast<unsigned long long>(report->bytes_sent + report->bytes_received -
                                              report->payload_bytes),
              report->round_trips, report->proved ? "yes" : "no");
  return report->proved && report->differences() == 10 ? 0 : 1;
}
