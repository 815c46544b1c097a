#include "client/connection.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "semel/core/assert.h"

namespace semel::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kPiece = std::size_t{16} << 10;
constexpr const char* kLate = "no answer in time";
constexpr const char* kUnasked = "it sent a reply that was not asked for";

timeval interval(std::int64_t ms) {
  return {static_cast<time_t>(ms / 1000), static_cast<suseconds_t>(ms % 1000 * 1000)};
}

// Returns the milliseconds until a time. Rounds up, so that nobody wakes just before the time and
// waits again.
std::int64_t ms_until(Time time) {
  return std::chrono::ceil<milliseconds>(time - steady_clock::now()).count();
}

// Removes the secret: a server that does not know AUTH repeats its arguments.
std::string without(std::string_view text, const std::string& secret) {
  std::string out(text);
  for (std::size_t at = 0; (at = out.find(secret, at)) != std::string::npos;) {
    out.replace(at, secret.size(), "***");
    at += 3;
  }
  return out;
}

// Returns the error of hiredis in words, or that it took too long.
std::string reason(const redisContext& context, int number) {
  if (context.err == REDIS_ERR_IO && (number == EAGAIN || number == EINPROGRESS)) return kLate;
  return context.errstr;
}

}  // namespace

Connection::Connection(Address address, Login login, ConnectionOptions options)
    : address_(std::move(address)),
      login_(std::move(login)),
      options_(options),
      reader_(options.limits) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

void Connection::Free::operator()(redisContext* context) const { redisFree(context); }

void Connection::close() {
  context_.reset();
  reader_ = ReplyReader(options_.limits);
  out_.clear();
  awaited_ = 0;
  in_flight_ = 0;
}

Error Connection::fail(Errc code, const char* what, const std::string& why) {
  close();
  return {code, std::string(what) + ' ' + address_.text() + ": " + why};
}

Time Connection::end(std::int64_t timeout_ms, Time until) const {
  return std::min(until, steady_clock::now() + milliseconds(timeout_ms));
}

Result<void> Connection::connect(Time until) {
  if (connected()) return {};
  const std::int64_t left_ms = ms_until(end(options_.connect_timeout_ms, until));
  if (left_ms <= 0) {
    close();
    return Error{Errc::limit, "there was no time to ask " + address_.text()};
  }
  const timeval wait = interval(left_ms);
  errno = 0;
  context_.reset(address_.unix_socket()
                     ? redisConnectUnixWithTimeout(address_.host.c_str(), wait)
                     : redisConnectWithTimeout(address_.host.c_str(), address_.port, wait));
  if (context_ == nullptr) throw std::bad_alloc();
  if (context_->err != 0) return fail(Errc::io, "cannot connect to", reason(*context_, errno));
  // Commands may have been appended while there was no connection: they come after the login.
  std::string appended = std::exchange(out_, {});
  const std::size_t awaited = std::exchange(awaited_, 0);
  SEMEL_TRY(log_in(until));
  out_ = std::move(appended);
  awaited_ = awaited;
  return {};
}

Result<void> Connection::log_in(Time until) {
  if (!login_.password.empty()) {
    Command auth{"AUTH"};
    if (!login_.user.empty()) auth.add(login_.user);
    const Reply reply = SEMEL_TRY(call(auth.add(login_.password), until));
    if (reply.is_error()) {
      return fail(Errc::mismatch, "cannot log in at",
                  excerpt(without(reply.text(), login_.password)));
    }
  }
  if (login_.database != 0) {
    const Reply reply =
        SEMEL_TRY(call(Command{"SELECT"}.add(std::int64_t{login_.database}), until));
    if (reply.is_error()) {
      return fail(Errc::mismatch, "cannot select the database of", reply.excerpt());
    }
  }
  return {};
}

void Connection::append(const Command& command) {
  command.write(out_);
  ++awaited_;
}

Result<void> Connection::wait(short events, Time until) {
  pollfd socket{context_->fd, events, 0};
  for (;;) {
    constexpr std::int64_t kLongest = 1'000'000;
    const std::int64_t left_ms = std::clamp<std::int64_t>(ms_until(until), 0, kLongest);
    const int ready = ::poll(&socket, 1, static_cast<int>(left_ms));
    if (ready > 0) return {};  // also if it is late: what is there is taken
    if (ready < 0 && errno != EINTR) return fail(Errc::io, "lost", std::strerror(errno));
    if (left_ms == 0) {
      return fail(Errc::io, "lost", (events & POLLOUT) != 0 ? "it takes no more bytes" : kLate);
    }
  }
}

// Refuses a reply that comes before its command: it would be taken for the answer.
Result<void> Connection::refuse_unasked() {
  char byte = 0;
  const bool quiet = ::recv(context_->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
  if (quiet) return {};
  return fail(Errc::io, "lost", kUnasked);
}

Result<void> Connection::send(Time until) {
  SEMEL_TRY(connect(until));
  if (in_flight_ == 0) SEMEL_TRY(refuse_unasked());
  // hiredis is not used here: it raises SIGPIPE.
  const Time end = this->end(options_.timeout_ms, until);
  for (std::size_t sent = 0; sent < out_.size();) {
    const ssize_t n =
        ::send(context_->fd, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) sent += static_cast<std::size_t>(n);
    if (n >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return fail(Errc::io, "lost", std::strerror(errno));
    SEMEL_TRY(wait(POLLOUT, end));
  }
  out_.clear();
  in_flight_ = awaited_;
  return {};
}

Result<void> Connection::receive(Time until) {
  SEMEL_TRY(wait(POLLIN, until));
  std::array<char, kPiece> piece;
  const ssize_t n = ::recv(context_->fd, piece.data(), piece.size(), MSG_DONTWAIT);
  if (n > 0) reader_.feed({piece.data(), static_cast<std::size_t>(n)});
  if (n == 0) return fail(Errc::io, "lost", "Server closed the connection");
  if (n < 0 && errno != EINTR && errno != EAGAIN) {
    return fail(Errc::io, "lost", std::strerror(errno));
  }
  return {};
}

Result<Reply> Connection::read(Time until) {
  SEMEL_ASSERT(awaited_ > 0 && out_.empty());
  if (!connected()) return Error{Errc::io, "lost"};
  const Time end = this->end(options_.timeout_ms, until);
  for (;;) {
    auto reply = reader_.next();
    if (!reply) return fail(Errc::io, "lost", reply.error().message());
    if (*reply) {
      --awaited_;
      --in_flight_;
      if (in_flight_ == 0 && reader_.pending() > 0) return fail(Errc::io, "lost", kUnasked);
      return **std::move(reply);
    }
    SEMEL_TRY(receive(end));
  }
}

Result<Reply> Connection::call(const Command& command, Time until) {
  SEMEL_ASSERT(awaited_ == 0);
  append(command);
  SEMEL_TRY(send(until));
  return read(until);
}

}  // namespace semel::client
