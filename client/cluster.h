// Cluster: one or many servers behind a URL, seen as one that answers commands on keys.
//
// Contract  A command goes to the primary of its key's slot. start() queues it. finish() sends all
//           that is queued, the commands of each node together, and waits for this one's answer.
//           Without failures, commands on one key take effect in the order of start(). With
//           failures, they do if the first is finished before the next is started.
// Routes    CLUSTER SLOTS tells the slots; it is asked again after a failure. MOVED and ASK are
//           followed. A server without cluster support is one node with all slots.
// Retries   A command that was certainly not executed is sent again until the deadline, with
//           growing pauses: after redirections, TRYAGAIN, CLUSTERDOWN, LOADING, READONLY,
//           MASTERDOWN and NOREPLICAS, or if it could not be sent. A command that was sent and not
//           answered may have been executed. It is sent again only if it is Repeat::safe.
//           Otherwise finish() says that nobody knows.
// Replicas  With replicas() > 0 an answer counts only when that many replicas have all that the
//           primary had when it answered (WAIT). Such an answer survives the loss of the primary if
//           a replica that has it takes its place. That is certain when all replicas have it. If
//           too few do, the command is treated as sent and not answered.
// Waits     finish() returns by options.deadline_ms after start(), whatever the servers do:
//           connecting, logging in, redirections, retries and pauses all end there. connect() has
//           the same limit. end_by() may set an earlier one for both.
// Trust     None. A list of slots that makes no sense is an error, and redirections are followed to
//           at most kMostNodes servers at once.
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
#include "semel/core/internal/random.h"
#include "semel/core/result.h"

namespace semel::client {

struct ClusterOptions {
  ConnectionOptions connection = {};
  std::int64_t deadline_ms = 30'000;  // of a command, from start() on
  // Replicas that must have an answer; none: one, if every primary has a replica at connect().
  std::optional<std::uint32_t> replicas = 0;
  std::int64_t replicas_timeout_ms = 1'000;  // of each WAIT
  std::uint64_t seed = 0;                    // of the pauses, which differ from client to client
};

enum class Repeat : std::uint8_t { never, safe };

// Counts of events on the way, since the beginning.
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
  // A few more than the authors of Redis Cluster recommend at most.
  static constexpr std::size_t kMostNodes = 1024;

  explicit Cluster(Url url, ClusterOptions options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Finds the servers, and waits for one that is loading its data. Errc::io if none is there,
  // Errc::mismatch if they do not let us in or refuse to tell, Errc::invalid for a cluster and a
  // database other than 0.
  Result<void> connect();

  // Lets nothing wait beyond this time, until it is called again. kNever takes it back.
  void end_by(Time end) { end_ = end; }

  // Queues a command. REQUIRES: connect() succeeded; the command is on a key of this slot.
  Ticket start(std::uint32_t slot, Command command, Repeat repeat);
  // Sends what is queued.
  void send();
  // Returns the answer, which may be an error of the server. Errc::io if there is none by the
  // deadline, or if nobody knows. REQUIRES: the ticket is of start() and was not finished.
  Result<Reply> finish(Ticket ticket);

  // Starts and finishes a command.
  Result<Reply> call(std::string_view key, Command command, Repeat repeat);

  // These tell what the last look at the slots showed.
  bool clustered() const { return clustered_; }
  std::size_t primaries() const;
  std::size_t nodes() const { return nodes_.size(); }
  const Address& address_of(std::uint32_t slot) const;  // REQUIRES: connect() succeeded.
  std::uint32_t replicas() const { return replicas_; }  // that must have an answer

  const ClusterCounts& counts() const { return counts_; }

 private:
  struct Node;
  struct Pending;

  // Returns nullptr if it is finished.
  Pending* find(Ticket ticket);
  void wait(Ticket ticket, Pending& pending);
  Node& node_at(const Address& address);
  // Forgets the nodes that have no slot and owe no answer.
  void forget_idle_nodes();
  bool has_room_for(const Address& address);
  // Keeps the words of the error. If it only says that there was no time, an earlier failure says
  // more, and its words stay. Returns the error to pass on.
  Error note(const Error& error);
  Time deadline() const;  // of what starts now
  // Learns the slots as this node sees them.
  Result<void> ask_slots(const Address& address, Time until);
  Result<void> take_slots(const Address& address, const Reply& reply);
  Result<void> take_single(const Address& address, Connection& connection, Time until);
  Result<void> count_replicas(const Address& address, Connection& connection, Time until);
  Result<void> refresh(Time until);
  void place(Ticket ticket, Pending& pending);
  void place_waiting();
  void send(Time until);
  void send(Node& node, Time until);
  // Takes the next answer of the node.
  void read(Node& node, Time until);
  void take(Node& node, Ticket ticket, Reply reply);
  void take_asking(Ticket ticket, Reply reply);
  void confirm(Node& node, const Reply& reply);
  void redirect(const Node& node, Pending& pending, std::string_view text, bool ask);
  void forget(Ticket ticket);
  // Gives up all that was on the connection, which has failed.
  void lose(Node& node, const Error& error);
  void unknown(Ticket ticket, const char* why);
  // Ends it without an answer.
  static void settle(Pending& pending, const char* why);
  void pause(Time until);

  Url url_;
  ClusterOptions options_;
  Random random_;
  std::map<Address, std::unique_ptr<Node>> nodes_;
  std::vector<Node*> slots_;
  bool clustered_ = false;
  bool loading_ = false;  // the node that we asked last for the slots will know them soon
  std::uint32_t replicas_ = 0;
  std::size_t fewest_replicas_ = 0;  // of any primary
  std::deque<Pending> pending_;  // in the order of start(), from the first that is not finished on
  Ticket first_ = 0;             // the ticket of pending_.front()
  std::vector<Ticket> waiting_;  // for a node
  bool trouble_ = false;         // something is to be sent again, and not at once
  int pauses_ = 0;               // without an answer in between
  std::size_t asked_last_ = 0;
  Time end_ = kNever;
  ClusterCounts counts_;
  std::string last_failure_;  // its words; empty before the first
};

}  // namespace semel::client
