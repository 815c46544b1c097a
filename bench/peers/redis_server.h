// RedisServer: runs a redis-server on a free loopback port, for as long as this lives.
//
// It keeps nothing on disk and runs on one processor. Its CPU time is that of all its threads.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace semel::bench {

class RedisServer {
 public:
  // `module` may be empty; `arguments` are those of the module. Ends the program if the server does
  // not start.
  RedisServer(const std::string& module, int processor, std::vector<std::string> arguments = {});
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer();

  int port() const { return port_; }
  double cpu_seconds() const;
  pid_t pid() const { return pid_; }

 private:
  std::string folder_;
  int port_;
  pid_t pid_;
};

// Binds the calling thread to a processor.
void run_on(int processor);

}  // namespace semel::bench
