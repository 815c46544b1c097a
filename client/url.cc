#include "client/url.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "semel/core/internal/parse.h"

namespace semel::client {
namespace {

constexpr std::string_view kTcp = "redis://";
constexpr std::string_view kUnix = "redis+unix://";
constexpr std::string_view kTls = "rediss://";

std::optional<std::uint16_t> port_of(std::string_view text) {
  const auto port = parse_unsigned(text);
  if (!port || *port == 0 || *port > std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

std::optional<std::string> without_percent(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    if (text.size() - i < 3) return std::nullopt;
    const char* const end = text.data() + i + 3;
    const auto [stop, error] = std::from_chars(text.data() + i + 1, end, byte, 16);
    if (error != std::errc{} || stop != end) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

// Takes and parses the text before the last @. Returns false if it makes no sense.
bool take_user(std::string_view& text, Url& url) {
  const std::size_t at = text.rfind('@');
  if (at == std::string_view::npos) return true;
  const std::string_view user = text.substr(0, at);
  text.remove_prefix(at + 1);
  const std::size_t colon = std::min(user.find(':'), user.size());
  const auto name = without_percent(user.substr(0, colon));
  if (!name) return false;
  url.user = *name;
  if (colon == user.size()) return !name->empty();
  const auto password = without_percent(user.substr(colon + 1));
  if (!password || password->empty()) return false;
  url.password = *password;
  return true;
}

// Reads host, host:port, [v6] or [v6]:port.
std::optional<Address> host_of(std::string_view text) {
  std::string_view port;
  Address address;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return std::nullopt;
    address.host = text.substr(1, bracket - 1);
    port = text.substr(bracket + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    address.host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (address.host.empty() || address.host.find_first_of(" \t\r\n") != std::string::npos) {
    return std::nullopt;
  }
  if (port.empty()) return address;
  const auto number = port_of(port.substr(1));
  if (port.front() != ':' || !number) return std::nullopt;
  address.port = *number;
  return address;
}

}  // namespace

std::string Address::text() const {
  if (unix_socket()) return host;
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

Result<Address> parse_address(std::string_view text) {
  const Error wrong{Errc::invalid, "an address is host:port"};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  const auto port = port_of(text.substr(colon + 1));
  if (!port) return wrong;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return Address{std::string(host), *port};
}

Result<Url> parse_url(std::string_view text) {
  const Error wrong{Errc::invalid,
                    "redis://[user[:password]@]host[:port][,host[:port]...][/database] or "
                    "redis+unix://[user[:password]@]/path"};
  if (text.starts_with(kTls)) {
    return Error{
        Errc::unsupported,
        "redis:// or redis+unix://; this build speaks no TLS, a tunnel such as stunnel does"};
  }
  Url url;
  if (text.starts_with(kUnix)) {
    text.remove_prefix(kUnix.size());
    if (!take_user(text, url) || text.size() < 2 || text.front() != '/') return wrong;
    url.addresses.push_back({std::string(text), 0});
    return url;
  }
  if (!text.starts_with(kTcp)) return wrong;
  text.remove_prefix(kTcp.size());
  if (!take_user(text, url)) return wrong;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view database = text.substr(slash + 1);
    text = text.substr(0, slash);
    if (!database.empty()) {
      const auto number = parse_unsigned(database);
      if (!number || *number > std::numeric_limits<std::int32_t>::max()) return wrong;
      url.database = static_cast<std::uint32_t>(*number);
    }
  }
  for (;;) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto address = host_of(text.substr(0, comma));
    if (!address) return wrong;
    url.addresses.push_back(*address);
    if (comma == text.size()) return url;
    text.remove_prefix(comma + 1);
  }
}

std::string_view password_in(std::string_view text) {
  constexpr std::string_view kBeforeUser = "://";
  const std::size_t scheme = text.find(kBeforeUser);
  const std::size_t at = text.rfind('@');
  if (scheme == std::string_view::npos || at == std::string_view::npos) return {};
  const std::size_t colon = text.find(':', scheme + kBeforeUser.size());
  if (colon >= at) return {};
  return text.substr(colon + 1, at - colon - 1);
}

std::string without_password(std::string_view text) {
  std::string out(text);
  const std::string_view password = password_in(text);
  if (password.data() != nullptr) {
    const auto colon = static_cast<std::size_t>(password.data() - text.data()) - 1;
    out.erase(colon, password.size() + 1);
  }
  return out;
}

}  // namespace semel::client
