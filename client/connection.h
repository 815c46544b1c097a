// Connection: one socket to one server.
//
// Contract  Commands are appended, sent together, and answered in their order. An error that the server
//           answers is a Reply like any other; an error of this class is one of the connection: it is
//           closed then, what was on its way is lost, and problem() says what happened in one sentence.
//           connect() logs in and selects the database before it returns.
// Waits     Every call has an end: after its time in the options, and never later than the time
//           that it is given. A reply that comes byte by byte has no more time than one that comes
//           at once. Only the lookup of a host's name takes as long as the system's resolver takes.
// Trust     None: a reply is within the limits or an error, and so is one that nobody asked for.
// Signals   A server that closes the socket is an error, never a SIGPIPE.
// Threads   A call needs the object to itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "client/command.h"
#include "client/reply.h"
#include "client/reply_reader.h"
#include "client/url.h"
#include "semel/core/result.h"

struct redisContext;

namespace semel::client {

struct Login {
  std::string user = {};
  std::string password = {};  // empty: no AUTH
  std::uint32_t database = 0;
  bool operator==(const Login&) const = default;
};

struct ConnectionOptions {
  std::int64_t connect_timeout_ms = 2'000;
  std::int64_t timeout_ms = 5'000;  // to take all that is sent, and to give one reply
  ReplyLimits limits = {};
};

using Time = std::chrono::steady_clock::time_point;
inline constexpr Time kNever = Time::max();

class Connection {
 public:
  explicit Connection(Address address, Login login = {}, ConnectionOptions options = {});
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  // Errc::io if the server is not there; Errc::mismatch if it does not let us in. Connected already:
  // nothing happens.
  Result<void> connect(Time until = kNever);
  bool connected() const { return context_ != nullptr; }
  // What was appended and not sent is dropped, and so is what was sent and not answered.
  void close();

  void append(const Command& command);
  std::size_t appended_bytes() const { return out_.size(); }
  // Sends all that was appended, connecting first if need be.
  Result<void> send(Time until = kNever);
  // The next answer. REQUIRES: awaited() > 0 and all was sent.
  Result<Reply> read(Time until = kNever);
  std::size_t awaited() const { return awaited_; }  // answers to come

  // append, send and read at once. REQUIRES: awaited() == 0.
  Result<Reply> call(const Command& command, Time until = kNever);

  const Address& address() const { return address_; }
  // Of the last error; empty before the first, and if there was no time to try anything.
  const std::string& problem() const { return problem_; }

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };

  Result<void> log_in(Time until);
  // Until the socket can be read or written.
  Result<void> wait(short events, Time until);
  // Takes what is there into the reader, after waiting for it.
  Result<void> receive(Time until);
  Result<void> refuse_unasked();
  Time end(std::int64_t timeout_ms, Time until) const;
  Error fail(Errc code, const char* what, const std::string& why);

  Address address_;
  Login login_;
  ConnectionOptions options_;
  std::unique_ptr<redisContext, Free> context_;
  ReplyReader reader_;
  std::string out_;
  std::size_t awaited_ = 0;
  std::size_t in_flight_ = 0;  // of these, sent
  std::string problem_;
};

}  // namespace semel::client
