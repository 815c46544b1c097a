// ClientWindow: recognises operations (client, sequence), where a client numbers its own.
//
// Contract  As in window.h, and exact: an operation is a duplicate if and only if it was accepted in a
//           generation that is still remembered, in whatever order the operations of a client come. A
//           sequence that is not remembered, and not above the highest of this client that has been
//           forgotten, is `stale`: it may have been accepted. So no operation of a client is accepted
//           twice while the client stays. A client stays while one of its operations is remembered;
//           after that it is as if it had never come, and any sequence is fresh. insert() remembers
//           any sequence, whatever was forgotten.
//           An operation is remembered beyond the window for less than a span, window / generations.
// Clients   A sequence may be any number, and skip any; but one much higher than the others makes
//           these stale when it is forgotten. Who numbers in several ranges at once is several
//           clients.
// Full      The operations of the oldest generation go early, in one call as long as their clients are
//           many. They are stale then, if the client stays.
// Merge     The union of two windows of one goal at the same time: of the operations, and of what was
//           forgotten. Beyond the cap it fails with Errc::full. Whatever fails changes nothing.
// Layout    For each client the highest sequence forgotten, and for each generation in which it was
//           active a mark: the set of the sequences accepted (sequence_set.h).
// Cost      A look at a hash table, and a binary search in each mark. What has left the window is
//           cleared by later calls, a few marks each. As the clients grow in number the hash table is
//           rebuilt at times, in one long call.
// Memory    96 bytes a client and about 120 a mark, for any number of operations in order: with 4
//           generations 0.37 bytes for an operation at 2000 in a window, 6 at 100. An operation whose
//           sequence stands alone takes 16 to 20.
// Limits    Whoever chooses digests can make the hash table slow: clients from outside take the keyed
//           hash.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/client_window_v1.md.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/window/internal/generation_time.h"
#include "semel/window/internal/sequence_set.h"
#include "semel/window/window.h"

namespace semel {

struct ClientOperation {
  Digest client;
  std::uint64_t sequence;
  bool operator==(const ClientOperation&) const = default;
};

class ClientWindow {
 public:
  using Id = ClientOperation;

  struct Goal {
    TimeMs window_ms;
    std::uint32_t generations = 4;  // in a window, 1 to 64
    std::uint64_t max_bytes = kNoCap;
    WhenFull when_full = WhenFull::refuse;
    HashId hash = {};
    bool operator==(const Goal&) const = default;
  };
  static constexpr std::uint64_t kLeastCap = 4096;

  // Errc::invalid unless window_ms > 0, generations are 1 to 64 and max_bytes >= kLeastCap.
  static Result<ClientWindow> make(const Goal& goal, TimeMs now_ms);

  // REQUIRES, of all that take an id: the digest of the client was made by goal().hash.
  Verdict test(const ClientOperation& id) const { return test(id, now()); }
  Verdict test(const ClientOperation& id, TimeMs now_ms) const;  // the same after advance(now_ms)
  Verdict insert(const ClientOperation& id) { return insert(id, now()); }
  Verdict insert(const ClientOperation& id, TimeMs at_ms);
  Verdict test_and_insert(const ClientOperation& id) { return test_and_insert(id, now()); }
  Verdict test_and_insert(const ClientOperation& id, TimeMs at_ms);
  void test(std::span<const ClientOperation> ids, std::span<Verdict> verdicts) const;
  void insert(std::span<const ClientOperation> ids, std::span<Verdict> verdicts);
  void test_and_insert(std::span<const ClientOperation> ids, std::span<Verdict> verdicts);

  // Whether so many more ids take no large block (limits::kSmallBlock).
  bool takes(std::uint64_t ids) const;

  void advance(TimeMs now_ms);
  TimeMs now() const { return time_.now(); }
  Promise promise() const { return time_.promise(); }
  WindowCounts counts() const;
  double false_positive_rate() const { return 0; }
  // What has left the window and is not yet cleared included.
  std::uint64_t bytes() const { return bytes_; }

  const Goal& goal() const { return goal_; }
  // Changes the cap. What is beyond a lower one stays until it leaves the window.
  void set_max_bytes(std::uint64_t max_bytes) { goal_.max_bytes = max_bytes; }
  // Clients, those that have left and are not yet cleared included.
  std::uint64_t clients() const { return clients_.size(); }

  // The highest sequence of a client that is no longer remembered; nullopt if there is none, or the
  // client has left.
  std::optional<std::uint64_t> forgotten(Digest client) const;
  // The same as before a restart, after what is remembered was inserted again. A client of which
  // nothing is remembered has left.
  void restore_forgotten(Digest client, std::uint64_t sequence);

  // Errc::mismatch if goal or now differ; Errc::full beyond the cap.
  Result<void> merge(const ClientWindow& other);

  // Appends the encoding to `out`.
  void encode(Sink out) const;
  // Reads one window that fills `in` exactly. `in` may come from an enemy.
  static Result<ClientWindow> decode(ByteView in);

  // Whether both remember the same, and would go on in the same way. counts() may differ.
  bool operator==(const ClientWindow& other) const;

 private:
  struct Mark {
    std::int64_t generation;
    SequenceSet sequences;
    bool operator==(const Mark&) const = default;
  };
  struct Client {
    std::optional<std::uint64_t> forgotten;  // the highest sequence
    std::vector<Mark> marks;                 // ascending by generation; capacity: the size

    // Takes the first `count` marks out, and their highest sequence into `forgotten`.
    void forget(std::size_t count);
    bool operator==(const Client&) const = default;
  };
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const noexcept { return digest.lo; }
  };
  // Which clients have a mark in a generation, or had one.
  struct Roll {
    std::int64_t generation;
    std::deque<Digest> clients;
  };

  ClientWindow(const Goal& goal, TimeMs now_ms);

  Verdict judge(const Client& client, std::uint64_t sequence, TimeMs now_ms) const;
  std::optional<std::uint64_t> forgotten_of(const Client& client, std::size_t dead) const;
  bool remembers(const ClientOperation& id, std::int64_t from_generation) const;
  Verdict place(const ClientOperation& id, TimeMs at_ms);
  bool place_at_once(Client& client, std::uint64_t sequence, TimeMs at_ms);
  void put(Mark& mark, std::uint64_t sequence);
  bool some_have_left() const;
  bool make_room(const ClientOperation& id, std::int64_t generation);
  std::uint64_t bytes_for(const ClientOperation& id, std::int64_t generation) const;
  Mark& mark_of(Digest client, std::int64_t generation);
  void clear(Digest client);
  bool clear_one();
  void clear_some(int marks);
  void forget_oldest();
  void forget(Digest client, std::size_t marks);
  std::size_t dead_marks(const Client& client) const { return dead_marks(client, now()); }
  std::size_t dead_marks(const Client& client, TimeMs now_ms) const;
  std::vector<std::pair<Digest, Client>> remembered() const;
  void encode_client(const Client& client, Writer& out) const;
  bool decode_marks(Reader& r, Digest client, std::uint64_t marks);

  Goal goal_;
  GenerationTime time_;
  std::unordered_map<Digest, Client, DigestHash> clients_;
  std::deque<Roll> rolls_;  // ascending by generation; none is empty
  std::uint64_t bytes_;
  WindowCounts counts_;  // but for the steps backwards, which time_ counts
};

}  // namespace semel
