// Attacks: what a server can do to a client instead of answering.
#pragma once

#include <string>
#include <vector>

#include "tests/support/scripted_server.h"

namespace semel {

struct Attack {
  std::string name;
  ScriptedAnswer answer;
};

// None of these is a reply, and none may be waited for longer than the client's deadline.
inline std::vector<Attack> attacks() {
  using Then = ScriptedAnswer::Then;
  using namespace std::string_literals;
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "*1\r\n";
  return {
      {"Silence", {}},
      {"EndsAtOnce", {"", Then::close}},
      {"EndsInALine", {"+PO", Then::close}},
      {"EndsInABulk", {"$100\r\nabc", Then::close}},
      {"EndsInAnArray", {"*2\r\n:1\r\n", Then::close}},
      {"StopsInABulk", {"$100\r\nabc"}},
      {"DripsALine", {"+", Then::drip, "x"}},
      {"DripsABulk", {"$1000000\r\n", Then::drip, "x"}},
      {"DripsAnArray", {"*1000\r\n", Then::drip, ":1\r\n"}},
      {"EndlessLine", {"+", Then::flood, std::string(65536, 'x')}},
      {"EndlessError", {"-", Then::flood, std::string(65536, '\x1b')}},
      {"EndlessNumber", {":", Then::flood, std::string(65536, '7')}},
      {"HugeBulk", {"$2147483647\r\n", Then::flood, std::string(65536, 'x')}},
      {"HugerBulk", {"$9223372036854775807\r\n", Then::flood, std::string(65536, 'x')}},
      {"HugeArray", {"*2147483647\r\n", Then::flood, ":1\r\n:2\r\n:3\r\n"}},
      {"HugerArray", {"*9223372036854775807\r\n"}},
      {"ManyArrays", {"*1000\r\n", Then::flood, "*1000\r\n" + std::string(4, '*') + "\r\n"}},
      {"WideArrays", {"*100000\r\n*100000\r\n*100000\r\n*100000\r\n*100000\r\n"}},
      {"DeepArrays", {deep}},
      {"NegativeBulk", {"$-2\r\n"}},
      {"NegativeArray", {"*-2\r\n"}},
      {"LowestArray", {"*-9223372036854775808\r\n"}},
      {"NoNumber", {":12x\r\n"}},
      {"TooLargeANumber", {":99999999999999999999\r\n"}},
      {"NoLength", {"$abc\r\n"}},
      {"NoProtocol", {"HTTP/1.1 400 Bad Request\r\n\r\n"}},
      {"ZeroBytes", {std::string(100, '\0')}},
  };
}

}  // namespace semel
