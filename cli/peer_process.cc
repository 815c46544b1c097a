#include "cli/peer_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "cli/files.h"

namespace semel::cli {
namespace {

constexpr int kCannotStart = 127;  // as a shell says it
constexpr auto kPatience = std::chrono::seconds(1);

void close_end(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

std::string how_ended(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : "ended with status " + std::to_string(code);
}

// The calls between fork and exec are those that are safe there although other threads exist.
[[noreturn]] void become(const char* command, int in, int out) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  (void)std::signal(SIGPIPE, SIG_DFL);
  ::execl("/bin/sh", "sh", "-c", command, nullptr);
  ::_exit(kCannotStart);
}

}  // namespace

std::unique_ptr<PeerProcess> PeerProcess::start(const std::string& command,
                                                std::error_code& error) {
  std::array<int, 2> in = {-1, -1};  // the end to read, the end to write
  std::array<int, 2> out = {-1, -1};
  pid_t pid = -1;
  const bool piped = ::pipe2(in.data(), O_CLOEXEC) == 0 && ::pipe2(out.data(), O_CLOEXEC) == 0;
  if (piped) pid = ::fork();
  if (pid == 0) become(command.c_str(), in[0], out[1]);
  error = pid < 0 ? last_error() : std::error_code{};
  close_end(in[0]);
  close_end(out[1]);
  if (pid > 0) return std::unique_ptr<PeerProcess>(new PeerProcess(pid, in[1], out[0]));
  close_end(in[1]);
  close_end(out[0]);
  return nullptr;
}

PeerProcess::~PeerProcess() { (void)terminate(); }

std::string PeerProcess::finish() {
  close_end(to_);
  close_end(from_);
  if (pid_ < 0) return "";
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return how_ended(status);
}

std::string PeerProcess::terminate() {
  close_end(to_);
  close_end(from_);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (pid_ > 0 && std::chrono::steady_clock::now() < deadline) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return how_ended(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (pid_ > 0) (void)::kill(pid_, SIGTERM);
  (void)finish();
  return "";
}

}  // namespace semel::cli
