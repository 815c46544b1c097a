// Any bytes as the body of a question: the responder answers with a frame within its limit, and
// touches nothing outside its range. The input begins with the kind of the frame; header and
// checksum are made right.
#include <array>
#include <cstdlib>
#include <string>

#include "semel/store/memory_store.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/responder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel;
  using namespace semel::sync_internal;
  const std::array<std::uint8_t, Secret::kSize> zeros{};
  const Secret secret(zeros);
  MemoryStore store;
  for (int n = 0; n < 24; ++n) {
    const std::string key = std::string("k").append(std::to_string(n * n * n));
    const std::string value(static_cast<std::size_t>(n), 'v');
    const std::array<RecordWrite, 3> writes = {
        RecordWrite{key, value}, {"a", "below"}, {"x", "above"}};
    if (!store.write(writes)) std::abort();
  }
  const auto index = IndexedStore::open(store, secret, {.burst_bytes = 256});
  Responder::Terms terms;
  terms.range = {"k", "l"};
  terms.limits.frame_bytes = 4096;
  Responder responder(**index, terms);
  const ByteView input(data, size);
  const Bytes to_anything = responder.respond(input);
  if (!frame::open(to_anything)) std::abort();
  if (input.empty()) return 0;

  const auto key = static_cast<std::uint32_t>(DigestKey(secret, KeyPurpose::entry).id().seed);
  frame::Builder question({static_cast<frame::Kind>(input[0]), 7, key});
  question.body().bytes(input.subspan(1));
  const Bytes answer = responder.respond(std::move(question).seal());
  const auto opened = frame::open(answer);
  if (!opened || answer.size() > terms.limits.frame_bytes) std::abort();
  if (opened->header.kind == frame::Kind::question) std::abort();
  if (**store.get("a") != "below" || **store.get("x") != "above") std::abort();
  const auto cursor = *store.cursor();
  std::size_t outside = 0;
  for (cursor->seek(""); cursor->valid(); cursor->next()) {
    outside += terms.range.contains(cursor->key()) ? 0 : 1;
  }
  if (outside != 2) std::abort();
  return 0;
}
