// ClientWindow: recognises operations (client, sequence). Each client numbers its operations.
//
// Contract  The contract of window.h holds, and there are no false positives. An operation is
//           remembered for the window, and for less than a span (window / generations) beyond it.
//           It is a duplicate if and only if it was accepted and is still remembered, whatever the
//           order in which operations of a client come. A sequence that is not
//           remembered is `stale` if its client has forgotten the same or a higher one: it may have
//           been accepted. So no operation of a client is accepted twice while the client stays. A
//           client stays while one of its operations is remembered. After that it is a new client,
//           and any sequence is fresh. insert() remembers any sequence.
// Clients   Sequences may be any numbers, with gaps. A sequence much higher than the others makes
//           them stale when it is forgotten. A client that numbers in several ranges at once must
//           use several client ids.
// Full      The operations of the oldest generation are forgotten early, in one call that takes
//           longer the more clients they have. If their client stays, they are stale from then on.
// Merge     The union of two windows with the same goal and the same time: both the operations and
//           the forgotten sequences. If the union exceeds the cap, merge() fails with Errc::full. A
//           merge that fails changes nothing.
// Layout    Each client has its highest forgotten sequence, and a mark for each generation in which
//           it was active. A mark is the set of the accepted sequences.
// Cost      A call takes a lookup in a hash table, and a binary search in each mark. Later calls
//           clear operations that have left the window, a few marks each. As the number of clients
//           grows, the hash table is rebuilt from time to time, in one long call.
// Memory    A client takes 96 bytes and a mark about 120, for any number of operations in order.
//           With 4 generations an operation takes 0.37 bytes at 2000 operations in a window, and 6
//           bytes at 100. An operation whose sequence stands alone takes 16 to 20 bytes.
// Limits    Whoever chooses digests can make the hash table slow: use the keyed hash for untrusted
//           clients.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/client_window_v1.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/hidden.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/window/window.h"

namespace semel {

struct ClientOperation {
  Digest client;
  std::uint64_t sequence;
  bool operator==(const ClientOperation&) const = default;
};

class SEMEL_API ClientWindow {
 public:
  using Id = ClientOperation;

  struct Goal {
    TimeMs window_ms;
    std::uint32_t generations = 4;  // in a window, 1 to 64
    std::uint64_t max_bytes = kNoCap;
    OnFull on_full = OnFull::refuse;
    HashId hash = {};
    bool operator==(const Goal&) const = default;
  };
  static constexpr std::uint64_t kLeastCap = 4096;

  // Errors: Errc::invalid unless window_ms > 0, generations are 1 to 64 and max_bytes >= kLeastCap.
  static Result<ClientWindow> make(const Goal& goal, TimeMs now_ms);

  // REQUIRES for all ids: the digest of the client was made by goal().hash.
  Verdict test(const ClientOperation& id) const { return test(id, now()); }
  Verdict test(const ClientOperation& id, TimeMs now_ms) const;  // the same after advance(now_ms)
  Verdict insert(const ClientOperation& id) { return insert(id, now()); }
  Verdict insert(const ClientOperation& id, TimeMs at_ms);
  Verdict test_and_insert(const ClientOperation& id) { return test_and_insert(id, now()); }
  Verdict test_and_insert(const ClientOperation& id, TimeMs at_ms);
  void test(std::span<const ClientOperation> ids, std::span<Verdict> verdicts) const;
  void insert(std::span<const ClientOperation> ids, std::span<Verdict> verdicts);
  void test_and_insert(std::span<const ClientOperation> ids, std::span<Verdict> verdicts);

  // Returns true if this many more ids need no large block (limits::kSmallBlock).
  bool takes(std::uint64_t ids) const;

  void advance(TimeMs now_ms);
  TimeMs now() const;
  WindowPromise promise() const;
  WindowCounts counts() const;
  double false_positive_rate() const { return 0; }
  // Includes operations that have left the window and are not yet cleared.
  std::uint64_t bytes() const { return bytes_; }

  const Goal& goal() const { return goal_; }
  // Changes the cap, to kLeastCap or more. Memory beyond a lower cap stays until its operations
  // leave the window.
  void set_max_bytes(std::uint64_t max_bytes) { goal_.max_bytes = std::max(max_bytes, kLeastCap); }
  // Returns how many clients there are, with those that have left and are not yet cleared.
  std::uint64_t clients() const;

  // Returns the highest forgotten sequence of a client; nullopt if there is none or the client has
  // left.
  std::optional<std::uint64_t> forgotten(Digest client) const;
  // Restores forgotten() after a restart. Call it after the remembered operations were inserted
  // again. It does nothing for a client without remembered operations, because that one has left.
  void restore_forgotten(Digest client, std::uint64_t sequence);

  // Errors: Errc::mismatch if goal or now differ; Errc::full beyond the cap.
  Result<void> merge(const ClientWindow& other);

  // Appends the encoding to `out`.
  void encode(Sink out) const;
  // Reads one window that fills `in` exactly. `in` is untrusted.
  static Result<ClientWindow> decode(ByteView in);

  // Compares what is remembered and all that decides what happens next, not counts().
  bool operator==(const ClientWindow& other) const;

 private:
  struct Mark;
  struct Client;
  struct Memory;

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
  Result<void> read_marks(Reader& r, Digest client, std::uint64_t marks);

  Goal goal_;
  Hidden<Memory> memory_;
  std::uint64_t bytes_;
  WindowCounts counts_;  // except the backward steps, which the time counts
};

}  // namespace semel
