// Connection: one socket to one server.
//
// Contract  Commands are appended, sent together, and answered in their order. An error that the
//           server answers is a Reply like any other. An Error of this class closes the connection
//           and drops what was on its way; it says in one sentence what happened. A server that
//           closes the socket is such an error, never a SIGPIPE.
//           connect() logs in and selects the database before it returns.
// Waits     Every call ends after its time in the options, and never later than `until`. A reply
//           that comes byte by byte has no more time than one that comes at once. Only the lookup
//           of a host name has no limit but that of the system's resolver.
// Trust     None. A reply beyond the limits is an error, and so is one that nobody asked for.
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

  // Connects, unless it is connected. Errc::io if the server is not there, Errc::mismatch if it
  // does not let us in, Errc::limit if there is no time left to try.
  Result<void> connect(Time until = kNever);
  bool connected() const { return context_ != nullptr; }
  // Drops what was appended and not sent, and what was sent and not answered.
  void close();

  void append(const Command& command);
  std::size_t appended_bytes() const { return out_.size(); }
  // Sends all that was appended, after connecting if it is not connected.
  Result<void> send(Time until = kNever);
  // Returns the next answer. REQUIRES: awaited() > 0 and all was sent.
  Result<Reply> read(Time until = kNever);
  std::size_t awaited() const { return awaited_; }  // answers to come

  // Appends, sends and reads. REQUIRES: awaited() == 0.
  Result<Reply> call(const Command& command, Time until = kNever);

  const Address& address() const { return address_; }

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };

  Result<void> log_in(Time until);
  // Waits until the socket can be read or written.
  Result<void> wait(short events, Time until);
  // Waits for bytes and gives them to the reader.
  Result<void> receive(Time until);
  Result<void> refuse_unasked();
  Time end(std::int64_t timeout_ms, Time until) const;
  // Closes the connection and returns 'WHAT ADDRESS: WHY'.
  Error fail(Errc code, const char* what, const std::string& why);

  Address address_;
  Login login_;
  ConnectionOptions options_;
  std::unique_ptr<redisContext, Free> context_;
  ReplyReader reader_;
  std::string out_;
  std::size_t awaited_ = 0;
  std::size_t in_flight_ = 0;  // of these, sent
};

}  // namespace semel::client
