// Two stores took writes apart from each other; now they agree again, for what the difference costs.
#include <cstdio>
#include <string>

#include "semel/store/memory_store.h"
#include "semel/sync/initiator.h"
#include "semel/sync/responder.h"

namespace {

bool put(semel::OrderedStore& store, const std::string& key, const std::string& value) {
  const semel::Write write{key, value};
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

  // All sites of a group share the secret; here it is made up.
  const semel::Secret secret = semel::Secret::random();
  auto here = semel::IndexedStore::open(here_store, secret, {});
  auto there = semel::IndexedStore::open(there_store, secret, {});
  if (!here || !there) return 1;

  // The two may be anywhere: all that they exchange is bytes.
  semel::Responder responder(**there, {});
  semel::Initiator sync(**here, {.seed = 1});
  while (!sync.done() && !sync.failed()) {
    std::vector<semel::Bytes> answers;
    for (const semel::ByteView question : sync.outstanding()) {
      answers.push_back(responder.respond(question));
    }
    for (const semel::Bytes& answer : answers) {
      if (!sync.receive(answer)) break;
    }
  }
  if (sync.failed()) return std::puts(sync.error().what), 1;

  const semel::SyncReport report = sync.report();
  std::printf("%llu differ; %llu bytes besides them, in %u round trips; proved: %s\n",
              static_cast<unsigned long long>(report.differences()),
              static_cast<unsigned long long>(report.bytes_sent + report.bytes_received -
                                              report.payload_bytes),
              report.round_trips, report.proved ? "yes" : "no");
  return report.proved && report.differences() == 10 ? 0 : 1;
}
