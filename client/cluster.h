// Cluster: the servers behind a URL, one or many, as one that answers commands on keys.
//
// Contract  A command goes to the primary of its key's slot. start() queues it, finish() sends all that
//           is queued, the commands of each node together, and waits for this one's answer. Commands on
//           one key take effect in the order of start(), as long as the first is finished before the
//           next is started; without failures in any case.
// Routes    The slots are asked for by CLUSTER SLOTS, and again after a failure. MOVED and ASK are
//           followed. A server without cluster support is one node with all slots.
// Retries   What was certainly not executed is sent again until the deadline, with growing pauses:
//           redirections, TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, MASTERDOWN and NOREPLICAS, and what
//           could not be sent. What was sent and not answered may or may not have been executed: it is
//           sent again only if it is Repeat::safe, otherwise finish() says that nobody knows.
// Replicas  With replicas() > 0 an answer counts only when so many replicas have all that the primary
//           had when it answered (WAIT): one that counts survives the loss of the primary, if a replica
//           that has it takes its place, which is certain when all replicas have it. If too few do, the
//           command is treated as sent and not answered.
// Waits     finish() returns by options.deadline_ms after start(), whatever the servers do:
//           connecting, logging in, redirections, retries and pauses all end there. connect() has
//           as long. end_by() may set an earlier end to both.
// Trust     None. A list of slots that makes no sense is an error, and redirections are not
//           followed to more than kMostNodes servers at once.
// Threads   A call needs the object to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/command.h"
#include "client/connection.h"
#include "client/reply.h"
#include "client/slot.h"
#include "client/url.h"
#include "semel/core/random.h"
#include "semel/core/result.h"

namespace semel::client {

struct ClusterOptions {
  ConnectionOptions connection = {};
  std::int64_t deadline_ms = 30'000;  // of a command, from start() on
  // That have to have it; none: one, if every primary has a replica when connect() asks.
  std::optional<std::uint32_t> replicas = 0;
  std::int64_t replicas_timeout_ms = 1'000;  // of each WAIT
  std::uint64_t seed = 0;                    // of the pauses, which differ from client to client
};

enum class Repeat : std::uint8_t { never, safe };

// What happened on the way, since the beginning.
struct ClusterCounts {
  std::uint64_t moved = 0;        // MOVED
  std::uint64_t asked = 0;        // ASK
  std::uint64_t later = 0;        // told to come back later
  std::uint64_t lost = 0;         // sent and not answered
  std::uint64_t unconfirmed = 0;  // answered, and with too few replicas
  std::uint64_t refreshed = 0;    // slots asked for again

  std::uint64_t retries() const { return moved + asked + later + lost; }
};

class Cluster {
 public:
  using Ticket = std::uint64_t;
  // As many as the authors of Redis Cluster recommend at most, and some.
  static constexpr std::size_t kMostNodes = 1024;

  explicit Cluster(Url url, ClusterOptions options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Finds the servers, and waits for one that is loading its data. Errc::io if none is there, Errc::mismatch if they do not let us in, Errc::invalid
  // for a database of a cluster other than 0. problem() says which.
  Result<void> connect();

  // From now on nothing waits beyond this time, until it is called again. kNever takes it back.
  void end_by(Time end) { end_ = end; }

  // REQUIRES: connect() was fine; the command is on a key of this slot.
  Ticket start(std::uint32_t slot, Command command, Repeat repeat);
  // Sends what is queued.
  void send();
  // The answer, which may be an error of the server. Errc::io if there is none by the deadline, or if
  // nobody knows. REQUIRES: the ticket is of start() and was not finished.
  Result<Reply> finish(Ticket ticket);

  // Both at once.
  Result<Reply> call(std::string_view key, Command command, Repeat repeat);

  // As of the last look at the slots.
  bool clustered() const { return clustered_; }
  std::size_t primaries() const;
  std::size_t nodes() const { return nodes_.size(); }
  const Address& address_of(std::uint32_t slot) const;  // REQUIRES: connect() was fine.
  std::uint32_t replicas() const { return replicas_; }  // that have to have what is answered

  const ClusterCounts& counts() const { return counts_; }
  const std::string& problem() const { return problem_; }  // the last one

 private:
  struct Node;
  struct Pending;

  // Null if it is finished.
  Pending* find(Ticket ticket);
  void wait(Ticket ticket, Pending& pending);
  Node& node_at(const Address& address);
  // Forgets the nodes that have no slot and owe no answer.
  void forget_idle_nodes();
  bool has_room_for(const Address& address);
  // Takes the problem of the connection for ours, if there was time to have one.
  void tell(const Connection& connection);
  Time deadline() const;  // of what starts now
  // The slots as this node sees them.
  Result<void> ask_slots(const Address& address, Time until);
  Result<void> take_slots(const Address& address, const Reply& reply);
  Result<void> take_single(const Address& address, Connection& connection, Time until);
  Result<void> refresh(Time until);
  void place(Ticket ticket, Pending& pending);
  void place_waiting();
  void send(Time until);
  void send(Node& node, Time until);
  // Takes the next answer of the node.
  void read(Node& node, Time until);
  void take(Node& node, Ticket ticket, Reply reply);
  void confirm(Node& node, const Reply& reply);
  void redirect(const Node& node, Pending& pending, std::string_view text, bool ask);
  void forget(Ticket ticket);
  // The connection is gone with all that was on it.
  void lose(Node& node);
  void unknown(Ticket ticket, const char* why);
  void pause(Time until);

  Url url_;
  ClusterOptions options_;
  Random random_;
  std::map<Address, std::unique_ptr<Node>> nodes_;
  std::vector<Node*> slots_;
  bool clustered_ = false;
  bool loading_ = false;  // whom we asked last for the slots: it will know soon
  std::uint32_t replicas_ = 0;
  std::size_t fewest_replicas_ = 0;  // of any primary
  std::deque<Pending> pending_;  // by the order of start(), from the first that is not finished on
  Ticket first_ = 0;             // the ticket of pending_.front()
  std::vector<Ticket> waiting_;  // for a node
  bool trouble_ = false;         // something is to be sent again, and not at once
  int pauses_ = 0;               // without an answer in between
  std::size_t asked_last_ = 0;
  Time end_ = kNever;
  ClusterCounts counts_;
  std::string problem_;
};

}  // namespace semel::client
