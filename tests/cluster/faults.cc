#include "tests/cluster/faults.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace semel {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::minutes kPatience{10};
constexpr milliseconds kPoll{20};

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "the cluster of the test: %s\n", what);
  std::abort();
}

}  // namespace

std::string info_of(const RedisServer& server, std::string_view section, std::string_view field) {
  const client::Reply reply = server.call({"INFO", section});
  const std::string text(reply.text());
  const std::string name = std::string("\n").append(field).append(":");
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return {};
  const std::size_t first = at + name.size();
  return text.substr(first, text.find_first_of("\r\n", first) - first);
}

Faults::Faults(RedisCluster& servers, std::uint64_t seed)
    : servers_(servers), random_(seed), primaries_(servers.primaries().size()) {
  configure();
}

void Faults::configure() {
  const char* const replicas = random_.below(2) == 0 ? "0" : "1";
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    configure(i);
    servers_.node(i).call({"CONFIG", "SET", "min-replicas-to-write", replicas});
  }
}

// A replica that came back and has not synchronised yet is empty, and must not be elected.
void Faults::configure(std::size_t node) {
  servers_.node(node).call({"CONFIG", "SET", "cluster-replica-validity-factor", "10"});
}

void Faults::sleep_up_to(std::uint64_t ms) {
  std::this_thread::sleep_for(std::chrono::microseconds(random_.below(ms * 1000)));
}

std::size_t Faults::replica_of(std::size_t primary) const {
  // "ip=127.0.0.1,port=7001,state=online,..."
  const std::string replica = info_of(servers_.node(primary), "replication", "slave0");
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const std::string port = "port=" + std::to_string(servers_.node(i).port()) + ",";
    if (replica.find(port) != std::string::npos) return i;
  }
  give_up("a primary has no replica");
}

void Faults::strike(Fault fault) {
  configure();
  const auto slot = static_cast<std::uint32_t>(random_.below(RedisCluster::kSlots));
  const std::size_t primary = servers_.primary_of(slot);
  RedisServer& node = servers_.node(primary);
  sleep_up_to(1000);  // all is well meanwhile
  switch (fault) {
    case Fault::kill:
      node.kill();
      servers_.primary_of(slot);
      break;
    case Fault::cut_off: {
      // It stands still for less than a node timeout, so it does not come back meanwhile.
      const RedisServer& replica = servers_.node(replica_of(primary));
      replica.pause();
      node.call({"CLIENT", "KILL", "TYPE", "REPLICA"});
      sleep_up_to(200);
      node.kill();
      replica.resume();
      servers_.primary_of(slot);
      break;
    }
    case Fault::stand_still:
      node.pause();
      servers_.primary_of(slot);
      node.resume();
      break;
    case Fault::restart:
      node.kill();
      break;
  }
  if (!node.running()) {
    if (fault != Fault::restart) sleep_up_to(300);  // its successor has no replica meanwhile
    node.start();
    configure(primary);
  }
  wait_until_well();
}

// A server that was away believes that it is a primary until it hears otherwise.
void Faults::wait_until_well() const {
  const auto deadline = steady_clock::now() + kPatience;
  for (;;) {
    servers_.wait_until_ok();
    const std::vector<std::size_t> primaries = servers_.primaries();
    bool well = primaries.size() == primaries_;
    for (const std::size_t primary : primaries) {
      const std::string replica = info_of(servers_.node(primary), "replication", "slave0");
      if (replica.find("state=online") == std::string::npos) well = false;
    }
    if (well) return;
    if (steady_clock::now() > deadline) give_up("it does not get well again");
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace semel
