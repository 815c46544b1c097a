#include "tests/support/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <thread>
#include <utility>

#include "semel/core/assert.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::minutes kPatience{10};
constexpr std::chrono::milliseconds kPoll{5};
constexpr int kPortsTried = 20;

// `variables` come before those of the test.
pid_t spawn_program(std::vector<std::string> words, int input,
                    std::vector<std::string> variables = {}) {
  posix_spawn_file_actions_t actions;
  SEMEL_ASSERT(posix_spawn_file_actions_init(&actions) == 0);
  if (input >= 0) SEMEL_ASSERT(posix_spawn_file_actions_adddup2(&actions, input, 0) == 0);
  for (const int fd : {1, 2}) {
    SEMEL_ASSERT(posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0) == 0);
  }
  // A group of its own: Ctrl-C on a terminal ends the test, and the test ends the server.
  posix_spawnattr_t attributes;
  SEMEL_ASSERT(posix_spawnattr_init(&attributes) == 0);
  SEMEL_ASSERT(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP) == 0);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  environment.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, pointers[0], &actions, &attributes, pointers.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    std::fprintf(stderr, "cannot start %s: is it installed? (tools/packages/test)\n", pointers[0]);
    std::abort();
  }
  return pid;
}

constexpr const char* kFindings = "sanitizer";  // begins the names of their files

void end(pid_t pid, int signal) {
  ::kill(pid, signal);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

#ifdef SEMEL_COVERAGE
// Asks a server to exit, since a server that is killed does not write the counters of the module.
// Returns false if it has not exited after ten seconds.
bool exits(pid_t pid) {
  ::kill(pid, SIGCONT);
  ::kill(pid, SIGTERM);
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
       std::chrono::steady_clock::now() < until;) {
    if (::waitpid(pid, nullptr, WNOHANG) == pid) return true;
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}
#endif

}  // namespace

std::vector<std::string> server_variables([[maybe_unused]] const std::string& directory) {
#ifdef SEMEL_SERVER_PRELOAD
  // A server does not free its memory when it ends, so leaks are not checked.
  return {"LD_PRELOAD=" SEMEL_SERVER_PRELOAD,
          "ASAN_OPTIONS=detect_leaks=0:log_path=" + directory + '/' + kFindings,
          "UBSAN_OPTIONS=print_stacktrace=1:log_path=" + directory + '/' + kFindings};
#else
  return {};
#endif
}

std::uint16_t free_port() {
  // By default the port of a cluster's bus is 10000 higher.
  constexpr std::uint16_t kMost = 55535;
  for (;;) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SEMEL_ASSERT(fd >= 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    SEMEL_ASSERT(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    SEMEL_ASSERT(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    ::close(fd);
    const std::uint16_t port = ntohs(address.sin_port);
    if (port <= kMost) return port;
  }
}

std::string server_program() {
  const char* const program = std::getenv("SEMEL_SERVER");
  return program != nullptr && *program != '\0' ? program : "redis-server";
}

RedisServer::RedisServer(std::vector<std::string> arguments, std::string program)
    : program_(std::move(program)), arguments_(std::move(arguments)) {
  // Between free_port() and the server's bind somebody else may take the port.
  for (int i = 0; i < kPortsTried; ++i) {
    port_ = free_port();
    spawn();
    while (running() && !answers()) std::this_thread::sleep_for(kPoll);
    if (running()) return;
    if (log().find("ddress already in use") == std::string::npos) break;
    reap();
  }
  give_up("it does not start");
}

RedisServer::~RedisServer() {
  if (!running()) return;
#ifdef SEMEL_COVERAGE
  if (exits(pid_)) {
    reap();
    return;
  }
#endif
  kill();
}

void RedisServer::spawn() {
  SEMEL_ASSERT(!running());
  const std::string directory = directory_.path();
  std::vector<std::string> words = {program_, "--port", std::to_string(port_)};
  for (const char* const word : {"--bind", "127.0.0.1", "--save", "", "--daemonize", "no",
                                 "--enable-debug-command", "yes"}) {
    words.emplace_back(word);
  }
  words.insert(words.end(), {"--dir", directory, "--logfile", directory + "/redis.log"});
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  pid_ = spawn_program(std::move(words), -1, server_variables(directory));

  std::array<int, 2> ends{};
  SEMEL_ASSERT(::pipe2(ends.data(), O_CLOEXEC) == 0);
  guard_ = spawn_program({"sh", "-c", "cat; kill -9 \"$0\"", std::to_string(pid_)}, ends[0]);
  ::close(ends[0]);
  guard_pipe_ = ends[1];
}

std::string RedisServer::findings() const {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    if (!entry.path().filename().string().starts_with(kFindings)) continue;
    std::ifstream file(entry.path());
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  return all;
}

// REQUIRES: the server has ended, and is waited for.
void RedisServer::reap() {
  if (!findings().empty()) give_up("it has an error in the module");
  if (guard_ > 0) {
    end(guard_, SIGKILL);
    ::close(guard_pipe_);
  }
  guard_ = -1;
  guard_pipe_ = -1;
  pid_ = -1;
}

void RedisServer::kill() {
  SEMEL_ASSERT(running());
  end(pid_, SIGKILL);
  reap();
}

void RedisServer::stop() {
  SEMEL_ASSERT(running());
  end(pid_, SIGTERM);
  reap();
}

void RedisServer::start() {
  spawn();
  wait_until_ready();
}

void RedisServer::start(std::vector<std::string> arguments) {
  arguments_ = std::move(arguments);
  start();
}

void RedisServer::start_as(std::string program) {
  program_ = std::move(program);
  start();
}

bool RedisServer::try_start_as(std::string program) {
  program_ = std::move(program);
  return try_start();
}

bool RedisServer::try_start() {
  spawn();
  while (running() && !answers()) std::this_thread::sleep_for(kPoll);
  if (running()) return true;
  reap();
  return false;
}

void RedisServer::pause() const {
  SEMEL_ASSERT(running());
  ::kill(pid_, SIGSTOP);
}

void RedisServer::resume() const {
  SEMEL_ASSERT(running());
  ::kill(pid_, SIGCONT);
}

void RedisServer::wait_until_left() const {
  // "sl local_address rem_address st ...", in hexadecimal; 08 is CLOSE_WAIT.
  std::ostringstream ours;
  ours << "0100007F:" << std::hex << std::uppercase << std::setfill('0') << std::setw(4) << port_;
  const bool left = eventually([&] {
    std::ifstream sockets("/proc/net/tcp");
    for (std::string line; std::getline(sockets, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      if (local == ours.str() && state == "08") return true;
    }
    return false;
  });
  if (!left) give_up("no client leaves");
}

// If the process has ended, notes it: running() is false from then on.
bool RedisServer::answers() const {
  if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
    pid_ = -1;
    return false;
  }
  client::Connection connection = this->connection();
  const auto reply = connection.call({"PING"});
  // NOAUTH and DENIED are answers too.
  return reply && !reply->is_error("LOADING");
}

void RedisServer::wait_until_ready() const {
  const auto deadline = steady_clock::now() + kPatience;
  while (!answers()) {
    if (!running() || steady_clock::now() > deadline) give_up("it does not answer");
    std::this_thread::sleep_for(kPoll);
  }
}

std::string RedisServer::log() const {
  std::ifstream file(directory_.path() / "redis.log");
  return {std::istreambuf_iterator<char>(file), {}};
}

client::Reply RedisServer::call(const client::Command& command) const {
  client::Connection connection = this->connection();
  auto reply = connection.call(command);
  if (!reply) give_up(reply.error().message().c_str());
  return *std::move(reply);
}

void RedisServer::give_up(const char* what) const {
  std::fprintf(stderr, "%s (%s, port %d)\n%s\n%s", what, program_.c_str(), port_, log().c_str(),
               findings().c_str());
  std::abort();
}

}  // namespace semel
