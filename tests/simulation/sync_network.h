// A sync over a network with every kind of fault. It runs step by step, from one seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/index/indexed_store.h"
#include "semel/store/memory_store.h"
#include "semel/sync/internal/initiator.h"
#include "semel/sync/responder.h"

namespace semel::simulation {

using sync_internal::Initiator;

using Records = std::map<std::string, std::string>;

// A store with its index, and the calls of a client.
class SyncSite {
 public:
  SyncSite(const Secret& secret, std::uint32_t burst_bytes);

  IndexedStore& index() { return *index_; }
  Records records() const;
  void put(const std::string& key, const std::string& value);
  // Writes like a client under a join: the value is joined with the present one.
  void join(const std::string& key, const std::string& value, const Resolver& resolver);

 private:
  MemoryStore store_;
  std::unique_ptr<IndexedStore> index_;
};

// Probabilities for each message.
struct NetworkFaults {
  double lost = 0;
  double doubled = 0;
  double cut = 0;      // cut at any length
  double corrupt = 0;  // some bytes
  double reorder = 0;  // otherwise messages come in the order in which they were sent
};

// Carries frames between one initiator and one responder. Frames that are on their way when a sync
// ends reach its successors.
class Network {
 public:
  Network(std::uint64_t seed, const NetworkFaults& faults) : random_(seed), faults_(faults) {}

  struct Outcome {
    enum class End : std::uint8_t { done, failed, stopped, endless } end = End::done;
    Error error{};
    std::string words;  // from the peer that refused
    SyncReport report;
  };
  // Called before every delivery. False stops the sync, as a crash of the initiator does.
  using Between = std::function<bool(Initiator& sync)>;
  Outcome run(IndexedStore& here, const SyncSettings& settings, Responder& there,
              const Between& between);
  void clear() { messages_.clear(); }

 private:
  struct Message {
    bool is_answer;
    Bytes bytes;
  };
  void send(bool is_answer, ByteView bytes);
  Message take();
  bool happens(double probability) { return random_.unit() < probability; }

  Random random_;
  NetworkFaults faults_;
  std::vector<Message> messages_;
};

}  // namespace semel::simulation
