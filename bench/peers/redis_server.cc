#include "bench/peers/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "bench/peers/redis_load.h"
#include "semel/core/assert.h"

namespace semel::bench {
namespace {

std::string new_folder() {
  std::string path = (std::filesystem::temp_directory_path() / "semel-bench-XXXXXX").string();
  SEMEL_ASSERT(::mkdtemp(path.data()) != nullptr);
  return path;
}

// Returns a port that nobody has at the moment.
int free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  SEMEL_ASSERT(::bind(listener, name, size) == 0 && ::getsockname(listener, name, &size) == 0);
  ::close(listener);
  return ::ntohs(address.sin_port);
}

[[noreturn]] void become_server(const std::vector<std::string>& words, int processor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  run_on(processor);
  const int log = ::open((words.back() + "/log").c_str(), O_CREAT | O_WRONLY, 0600);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  std::_Exit(127);
}

}  // namespace

void run_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  // On a machine with one processor everything runs there.
  (void)::sched_setaffinity(0, sizeof set, &set);
}

RedisServer::RedisServer(const std::string& module, int processor,
                         std::vector<std::string> arguments)
    : folder_(new_folder()), port_(free_port()) {
  std::vector<std::string> words = {
      "redis-server", "--port", std::to_string(port_),    "--bind", "127.0.0.1", "--save", "",
      "--appendonly", "no",     "--enable-debug-command", "local"};
  if (!module.empty()) {
    words.insert(words.end(), {"--loadmodule", std::filesystem::absolute(module).string()});
    std::move(arguments.begin(), arguments.end(), std::back_inserter(words));
  }
  words.insert(words.end(), {"--dir", folder_});
  pid_ = ::fork();
  SEMEL_ASSERT(pid_ >= 0);
  if (pid_ == 0) become_server(words, processor);
  for (int attempt = 0; attempt < 500 && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++attempt) {
    if (answers(port_)) return;
    ::usleep(10'000);
  }
  std::fprintf(stderr, "redis-server does not start; its log is %s/log\n", folder_.c_str());
  std::exit(1);
}

RedisServer::~RedisServer() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

double RedisServer::cpu_seconds() const {
  clockid_t clock{};
  timespec now{};
  SEMEL_ASSERT(::clock_getcpuclockid(pid_, &clock) == 0 && ::clock_gettime(clock, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace semel::bench
