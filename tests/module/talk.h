// Talk: a connection to a server that speaks the bytes of RESP2 or RESP3.
//
// Contract  Answers are shown with their types, so that a test compares one text with another:
//             5  an integer        "a"  a string      +OK  a status       -ERR x  an error
//             nil  RESP2's null    null  RESP3's      ,0.5  a number      #t  a boolean
//             [1, 2]  an array     {"a": 1}  a map    >[1]  a push
//           If a server goes away, or does not answer within half a minute, the answer is `lost`.
//           If a server answers twice, the next call ends the test.
// Threads   A call needs the object to itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/redis_server.h"

namespace semel {

using Words = std::vector<std::string>;

// Returns the words of a line as MONITOR writes them: "..." may hold blanks, nothing, and bytes as
// \xHH, \n, \r, \t, \a, \b, \\ and \".
Words words_of(std::string_view line);

struct Answer {
  char type = '!';        // the type in the protocol; '!': the connection is lost
  std::string text = {};  // for a string, status, error, number or boolean
  bool null = false;
  std::vector<Answer> parts = {};  // for a map: keys and values in turn

  bool is_error() const { return type == '-'; }
  bool lost() const { return type == '!'; }
  std::int64_t integer() const;
  std::string shown() const;
};

class Talk {
 public:
  explicit Talk(const RedisServer& server, int protocol = 2) : Talk(server.port(), protocol) {}
  explicit Talk(std::uint16_t port, int protocol = 2);
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;
  ~Talk();

  std::string operator()(std::string_view line) { return call(words_of(line)).shown(); }
  Answer call(const Words& words);

  // The two halves of call(): several commands may be sent before the first answer is read.
  void send(const Words& words) const;
  Answer read();

 private:
  bool fill();
  bool line(std::string& out);
  bool take(std::size_t size, std::string& out);

  int fd_ = -1;
  std::string in_;
  std::size_t at_ = 0;  // how much of in_ was read
};

}  // namespace semel
