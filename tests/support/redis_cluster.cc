#include "tests/support/redis_cluster.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

#include "client/slot.h"
#include "semel/core/assert.h"

namespace semel {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::minutes kPatience{10};
constexpr std::chrono::milliseconds kPoll{20};

void wait_for(const char* what, const std::function<bool()>& done) {
  const auto deadline = steady_clock::now() + kPatience;
  while (!done()) {
    if (steady_clock::now() > deadline) {
      std::fprintf(stderr, "the cluster of the test: %s does not come\n", what);
      std::abort();
    }
    std::this_thread::sleep_for(kPoll);
  }
}

// Returns the answer as text; nullopt if there is no answer.
std::optional<std::string> ask(const RedisServer& server,
                               std::initializer_list<std::string_view> words) {
  if (!server.running()) return std::nullopt;
  client::Connection connection(server.address(), {}, {.timeout_ms = 1000});
  const auto reply = connection.call(words);
  if (!reply || reply->is_error()) return std::nullopt;
  return std::string(reply->text());
}

void require(const RedisServer& server, std::initializer_list<std::string_view> words) {
  const client::Reply reply = server.call(words);
  if (!reply.is_error()) return;
  std::fprintf(stderr, "%.*s\n", static_cast<int>(reply.text().size()), reply.text().data());
  std::abort();
}

bool is_primary(const RedisServer& server) {
  const auto info = ask(server, {"INFO", "replication"});
  return info && info->find("role:master") != std::string::npos;
}

// Lines of CLUSTER NODES: "id host:port@bus[,name] flags primary sent received epoch state
// slots..."
std::vector<std::vector<std::string>> lines_of(const std::string& nodes) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream text(nodes);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    auto& fields = lines.emplace_back();
    for (std::string word; words >> word;) fields.push_back(word);
  }
  return lines;
}

constexpr std::size_t kId = 0;
constexpr std::size_t kFlags = 2;
constexpr std::size_t kEpoch = 6;
constexpr std::size_t kFirstSlots = 8;

// Returns true if the node of this line has the slot, as "77" or in "0-5460". A slot on its way
// does not count.
bool has_slot(const std::vector<std::string>& line, std::uint32_t slot) {
  for (std::size_t word = kFirstSlots; word < line.size(); ++word) {
    const std::string& range = line[word];
    if (range.front() == '[') continue;
    const std::uint64_t first = std::stoul(range);
    const std::size_t dash = range.find('-');
    const std::uint64_t last =
        dash == std::string::npos ? first : std::stoul(range.substr(dash + 1));
    if (first <= slot && slot <= last) return true;
  }
  return false;
}

}  // namespace

RedisCluster::RedisCluster(std::size_t primaries, std::vector<std::string> arguments,
                           std::size_t replicas_each) {
  SEMEL_ASSERT(primaries > 0);
  for (const char* const word :
       {"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
        "--cluster-allow-replica-migration", "no", "--cluster-replica-validity-factor", "0",
        "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}) {
    arguments.emplace_back(word);
  }
  arguments.insert(arguments.end(), {"--cluster-node-timeout", std::to_string(kNodeTimeoutMs)});
  for (std::size_t i = 0; i < primaries * (1 + replicas_each); ++i) nodes_.emplace_back(arguments);

  for (std::size_t i = 0; i < primaries; ++i) {
    const std::string first = std::to_string(kSlots * i / primaries);
    const std::string last = std::to_string(kSlots * (i + 1) / primaries - 1);
    require(nodes_[i], {"CLUSTER", "ADDSLOTSRANGE", first, last});
  }
  for (std::size_t i = 0; i < size(); ++i) {
    require(nodes_[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    if (i > 0) {
      require(nodes_[i], {"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[0].port())});
    }
  }
  wait_for("that all nodes know each other", [&] {
    for (const RedisServer& node : nodes_) {
      const auto nodes = ask(node, {"CLUSTER", "NODES"});
      if (!nodes) return false;
      const auto lines = lines_of(*nodes);
      if (lines.size() != size()) return false;
      for (const auto& line : lines) {
        if (line[kFlags].find("handshake") != std::string::npos) return false;
      }
    }
    return true;
  });
  for (std::size_t i = primaries; i < size(); ++i) {
    require(nodes_[i], {"CLUSTER", "REPLICATE", id((i - primaries) / replicas_each)});
  }
  wait_until_ok();
  wait_for("that all nodes tell clients of all replicas", [&] {
    for (const RedisServer& node : nodes_) {
      const client::Reply ranges = node.call({"CLUSTER", "SLOTS"});
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        // The ends of the range, its primary, and the replicas in step.
        if (ranges.at(i).size() != 3 + replicas_each) return false;
      }
    }
    return true;
  });
}

std::string RedisCluster::url() const {
  std::string url = "redis://";
  for (const RedisServer& node : nodes_) {
    if (&node != &nodes_.front()) url += ',';
    url += node.address().text();
  }
  return url;
}

std::string RedisCluster::id(std::size_t number) const {
  return std::string(nodes_[number].call({"CLUSTER", "MYID"}).text());
}

bool RedisCluster::ok() const {
  for (const RedisServer& node : nodes_) {
    if (!node.running()) continue;
    const auto info = ask(node, {"CLUSTER", "INFO"});
    if (!info || info->find("cluster_state:ok") == std::string::npos ||
        info->find("cluster_slots_ok:16384") == std::string::npos) {
      return false;
    }
    const auto replication = ask(node, {"INFO", "replication"});
    if (!replication || replication->find("master_link_status:down") != std::string::npos) {
      return false;
    }
  }
  return true;
}

void RedisCluster::wait_until_ok() const {
  wait_for("a state that is ok", [this] { return ok(); });
}

std::size_t RedisCluster::primary_of(std::uint32_t slot) const {
  std::size_t found = 0;
  wait_for("a primary of a slot", [&] {
    for (std::size_t i = 0; i < size(); ++i) {
      const auto nodes = ask(nodes_[i], {"CLUSTER", "NODES"});
      if (!nodes) continue;
      for (const auto& line : lines_of(*nodes)) {
        found = i;
        const bool mine = line[kFlags].find("myself,master") != std::string::npos;
        if (mine && has_slot(line, slot)) return true;
      }
    }
    return false;
  });
  return found;
}

std::vector<std::size_t> RedisCluster::primaries() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto nodes = ask(nodes_[i], {"CLUSTER", "NODES"});
    if (!nodes) continue;
    for (const auto& line : lines_of(*nodes)) {
      const bool mine = line[kFlags].find("myself,master") != std::string::npos;
      if (mine && line.size() > kFirstSlots) found.push_back(i);
    }
  }
  return found;
}

void RedisCluster::begin_move(std::uint32_t slot, std::size_t to) {
  const std::size_t from = primary_of(slot);
  const std::string number = std::to_string(slot);
  require(nodes_[to], {"CLUSTER", "SETSLOT", number, "IMPORTING", id(from)});
  require(nodes_[from], {"CLUSTER", "SETSLOT", number, "MIGRATING", id(to)});
}

void RedisCluster::move_key(std::string_view key, std::size_t to) {
  const std::size_t from = primary_of(client::slot_of(key));
  require(nodes_[from],
          {"MIGRATE", "127.0.0.1", std::to_string(nodes_[to].port()), key, "0", "5000"});
}

void RedisCluster::end_move(std::uint32_t slot, std::size_t to) {
  const std::size_t from = primary_of(slot);
  const std::string number = std::to_string(slot);
  const client::Reply keys = nodes_[from].call({"CLUSTER", "GETKEYSINSLOT", number, "1000000"});
  for (std::size_t i = 0; i < keys.size(); ++i) move_key(keys.at(i).text(), to);
  // Tell the new primary first: it then takes a new epoch.
  const std::string name = id(to);
  require(nodes_[to], {"CLUSTER", "SETSLOT", number, "NODE", name});
  for (const std::size_t primary : primaries()) {
    if (primary != to) require(nodes_[primary], {"CLUSTER", "SETSLOT", number, "NODE", name});
  }
  // Replicas learn of the move from the other nodes. A replica that took its primary's place before
  // that would not know that the slot is its own. Nor would a primary that gets the slot back know
  // that it needs a later epoch.
  const auto epoch_at = [&](const RedisServer& node) -> std::string {
    const auto nodes = ask(node, {"CLUSTER", "NODES"});
    for (const auto& line : lines_of(nodes.value_or(""))) {
      if (line[kId] == name && has_slot(line, slot)) return line[kEpoch];
    }
    return "";  // it has another view
  };
  wait_for("one view of a slot", [&] {
    const std::string epoch = epoch_at(nodes_[to]);
    return !epoch.empty() &&
           std::all_of(nodes_.begin(), nodes_.end(), [&](const RedisServer& node) {
             return !node.running() || epoch_at(node) == epoch;
           });
  });
}

void RedisCluster::fail_over(std::size_t primary) {
  const std::string of = id(primary);
  for (std::size_t i = 0; i < size(); ++i) {
    const auto nodes = ask(nodes_[i], {"CLUSTER", "NODES"});
    if (!nodes) continue;
    for (const auto& line : lines_of(*nodes)) {
      if (line[kFlags].find("myself,slave") == std::string::npos || line[3] != of) continue;
      require(nodes_[i], {"CLUSTER", "FAILOVER"});
      wait_for("another primary",
               [&] { return is_primary(nodes_[i]) && !is_primary(nodes_[primary]); });
      return;
    }
  }
  SEMEL_ASSERT(!"the primary has no replica");
}

}  // namespace semel
