#include "tests/support/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "semel/core/assert.h"

namespace semel {
namespace {

// Any pause will do: a client whose patience began anew with each byte would wait for ever.
constexpr std::chrono::milliseconds kBetweenDrops{5};

// Takes a line such as "*3" or "$12" and returns its number; nullopt if the line is incomplete.
std::optional<std::size_t> take_number(std::string_view& in) {
  const std::size_t end = in.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::size_t number = std::stoul(std::string(in.substr(1, end - 1)));
  in.remove_prefix(end + 2);
  return number;
}

// Takes the next command and returns it; nullopt if it is incomplete.
std::optional<ScriptedServer::Words> take_command(std::string& received) {
  std::string_view in = received;
  const auto words = take_number(in);
  if (!words) return std::nullopt;
  ScriptedServer::Words command;
  for (std::size_t i = 0; i < *words; ++i) {
    const auto size = take_number(in);
    if (!size || in.size() < *size + 2) return std::nullopt;
    command.emplace_back(in.substr(0, *size));
    in.remove_prefix(*size + 2);
  }
  received.erase(0, received.size() - in.size());
  return command;
}

}  // namespace

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  SEMEL_ASSERT(listener_ >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  SEMEL_ASSERT(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  SEMEL_ASSERT(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  SEMEL_ASSERT(::listen(listener_, SOMAXCONN) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

ScriptedServer::~ScriptedServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    for (const int fd : connections_) ::shutdown(fd, SHUT_RDWR);
  }
  ending_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  for (const int fd : connections_) ::close(fd);
  ::close(listener_);
}

void ScriptedServer::accept_all() {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard lock(mutex_);
    connections_.push_back(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void ScriptedServer::serve(int fd) {
  std::string received;
  std::array<char, 65536> piece{};
  for (;;) {
    while (auto command = take_command(received)) {
      ScriptedAnswer answer;
      {
        const std::lock_guard lock(scripting_);
        answer = script_(*command);
      }
      if (!give(fd, answer)) {
        ::shutdown(fd, SHUT_RDWR);
        return;
      }
    }
    const ssize_t n = ::recv(fd, piece.data(), piece.size(), 0);
    if (n <= 0) return;
    received.append(piece.data(), static_cast<std::size_t>(n));
  }
}

bool ScriptedServer::give(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool ScriptedServer::give(int fd, const ScriptedAnswer& answer) {
  if (!give(fd, answer.bytes)) return false;
  switch (answer.then) {
    case ScriptedAnswer::Then::listen:
      return true;
    case ScriptedAnswer::Then::close:
      return false;
    case ScriptedAnswer::Then::flood:
      while (give(fd, answer.again)) {
      }
      return false;
    case ScriptedAnswer::Then::drip:
      for (std::size_t i = 0; give(fd, answer.again.substr(i % answer.again.size(), 1)); ++i) {
        std::unique_lock lock(mutex_);
        if (ending_.wait_for(lock, kBetweenDrops, [this] { return over_; })) return false;
      }
      return false;
  }
  return false;
}

void ScriptedServer::say(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  for (const int fd : connections_) (void)give(fd, bytes);
}

}  // namespace semel
