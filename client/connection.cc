#include "client/connection.h"

#include <hiredis/hiredis.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "semel/core/assert.h"

namespace semel::client {
namespace {

timeval interval(std::int64_t ms) {
  return {static_cast<time_t>(ms / 1000), static_cast<suseconds_t>(ms % 1000 * 1000)};
}

// What hiredis says, or that it took too long.
std::string reason(const redisContext& context, int number) {
  if (context.err == REDIS_ERR_IO && (number == EAGAIN || number == EINPROGRESS)) {
    return "no answer in time";
  }
  return context.errstr;
}

}  // namespace

Connection::Connection(Address address, Login login, ConnectionOptions options)
    : address_(std::move(address)), login_(std::move(login)), options_(options) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

void Connection::Free::operator()(redisContext* context) const { redisFree(context); }

void Connection::close() {
  context_.reset();
  out_.clear();
  awaited_ = 0;
}

Error Connection::fail(Errc code, const char* what, const std::string& why) {
  problem_ = std::string(what) + ' ' + address_.text() + ": " + why;
  close();
  return {code, what};
}

Result<void> Connection::connect() {
  if (connected()) return {};
  const timeval wait = interval(options_.connect_timeout_ms);
  errno = 0;
  context_.reset(address_.unix_socket()
                     ? redisConnectUnixWithTimeout(address_.host.c_str(), wait)
                     : redisConnectWithTimeout(address_.host.c_str(), address_.port, wait));
  if (context_ == nullptr) throw std::bad_alloc();
  if (context_->err != 0) return fail(Errc::io, "cannot connect to", reason(*context_, errno));
  if (redisSetTimeout(context_.get(), interval(options_.timeout_ms)) != REDIS_OK) {
    return fail(Errc::io, "cannot set the timeout of", context_->errstr);
  }
  // Commands may have been appended while there was no connection: they come after the login.
  std::string appended = std::exchange(out_, {});
  const std::size_t awaited = std::exchange(awaited_, 0);
  if (const auto done = log_in(); !done) return done;
  out_ = std::move(appended);
  awaited_ = awaited;
  return {};
}

Result<void> Connection::log_in() {
  if (!login_.password.empty()) {
    Command auth{"AUTH"};
    if (!login_.user.empty()) auth.add(login_.user);
    const auto reply = call(auth.add(login_.password));
    if (!reply) return reply.error();
    if (reply->is_error()) {
      return fail(Errc::mismatch, "cannot log in at", std::string(reply->text()));
    }
  }
  if (login_.database != 0) {
    const auto reply = call(Command{"SELECT"}.add(std::int64_t{login_.database}));
    if (!reply) return reply.error();
    if (reply->is_error()) {
      return fail(Errc::mismatch, "cannot select the database of", std::string(reply->text()));
    }
  }
  return {};
}

void Connection::append(const Command& command) {
  command.write(out_);
  ++awaited_;
}

Result<void> Connection::send() {
  if (const auto there = connect(); !there) return there;
  // Not by hiredis, which raises SIGPIPE.
  for (std::size_t sent = 0; sent < out_.size();) {
    const ssize_t n = ::send(context_->fd, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR) {
      return fail(Errc::io, "lost", errno == EAGAIN ? "it takes no more" : std::strerror(errno));
    }
  }
  out_.clear();
  return {};
}

Result<Reply> Connection::read() {
  SEMEL_ASSERT(awaited_ > 0 && out_.empty());
  if (!connected()) return Error{Errc::io, "lost"};
  void* reply = nullptr;
  errno = 0;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
    return fail(Errc::io, "lost", reason(*context_, errno));
  }
  --awaited_;
  return Reply(static_cast<redisReply*>(reply));
}

Result<Reply> Connection::call(const Command& command) {
  SEMEL_ASSERT(awaited_ == 0);
  append(command);
  if (const auto sent = send(); !sent) return sent.error();
  return read();
}

}  // namespace semel::client
