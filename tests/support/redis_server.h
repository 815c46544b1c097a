// RedisServer: a server process of a test, on a free loopback port, with a directory of its own. It
// is redis-server, or any Redis or Valkey that SEMEL_SERVER in the environment names.
//
// Contract  After the constructor it answers. It keeps nothing on disk unless its arguments say so,
//           and its port and directory survive kill() and start(). The destructor ends it, and so
//           does the end of the test, whatever that is.
//           A failure ends the test with the server's log on standard error. So does a finding of a
//           sanitizer in the module, if the build has one: it is loaded into the server.
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "client/command.h"
#include "client/connection.h"
#include "client/reply.h"
#include "tests/cli/temporary_directory.h"

namespace semel {

// Returns SEMEL_SERVER of the environment, or else "redis-server".
std::string server_program();

class RedisServer {
 public:
  // Arguments as on the command line: {"--appendonly", "yes", "--loadmodule", path}.
  explicit RedisServer(std::vector<std::string> arguments = {},
                       std::string program = server_program());
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer();

  // kill -9. REQUIRES: it runs.
  void kill();
  // Ends it with SIGTERM and waits. REQUIRES: it runs.
  void stop();
  // Starts it again, on the same port and directory. REQUIRES: it does not run.
  void start();
  // Starts it again, with other arguments from now on.
  void start(std::vector<std::string> arguments);
  // Starts it again. Returns true if it runs: it may refuse its data. REQUIRES: it does not run.
  [[nodiscard]] bool try_start();
  // Starts another program, on the same port and directory, as an upgrade does.
  void start_as(std::string program);
  [[nodiscard]] bool try_start_as(std::string program);
  // Waits until it answers, past loading. REQUIRES: it runs.
  void wait_until_ready() const;
  // SIGSTOP and SIGCONT: a paused server is there, but silent. REQUIRES: it runs.
  void pause() const;
  void resume() const;
  // Waits until a client has closed its connection while the server was paused, and so unnoticed.
  void wait_until_left() const;

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  std::uint16_t port() const { return port_; }
  client::Address address() const { return {"127.0.0.1", port_}; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  const std::filesystem::path& directory() const { return directory_.path(); }
  std::string log() const;

  // Takes replies of any size, and waits for them on a machine that is busy.
  client::Connection connection() const {
    return client::Connection(
        address(), {},
        {.connect_timeout_ms = 60'000,
         .timeout_ms = 60'000,
         .limits = {.bytes = std::size_t{1} << 30, .elements = std::size_t{1} << 24}});
  }
  // Sends one command over a new connection. REQUIRES: the server answers.
  client::Reply call(const client::Command& command) const;
  client::Reply call(std::initializer_list<std::string_view> words) const {
    return call(client::Command(words));
  }

 private:
  void spawn();
  bool answers() const;
  void reap();
  std::string findings() const;  // of the sanitizers
  [[noreturn]] void give_up(const char* what) const;

  std::string program_;
  std::vector<std::string> arguments_;
  TemporaryDirectory directory_;
  std::uint16_t port_ = 0;
  mutable pid_t pid_ = -1;
  pid_t guard_ = -1;  // ends the server when the test is gone
  int guard_pipe_ = -1;
};

// Returns the variables of the environment with which a server can load the module. If the module
// has sanitizers, their libraries must be loaded before it. Their findings go into the directory.
std::vector<std::string> server_variables(const std::string& directory);

// Returns a port below 55536 that nobody on the loopback listens on now.
std::uint16_t free_port();

}  // namespace semel
