#include "cli/escaped.h"

#include <charconv>

namespace semel::cli {

std::string escaped(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kHex[byte / 16], kHex[byte % 16]};
    }
  }
  return out;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find('\\'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    if (text.starts_with("\\\\")) {
      out += '\\';
      text.remove_prefix(2);
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.starts_with("\\x") ? text.substr(2, 2) : "";
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, byte, 16);
    if (digits.size() != 2 || error != std::errc{} || rest != end) return std::nullopt;
    out += static_cast<char>(byte);
    text.remove_prefix(4);
  }
  return out;
}

}  // namespace semel::cli
