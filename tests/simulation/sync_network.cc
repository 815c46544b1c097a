#include "tests/simulation/sync_network.h"

#include <string_view>
#include <utility>

#include "semel/core/assert.h"

namespace semel::simulation {
namespace {

// More deliveries than any simulated sync of this size takes.
constexpr int kMostDeliveries = 200'000;

}  // namespace

SyncSite::SyncSite(const Secret& secret, std::uint32_t burst_bytes)
    : index_(*IndexedStore::open(store_, secret,
                                 {.burst_bytes = burst_bytes, .slab_bytes = 16 * burst_bytes})) {}

Records SyncSite::records() const {
  Records records;
  const auto cursor = *store_.cursor();
  for (cursor->seek(""); cursor->valid(); cursor->next()) {
    records.emplace(cursor->key(), cursor->value());
  }
  return records;
}

void SyncSite::put(const std::string& key, const std::string& value) {
  const RecordWrite write{key, value};
  SEMEL_ASSERT(store_.write({&write, 1}).has_value());
}

void SyncSite::join(const std::string& key, const std::string& value, const Resolver& resolver) {
  const std::string_view keys[] = {key};
  const Result<void> written =
      store_.update(keys, [&](std::size_t, std::optional<std::string_view> now) {
        return std::optional(now ? resolver.merged(key, *now, value) : value);
      });
  SEMEL_ASSERT(written.has_value());
}

Network::Outcome Network::run(IndexedStore& here, const SyncSettings& settings, Responder& there,
                              const Between& between) {
  Initiator sync(here, settings);
  Outcome outcome;
  for (int delivery = 0; !sync.done() && !sync.failed(); ++delivery) {
    if (delivery == kMostDeliveries) {
      outcome.end = Outcome::End::endless;
      return outcome;
    }
    if (!between(sync)) {
      outcome.end = Outcome::End::stopped;
      return outcome;
    }
    if (sync.done()) break;
    // Nothing is on its way, or patience has run out.
    if (messages_.empty() || happens(0.05)) {
      for (const ByteView frame : sync.outstanding()) send(false, frame);
      continue;
    }
    const Message message = take();
    if (message.is_answer) {
      // The sync itself reports a refusal.
      (void)sync.receive(message.bytes).has_value();
    } else {
      send(true, there.respond(message.bytes));
    }
  }
  outcome.report = sync.report();
  if (sync.failed()) {
    outcome.end = Outcome::End::failed;
    outcome.error = sync.error();
    outcome.words = sync.error().message();
  }
  return outcome;
}

void Network::send(bool is_answer, ByteView bytes) {
  if (happens(faults_.lost)) return;
  const int copies = happens(faults_.doubled) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    Bytes frame(bytes.begin(), bytes.end());
    if (happens(faults_.cut)) frame.resize(random_.below(frame.size()));
    if (!frame.empty() && happens(faults_.corrupt)) {
      for (std::uint64_t times = 1 + random_.below(4); times > 0; --times) {
        frame[random_.below(frame.size())] ^= static_cast<std::uint8_t>(1 + random_.below(255));
      }
    }
    messages_.push_back({is_answer, std::move(frame)});
  }
}

Network::Message Network::take() {
  const std::size_t at = happens(faults_.reorder) ? random_.below(messages_.size()) : 0;
  Message message = std::move(messages_[at]);
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(at));
  return message;
}

}  // namespace semel::simulation
