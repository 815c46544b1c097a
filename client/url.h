// Url: where servers are, as one text.
//
//   redis://[user[:password]@]host[:port][,host[:port]...][/database]
//   redis+unix://[user[:password]@]/path/of/the/socket
//
// Contract  A text is read whole or refused. Before the @, %XX stands for a byte. An IPv6 address
//           stands in brackets. Several hosts are ways into one cluster. An empty user with a
//           password is the default user. rediss:// is refused: the hiredis of Debian 12 speaks no
//           TLS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/result.h"

namespace semel::client {

inline constexpr std::uint16_t kDefaultPort = 6379;

// One process to connect to.
struct Address {
  std::string host;                   // a name or an IP address, or the path of a socket
  std::uint16_t port = kDefaultPort;  // 0: a unix socket

  bool unix_socket() const { return port == 0; }
  std::string text() const;  // host:port, [v6]:port or the path
  bool operator==(const Address&) const = default;
  auto operator<=>(const Address&) const = default;
};

// Reads host:port as servers name each other: the port follows the last colon. Errc::invalid for
// anything else.
Result<Address> parse_address(std::string_view text);

struct Url {
  std::vector<Address> addresses;  // one or more
  std::string user = {};           // empty: the default user
  std::string password = {};       // empty: no AUTH
  std::uint32_t database = 0;
};

// Parses a URL. Errc::invalid, or Errc::unsupported for TLS; the error says what is allowed.
Result<Url> parse_url(std::string_view text);

// Finds the password in a text that may be a URL: the part between the first colon after :// and
// the last @. Empty if there is none.
std::string_view password_in(std::string_view text);
// Returns the text without the password and its colon.
std::string without_password(std::string_view text);

}  // namespace semel::client
