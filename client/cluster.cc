#include "client/cluster.h"

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <utility>

#include "semel/core/assert.h"

namespace semel::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A pipeline longer than this is sent before it is complete: the server works meanwhile.
constexpr std::size_t kEnoughToSend = std::size_t{64} << 10;
constexpr int kQuickRedirections = 5;
constexpr const char* kLost =
    "the connection was lost before the answer, and nobody knows whether it was executed";
constexpr const char* kCannotMove = "the slot moves, and the server refuses to be asked for it";
constexpr const char* kNotAskable =
    "replicas must have the answer, and the server refuses to wait for them";
constexpr std::int64_t kFirstPauseMs = 5;
constexpr std::int64_t kLongestPauseMs = 320;
// What CLUSTER SLOTS says at a server without cluster support.
constexpr std::string_view kNoCluster = "cluster support disabled";
constexpr const char* kAllowedForSlots = "; allowed: a user with +cluster|slots";
constexpr const char* kAllowedWithoutSlots =
    "; allowed: CLUSTER under its own name, or --replicas with their number";
constexpr const char* kAllowedForReplicas =
    "; allowed: a user with +role, or --replicas with their number";
constexpr const char* kAllowedToWait = "; allowed: a user with +wait, or --replicas 0";
constexpr const char* kAllowedToMove = "; allowed: a user with +asking";
// The limits of CLUSTER SLOTS: every slot in a range of its own, with a primary and a replica.
constexpr ReplyLimits kSlotsLimits = {.bytes = std::size_t{8} << 20,
                                      .elements = std::size_t{1} << 18};

// Errors of commands that were not executed and may be later.
constexpr std::array<std::string_view, 6> kLater = {"TRYAGAIN", "CLUSTERDOWN", "LOADING",
                                                    "READONLY", "MASTERDOWN",  "NOREPLICAS"};

// Returns true if the server does not let this user ask, or does not know the command under this
// name. That says nothing about what was asked, and it does not pass.
bool is_refused(const Reply& reply) {
  return reply.is_error("NOPERM") || reply.text().starts_with("ERR unknown command");
}

std::string_view next_word(std::string_view& text) {
  const std::size_t blank = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, blank);
  text.remove_prefix(std::min(blank + 1, text.size()));
  return word;
}

}  // namespace

enum class Stage : std::uint8_t {
  waiting,  // for a node
  placed,   // on a node, queued or sent
  replied,  // but not confirmed
  settled,
  finished,
};

struct Cluster::Pending {
  std::uint32_t slot;
  Command command;
  Repeat repeat;
  Time deadline;
  Stage stage = Stage::waiting;
  Node* node = nullptr;
  std::optional<Address> ask = {};  // go there, this once
  int redirections = 0;
  std::optional<Reply> asking_refused = {};
  std::optional<Reply> reply = {};
  const char* error = nullptr;  // why it is settled without a reply
};

struct Cluster::Node {
  Node(const Address& address, const Login& login, const ConnectionOptions& options)
      : connection(address, login, options) {}

  enum class Answer : std::uint8_t { command, asking, wait };
  struct Expected {
    Answer answer;
    Ticket ticket;
  };
  Connection connection;
  std::deque<Expected> expected;    // in the order of the answers
  std::vector<Ticket> unconfirmed;  // replied, until the next WAIT is answered
  bool unsent = false;
};

Cluster::Cluster(Url url, ClusterOptions options)
    : url_(std::move(url)), options_(options), random_(options.seed), slots_(kSlots, nullptr) {}
Cluster::~Cluster() = default;

Cluster::Pending* Cluster::find(Ticket ticket) {
  if (ticket < first_) return nullptr;
  SEMEL_ASSERT(ticket - first_ < pending_.size());
  Pending& pending = pending_[ticket - first_];
  return pending.stage == Stage::finished ? nullptr : &pending;
}

void Cluster::wait(Ticket ticket, Pending& pending) {
  pending.stage = Stage::waiting;
  waiting_.push_back(ticket);
}

void Cluster::forget(Ticket ticket) {
  Pending& pending = *find(ticket);
  pending.stage = Stage::finished;
  pending.command.clear();
  while (!pending_.empty() && pending_.front().stage == Stage::finished) {
    pending_.pop_front();
    ++first_;
  }
}

bool Cluster::has_room_for(const Address& address) {
  if (nodes_.size() < kMostNodes || nodes_.contains(address)) return true;
  forget_idle_nodes();
  return nodes_.size() < kMostNodes;
}

Cluster::Node& Cluster::node_at(const Address& address) {
  auto& node = nodes_[address];
  if (!node) {
    node = std::make_unique<Node>(address, Login{url_.user, url_.password, url_.database},
                                  options_.connection);
  }
  return *node;
}

void Cluster::forget_idle_nodes() {
  std::vector<const Node*> in_use(slots_.begin(), slots_.end());
  std::sort(in_use.begin(), in_use.end());
  std::erase_if(nodes_, [&](const auto& entry) {
    const Node& node = *entry.second;
    return node.expected.empty() && node.unconfirmed.empty() &&
           !std::binary_search(in_use.begin(), in_use.end(), &node);
  });
}

Error Cluster::note(const Error& error) {
  if (error.code != Errc::limit || last_failure_.empty()) last_failure_ = error.message();
  return {error.code == Errc::limit ? Errc::io : error.code, last_failure_};
}

Time Cluster::deadline() const {
  return std::min(end_, steady_clock::now() + milliseconds(options_.deadline_ms));
}

Result<void> Cluster::connect() {
  const Time until = deadline();
  for (Result<void> found = refresh(until); !found; found = refresh(until)) {
    if (!loading_ || steady_clock::now() >= until) return found;
    pause(until);
  }
  replicas_ = options_.replicas.value_or(fewest_replicas_ > 0 ? 1 : 0);
  return {};
}

Result<void> Cluster::refresh(Time until) {
  std::vector<Address> known;
  for (const auto& [address, node] : nodes_) known.push_back(address);
  for (const Address& address : url_.addresses) {
    if (!nodes_.contains(address)) known.push_back(address);
  }
  // Begin with another node each time: one may be cut off, and not know it.
  Error error{Errc::io, "no server answers"};
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Address& address = known[++asked_last_ % known.size()];
    const auto done = ask_slots(address, until);
    if (done) return done;
    error = done.error();
    if (error.code != Errc::io || steady_clock::now() >= until) break;
  }
  return error;
}

Result<void> Cluster::ask_slots(const Address& address, Time until) {
  ConnectionOptions options = options_.connection;
  options.limits = kSlotsLimits;
  Connection connection(address, {url_.user, url_.password, 0}, options);
  const auto reply = connection.call({"CLUSTER", "SLOTS"}, until);
  loading_ = false;
  if (!reply) return note(reply.error());
  loading_ = reply->is_error("LOADING");
  const bool without_cluster =
      reply->is_error("ERR") && reply->text().find(kNoCluster) != std::string_view::npos;
  // A server that hides CLUSTER may be one of many. If the number of replicas is given, that does
  // no harm: redirections lead to the others.
  const bool hidden = is_refused(*reply) && !reply->is_error("NOPERM");
  if (without_cluster || (hidden && options_.replicas)) {
    return take_single(address, connection, until);
  }
  if (reply->is_error() || reply->kind() != ReplyKind::array) {
    // NOAUTH, NOPERM: the other nodes will say the same.
    const char* const advice = hidden                      ? kAllowedWithoutSlots
                               : reply->is_error("NOPERM") ? kAllowedForSlots
                                                           : "";
    return note({loading_ ? Errc::io : Errc::mismatch,
                 "cannot ask " + address.text() + " for its slots: " + reply->excerpt() + advice});
  }
  if (url_.database != 0) {
    return note({Errc::invalid, "a cluster has no database but 0"});
  }
  return take_slots(address, *reply);
}

Result<void> Cluster::take_single(const Address& address, Connection& connection, Time until) {
  if (url_.addresses.size() > 1) {
    return note({Errc::invalid, address.text() +
                                    " is no cluster; allowed: several hosts of one cluster, or "
                                    "one"});
  }
  if (!options_.replicas) SEMEL_TRY(count_replicas(address, connection, until));
  std::fill(slots_.begin(), slots_.end(), &node_at(address));
  clustered_ = false;
  return {};
}

Result<void> Cluster::count_replicas(const Address& address, Connection& connection, Time until) {
  // ["master", offset, [replica, ...]]; a replica answers with another word.
  const auto role = connection.call({"ROLE"}, until);
  if (!role) return note(role.error());
  if (role->size() == 0 || role->at(0).text().empty()) {
    const std::string why = role->is_error() ? role->excerpt() : "its answer makes no sense";
    return note({Errc::mismatch, "cannot ask " + address.text() + " for its replicas: " + why +
                                     (is_refused(*role) ? kAllowedForReplicas : "")});
  }
  const bool primary = role->size() == 3 && role->at(0).text() == "master";
  fewest_replicas_ = primary ? role->at(2).size() : 0;
  return {};
}

Result<void> Cluster::take_slots(const Address& address, const Reply& reply) {
  const auto is_number = [](ReplyView value, std::int64_t least, std::int64_t most) {
    return value.kind() == ReplyKind::integer && value.integer() >= least &&
           value.integer() <= most;
  };
  // Read all of it before any of it counts. [[first, last, [host, port, ...], replica...]...]
  std::vector<Address> primaries;
  std::size_t fewest = reply.size() == 0 ? 0 : ~std::size_t{0};
  for (std::size_t i = 0; i < reply.size(); ++i) {
    const ReplyView range = reply.at(i);
    const ReplyView primary = range.size() < 3 ? range : range.at(2);
    const bool sound = range.size() >= 3 && is_number(range.at(0), 0, kSlots - 1) &&
                       is_number(range.at(1), range.at(0).integer(), kSlots - 1) &&
                       primary.size() >= 2 &&
                       (primary.at(0).is_nil() || primary.at(0).kind() == ReplyKind::text) &&
                       is_number(primary.at(1), 1, 65535);
    if (!sound) {
      return note({Errc::mismatch, address.text() + " names slots that make no sense"});
    }
    // A node that does not know its own name is at the address where it was asked.
    const std::string_view host = primary.at(0).text();
    primaries.push_back({host.empty() ? address.host : std::string(host),
                         static_cast<std::uint16_t>(primary.at(1).integer())});
    fewest = std::min(fewest, range.size() - 3);  // after the primary come its replicas
  }
  if (std::set<Address>(primaries.begin(), primaries.end()).size() >= kMostNodes) {
    return note({Errc::mismatch,
                 address.text() + " names " + std::to_string(kMostNodes) + " primaries or more"});
  }
  forget_idle_nodes();
  // Slots without a primary go to the node that answered. It will know when there is one.
  std::fill(slots_.begin(), slots_.end(), &node_at(address));
  for (std::size_t i = 0; i < primaries.size(); ++i) {
    const auto first = static_cast<std::ptrdiff_t>(reply.at(i).at(0).integer());
    const auto last = static_cast<std::ptrdiff_t>(reply.at(i).at(1).integer());
    std::fill(slots_.begin() + first, slots_.begin() + last + 1, &node_at(primaries[i]));
  }
  fewest_replicas_ = fewest;
  clustered_ = true;
  return {};
}

std::size_t Cluster::primaries() const {
  std::vector<Node*> distinct = slots_;
  std::sort(distinct.begin(), distinct.end());
  return static_cast<std::size_t>(std::unique(distinct.begin(), distinct.end()) - distinct.begin());
}

const Address& Cluster::address_of(std::uint32_t slot) const {
  SEMEL_ASSERT(slot < kSlots && slots_[slot] != nullptr);
  return slots_[slot]->connection.address();
}

Cluster::Ticket Cluster::start(std::uint32_t slot, Command command, Repeat repeat) {
  SEMEL_ASSERT(slot < kSlots && slots_[slot] != nullptr);
  const Ticket ticket = first_ + pending_.size();
  pending_.push_back({slot, std::move(command), repeat, deadline()});
  place(ticket, pending_.back());
  return ticket;
}

void Cluster::place(Ticket ticket, Pending& pending) {
  if (pending.ask && !has_room_for(*pending.ask)) pending.ask.reset();
  Node& node = pending.ask ? node_at(*pending.ask) : *slots_[pending.slot];
  if (pending.ask) {
    node.connection.append({"ASKING"});
    node.expected.push_back({Node::Answer::asking, ticket});
    pending.ask.reset();
  }
  node.connection.append(pending.command);
  node.expected.push_back({Node::Answer::command, ticket});
  node.unsent = true;
  pending.stage = Stage::placed;
  pending.node = &node;
  // After a failure the rest waits for finish(). So a caller that starts many commands waits for
  // one deadline only.
  if (node.connection.appended_bytes() >= kEnoughToSend && !trouble_) send(node, pending.deadline);
}

void Cluster::place_waiting() {
  if (waiting_.empty()) return;
  std::vector<Ticket> waiting = std::exchange(waiting_, {});
  std::sort(waiting.begin(), waiting.end());
  for (const Ticket ticket : waiting) {
    Pending* const pending = find(ticket);
    if (pending != nullptr) place(ticket, *pending);
  }
}

void Cluster::send() { send(deadline()); }

void Cluster::send(Time until) {
  for (const auto& [address, node] : nodes_) {
    if (node->unsent) send(*node, until);
  }
}

void Cluster::send(Node& node, Time until) {
  node.unsent = false;
  if (const auto connected = node.connection.connect(until); !connected) {
    // None of it was sent.
    note(connected.error());
    for (const Node::Expected& expected : std::exchange(node.expected, {})) {
      if (expected.answer != Node::Answer::command) continue;
      if (Pending* const pending = find(expected.ticket)) wait(expected.ticket, *pending);
    }
    trouble_ = true;
    return;
  }
  if (replicas_ > 0) {
    node.connection.append(
        Command{"WAIT"}.add(std::int64_t{replicas_}).add(options_.replicas_timeout_ms));
    node.expected.push_back({Node::Answer::wait, 0});
  }
  if (const auto sent = node.connection.send(until); !sent) lose(node, sent.error());
}

void Cluster::lose(Node& node, const Error& error) {
  note(error);
  node.unsent = false;
  const auto expected = std::exchange(node.expected, {});
  const auto unconfirmed = std::exchange(node.unconfirmed, {});
  for (const Node::Expected& answer : expected) {
    if (answer.answer == Node::Answer::command) unknown(answer.ticket, kLost);
  }
  for (const Ticket ticket : unconfirmed) unknown(ticket, kLost);
  trouble_ = true;
}

void Cluster::unknown(Ticket ticket, const char* why) {
  Pending* const pending = find(ticket);
  if (pending == nullptr) return;
  ++counts_.lost;
  pending->reply.reset();
  if (pending->repeat == Repeat::safe) return wait(ticket, *pending);
  settle(*pending, why);
}

void Cluster::settle(Pending& pending, const char* why) {
  pending.reply.reset();
  pending.stage = Stage::settled;
  pending.error = why;
}

void Cluster::read(Node& node, Time until) {
  auto reply = node.connection.read(until);
  if (!reply) return lose(node, reply.error());
  SEMEL_ASSERT(!node.expected.empty());
  const Node::Expected expected = node.expected.front();
  node.expected.pop_front();
  switch (expected.answer) {
    case Node::Answer::asking:
      return take_asking(expected.ticket, *std::move(reply));
    case Node::Answer::wait:
      return confirm(node, *reply);
    case Node::Answer::command:
      return take(node, expected.ticket, *std::move(reply));
  }
}

// Keeps a refusal: then the command after ASKING is redirected, for ever.
void Cluster::take_asking(Ticket ticket, Reply reply) {
  Pending* const pending = find(ticket);
  if (pending == nullptr || !is_refused(reply)) return;
  pending->asking_refused.emplace(std::move(reply));
}

void Cluster::take(Node& node, Ticket ticket, Reply reply) {
  Pending* const found = find(ticket);
  if (found == nullptr) return;  // given up at its deadline
  Pending& pending = *found;
  const std::optional<Reply> asking_refused = std::exchange(pending.asking_refused, {});
  const bool moved = reply.is_error("MOVED");
  if (moved && asking_refused) {
    last_failure_ = node.connection.address().text() + ": " + asking_refused->excerpt() +
                    (asking_refused->is_error("NOPERM") ? kAllowedToMove : "");
    return settle(pending, kCannotMove);
  }
  if (moved || reply.is_error("ASK")) {
    ++(moved ? counts_.moved : counts_.asked);
    wait(ticket, pending);
    return redirect(node, pending, reply.text(), !moved);
  }
  for (const std::string_view word : kLater) {
    if (!reply.is_error(word)) continue;
    ++counts_.later;
    wait(ticket, pending);
    last_failure_ = node.connection.address().text() + ": " + reply.excerpt();
    trouble_ = true;
    return;
  }
  const bool confirmed = replicas_ == 0 || reply.is_error();
  pending.reply.emplace(std::move(reply));
  pending.stage = confirmed ? Stage::settled : Stage::replied;
  if (!confirmed) node.unconfirmed.push_back(ticket);
  if (confirmed) pauses_ = 0;
}

void Cluster::confirm(Node& node, const Reply& reply) {
  const bool enough =
      reply.kind() == ReplyKind::integer && reply.integer() >= std::int64_t{replicas_};
  const bool refused = is_refused(reply);  // so the next WAIT will be, too
  for (const Ticket ticket : std::exchange(node.unconfirmed, {})) {
    Pending* const pending = find(ticket);
    if (pending == nullptr) continue;
    if (enough) {
      pending->stage = Stage::settled;
      continue;
    }
    ++counts_.unconfirmed;
    if (refused) {
      settle(*pending, kNotAskable);
      continue;
    }
    unknown(ticket, "too few replicas have it, and nobody knows whether it lasts");
  }
  if (enough) {
    pauses_ = 0;
    return;
  }
  last_failure_ = node.connection.address().text() + ": " +
                  (reply.is_error() ? reply.excerpt()
                                    : "only " + std::to_string(reply.integer()) + " of " +
                                          std::to_string(replicas_) + " replicas have it") +
                  (refused ? kAllowedToWait : "");
  trouble_ = true;
}

// "MOVED 3999 host:port"
void Cluster::redirect(const Node& node, Pending& pending, std::string_view text, bool ask) {
  next_word(text);
  const std::string_view slot = next_word(text);
  auto address = parse_address(text);
  last_failure_ =
      node.connection.address().text() + ": slot " + std::string(slot) + " is elsewhere";
  if (!address || ++pending.redirections > kQuickRedirections) {
    trouble_ = true;
    if (!address) return;
  }
  if (address->host.empty()) address->host = node.connection.address().host;
  if (ask) {
    pending.ask = *address;
  } else if (!has_room_for(*address)) {
    trouble_ = true;
  } else {
    slots_[pending.slot] = &node_at(*address);
    clustered_ = true;
  }
}

void Cluster::pause(Time until) {
  const std::int64_t longest = std::min(kFirstPauseMs << std::min(pauses_++, 10), kLongestPauseMs);
  const auto wait = milliseconds(
      longest / 2 + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(longest))));
  std::this_thread::sleep_until(std::min(until, steady_clock::now() + wait));
}

Result<Reply> Cluster::finish(Ticket ticket) {
  Pending* const found = find(ticket);
  SEMEL_ASSERT(found != nullptr);
  Pending& pending = *found;
  while (pending.stage != Stage::settled) {
    // A command that was sent is read, even late: its answer may be there.
    if (pending.stage == Stage::waiting && steady_clock::now() >= pending.deadline) {
      pending.error = "no answer by the deadline";
      break;
    }
    place_waiting();
    send(pending.deadline);
    while (pending.stage == Stage::placed || pending.stage == Stage::replied) {
      read(*pending.node, pending.deadline);
    }
    if (pending.stage == Stage::settled || !std::exchange(trouble_, false)) continue;
    pause(pending.deadline);
    ++counts_.refreshed;
    (void)refresh(pending.deadline);  // without an answer, the slots stay as they were
  }
  std::optional<Reply> reply = std::move(pending.reply);
  const char* const error = pending.error;
  forget(ticket);
  if (error != nullptr) return Error{Errc::io, error, last_failure_};
  SEMEL_ASSERT(reply.has_value());
  return *std::move(reply);
}

Result<Reply> Cluster::call(std::string_view key, Command command, Repeat repeat) {
  return finish(start(slot_of(key), std::move(command), repeat));
}

}  // namespace semel::client
