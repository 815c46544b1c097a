// RedisLoad: sends prepared commands to a server, in pipelines, over raw sockets, so that only the
// server is measured.
//
// Method    A few connections have one pipeline each on its way: the next goes out when all replies
//           of the last one have come. Replies are read only as far as is needed to count them and
//           their answers: a time for wrong answers means nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace semel::bench {

// Commands, encoded and cut into pipelines.
class Commands {
 public:
  explicit Commands(std::size_t depth = 50) : depth_(depth) {}

  void add(std::span<const std::string_view> words);
  void add(std::initializer_list<std::string_view> words) { add({words.begin(), words.size()}); }

  std::size_t size() const { return size_; }
  std::size_t pipelines() const { return ends_.size(); }
  std::string_view pipeline(std::size_t index) const;
  std::size_t commands_of(std::size_t index) const;

 private:
  std::size_t depth_;
  std::size_t size_ = 0;
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

// The replies, added up.
struct Replies {
  std::uint64_t count = 0;
  std::uint64_t ones = 0;        // integers that are 1, inside arrays too
  std::uint64_t duplicates = 0;  // the text "duplicate"
  std::uint64_t nulls = 0;
  std::uint64_t errors = 0;
  std::string first_error;
};

class RedisLoad {
 public:
  explicit RedisLoad(int port, std::size_t connections = 8);
  RedisLoad(const RedisLoad&) = delete;
  RedisLoad& operator=(const RedisLoad&) = delete;
  ~RedisLoad();

  Replies run(const Commands& commands);
  // Sends one command and returns its reply as text. Ends the program if the reply is an error.
  std::string call(std::initializer_list<std::string_view> words);

 private:
  struct Connection {
    int socket;
    std::string buffer;     // what has come of replies
    std::size_t taken = 0;  // of it
    std::size_t awaited = 0;
  };

  void take_replies(Connection& connection, Replies& replies);

  int poll_;
  std::vector<Connection> connections_;
};

// Returns true if a server answers at this port.
bool answers(int port);

}  // namespace semel::bench
