// ScriptedServer: a server of a test that answers what the test says, right or wrong.
//
// Contract  It listens on a free loopback port. Every command that arrives is given to the script,
//           on a thread of the server, one at a time. The destructor ends all connections.
//           An answer can be followed by silence, by the end of the connection, by the same bytes
//           again and again as fast as they are taken (flood), or by one of them now and then
//           (drip).
// Threads   const members may run at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/url.h"

namespace semel {

struct ScriptedAnswer {
  enum class Then : std::uint8_t { listen, close, flood, drip };
  std::string bytes = {};
  Then then = Then::listen;
  std::string again = {};  // what a flood or a drip repeats
};

class ScriptedServer {
 public:
  using Words = std::vector<std::string>;
  using Script = std::function<ScriptedAnswer(const Words&)>;

  explicit ScriptedServer(Script script);
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer();

  client::Address address() const { return {"127.0.0.1", port_}; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  // Sends this to all connected clients, unasked.
  void say(std::string_view bytes);
  // Returns the number of bytes that the system took for the clients.
  std::uint64_t sent() const { return sent_; }

 private:
  void accept_all();
  void serve(int fd);
  bool give(int fd, std::string_view bytes);
  // Sends the answer. Returns false at the end of the connection.
  bool give(int fd, const ScriptedAnswer& answer);

  Script script_;
  std::mutex scripting_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<std::uint64_t> sent_ = 0;

  std::mutex mutex_;  // of all below
  std::condition_variable ending_;
  bool over_ = false;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace semel
