#include "bench/peers/redis_load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "semel/core/assert.h"

namespace semel::bench {
namespace {

int connect_to(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  SEMEL_ASSERT(socket >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(static_cast<std::uint16_t>(port));
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket);
    return -1;
  }
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    SEMEL_ASSERT(sent > 0);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

long number_in(std::string_view text) {
  long value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Returns the end of the reply that begins at `at`; nothing if a part of it is still to come. Adds
// the content of a complete reply to `replies`.
std::optional<std::size_t> read_reply(std::string_view in, std::size_t at, Replies& replies) {
  const std::size_t end = in.find('\r', at);
  if (end == std::string_view::npos || end + 1 >= in.size()) return std::nullopt;
  const std::string_view line = in.substr(at + 1, end - at - 1);
  std::size_t next = end + 2;
  switch (in[at]) {
    case ':':
      if (line == "1") ++replies.ones;
      return next;
    case '-':
      if (replies.errors++ == 0) replies.first_error = line;
      return next;
    case '$': {
      const long length = number_in(line);
      if (length < 0) {
        ++replies.nulls;
        return next;
      }
      const auto size = static_cast<std::size_t>(length);
      if (in.size() < next + size + 2) return std::nullopt;
      if (in.substr(next, size) == "duplicate") ++replies.duplicates;
      return next + size + 2;
    }
    case '*': {
      const long count = number_in(line);
      for (long i = 0; i < count; ++i) {
        if (next >= in.size()) return std::nullopt;
        const std::optional<std::size_t> after = read_reply(in, next, replies);
        if (!after) return std::nullopt;
        next = *after;
      }
      return next;
    }
    default:
      return next;
  }
}

}  // namespace

void Commands::add(std::span<const std::string_view> words) {
  bytes_.append("*").append(std::to_string(words.size())).append("\r\n");
  for (const std::string_view word : words) {
    bytes_.append("$").append(std::to_string(word.size())).append("\r\n");
    bytes_.append(word).append("\r\n");
  }
  if (size_++ % depth_ == 0) ends_.emplace_back();
  ends_.back() = bytes_.size();
}

std::string_view Commands::pipeline(std::size_t index) const {
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(bytes_).substr(begin, ends_[index] - begin);
}

std::size_t Commands::commands_of(std::size_t index) const {
  return index + 1 < ends_.size() ? depth_ : size_ - index * depth_;
}

RedisLoad::RedisLoad(int port, std::size_t connections) : poll_(::epoll_create1(0)) {
  SEMEL_ASSERT(poll_ >= 0);
  for (std::size_t i = 0; i < connections; ++i) {
    const int socket = connect_to(port);
    SEMEL_ASSERT(socket >= 0);
    connections_.push_back({socket, {}});
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    SEMEL_ASSERT(::epoll_ctl(poll_, EPOLL_CTL_ADD, socket, &event) == 0);
  }
}

RedisLoad::~RedisLoad() {
  for (const Connection& connection : connections_) ::close(connection.socket);
  ::close(poll_);
}

void RedisLoad::take_replies(Connection& connection, Replies& replies) {
  constexpr std::size_t kRead = 1 << 16;
  std::string& buffer = connection.buffer;
  const std::size_t had = buffer.size();
  buffer.resize(had + kRead);
  const ssize_t got = ::recv(connection.socket, buffer.data() + had, kRead, 0);
  if (got <= 0) {
    std::fprintf(stderr, "the server has closed a connection\n");
    std::exit(1);
  }
  buffer.resize(had + static_cast<std::size_t>(got));
  while (connection.taken < buffer.size()) {
    Replies one;
    const std::optional<std::size_t> next = read_reply(buffer, connection.taken, one);
    if (!next) return;
    connection.taken = *next;
    SEMEL_ASSERT(connection.awaited > 0);
    --connection.awaited;
    ++replies.count;
    replies.ones += one.ones;
    replies.duplicates += one.duplicates;
    replies.nulls += one.nulls;
    if (one.errors > 0 && replies.errors == 0) replies.first_error = one.first_error;
    replies.errors += one.errors;
  }
  buffer.clear();
  connection.taken = 0;
}

Replies RedisLoad::run(const Commands& commands) {
  Replies replies;
  std::size_t next = 0;
  const auto send_next = [&](Connection& connection) {
    if (next == commands.pipelines()) return;
    connection.awaited = commands.commands_of(next);
    send_all(connection.socket, commands.pipeline(next++));
  };
  for (Connection& connection : connections_) send_next(connection);
  std::array<epoll_event, 64> events;
  while (replies.count < commands.size()) {
    const int ready = ::epoll_wait(poll_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < ready; ++i) {
      Connection& connection = connections_[events[static_cast<std::size_t>(i)].data.u64];
      take_replies(connection, replies);
      if (connection.awaited == 0) send_next(connection);
    }
  }
  return replies;
}

std::string RedisLoad::call(std::initializer_list<std::string_view> words) {
  Commands one;
  one.add(words);
  const int socket = connections_.front().socket;
  send_all(socket, one.pipeline(0));
  std::string in;
  std::array<char, 1 << 14> piece;
  Replies reply;
  while (true) {
    const ssize_t got = ::recv(socket, piece.data(), piece.size(), 0);
    SEMEL_ASSERT(got > 0);
    in.append(piece.data(), static_cast<std::size_t>(got));
    reply = {};
    if (read_reply(in, 0, reply)) break;
  }
  if (reply.errors > 0) {
    std::fprintf(stderr, "%s: %s\n", words.begin()->data(), reply.first_error.c_str());
    std::exit(1);
  }
  const std::size_t line = in.find('\r');
  return in[0] == '$' ? in.substr(line + 2, in.size() - line - 4) : in.substr(1, line - 1);
}

bool answers(int port) {
  const int socket = connect_to(port);
  if (socket < 0) return false;
  send_all(socket, "PING\r\n");
  std::array<char, 8> reply;
  const ssize_t got = ::recv(socket, reply.data(), reply.size(), 0);
  ::close(socket);
  return got > 0 && reply[0] == '+';
}

}  // namespace semel::bench
