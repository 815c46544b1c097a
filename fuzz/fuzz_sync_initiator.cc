// Any bytes as the bodies of answers: the initiator fails or goes on, and touches nothing outside
// its range. The input begins with the way and the rule; then comes one answer after another: its
// kind, two bytes of length, its body. Number, key and checksum are made right.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "semel/store/memory_store.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/internal/initiator.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel;
  using namespace semel::sync_internal;
  const std::array<std::uint8_t, Secret::kSize> zeros{};
  MemoryStore store;
  for (int n = 0; n < 24; ++n) {
    const std::string key = std::string("k").append(std::to_string(n * n * n));
    const std::string value(static_cast<std::size_t>(n), 'w');
    const std::array<RecordWrite, 3> writes = {
        RecordWrite{key, value}, {"a", "below"}, {"x", "above"}};
    if (!store.write(writes)) std::abort();
  }
  const auto index = IndexedStore::open(store, Secret(zeros), {.burst_bytes = 256});
  Reader in({data, size});
  SyncSettings settings;
  settings.range = {"k", "l"};
  settings.limits.frame_bytes = 4096;
  settings.way = static_cast<SyncWay>(1 + in.u8() % 4);
  const std::uint8_t rule = in.u8();
  settings.resolver.rule = static_cast<SyncRule>(rule % 5);
  settings.resolver.remove_extra = settings.resolver.rule == SyncRule::source;
  settings.resolver.role = static_cast<SyncRole>(rule / 5 % 2);
  settings.resolver.callback = [](std::string_view, std::optional<std::string_view> source,
                                  std::optional<std::string_view>) {
    return source ? std::optional<std::string>(*source) : std::nullopt;
  };
  settings.purpose = static_cast<SyncPurpose>((2 + rule / 10) % 3);
  Initiator sync(**index, settings);
  while (in.ok() && in.rest() > 0 && !sync.done() && !sync.failed()) {
    frame::Header header = frame::header_of(sync.outstanding().front());
    header.kind = static_cast<frame::Kind>(in.u8());
    const std::uint16_t length = in.u16();
    frame::Builder answer(header);
    answer.body().bytes(in.view(std::min<std::size_t>(length, in.rest())));
    (void)sync.receive(std::move(answer).seal()).has_value();
  }
  const auto cursor = *store.cursor();
  std::size_t outside = 0;
  for (cursor->seek(""); cursor->valid(); cursor->next()) {
    outside += settings.range.contains(cursor->key()) ? 0 : 1;
  }
  if (outside != 2) std::abort();
  return 0;
}
