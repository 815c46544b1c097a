#include "cli/escaped.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace semel::cli {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

void append_hex(unsigned char byte, std::string& to) {
  to += {'\\', 'x', kHex[byte / 16], kHex[byte % 16]};
}

struct Character {
  std::uint32_t code;
  std::size_t size;  // in bytes; 0: not UTF-8
};

// Returns the first character of a text. REQUIRES: it is not empty.
Character first_character(std::string_view text) {
  struct Form {
    unsigned char mask, lead;
    std::uint32_t least;  // smaller codes have a shorter form
  };
  static constexpr std::array<Form, 4> kForms = {
      {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}}};
  const auto lead = static_cast<unsigned char>(text[0]);
  for (std::size_t size = 1; size <= kForms.size(); ++size) {
    const Form& form = kForms.at(size - 1);
    if ((lead & form.mask) != form.lead) continue;
    if (text.size() < size) break;
    std::uint32_t code = lead & static_cast<unsigned char>(~form.mask);
    for (const char c : text.substr(1, size - 1)) {
      const auto byte = static_cast<unsigned char>(c);
      if ((byte & 0xc0) != 0x80) return {0, 0};
      code = code << 6 | (byte & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (code < form.least || code > 0x10ffff || surrogate) break;
    return {code, size};
  }
  return {0, 0};
}

bool is_shown(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  if (code == 0x061c || code == 0x200e || code == 0x200f) return false;  // direction marks
  return (code < 0x2028 || code > 0x202e) && (code < 0x2066 || code > 0x2069);
}

}  // namespace

std::string escaped(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      append_hex(byte, out);
    }
  }
  return out;
}

std::string printable(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Character character = first_character(bytes);
    const std::size_t size = std::max<std::size_t>(character.size, 1);
    if (character.size > 0 && is_shown(character.code)) {
      out += bytes.substr(0, size);
    } else {
      for (const char c : bytes.substr(0, size)) append_hex(static_cast<unsigned char>(c), out);
    }
    bytes.remove_prefix(size);
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
