#include "cli/json.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/records.h"

namespace semel::cli {
namespace {

static_assert(kPadding >= simdjson::SIMDJSON_PADDING);
static_assert(JsonReader::kMostDepth < simdjson::DEFAULT_MAX_DEPTH);

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns the position behind the digits that begin at `at`.
std::size_t behind_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

bool is_whole(std::string_view number) {
  return behind_digits(number, number.starts_with('-') ? 1 : 0) == number.size();
}

// Follows the grammar of RFC 8259.
bool is_number(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const std::size_t from = at;
    at = behind_digits(text, at);
    return at > from;
  };
  const auto skip = [&](std::string_view any_of) {
    const bool there = at < text.size() && any_of.find(text[at]) != std::string_view::npos;
    at += there ? 1 : 0;
    return there;
  };
  if (!skip("0") && !digits()) return false;
  if (skip(".") && !digits()) return false;
  if (skip("eE")) {
    skip("+-");
    if (!digits()) return false;
  }
  return at == text.size();
}

// Returns the position behind the last byte that a number beginning at `at` may have.
std::size_t behind_number(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of("0123456789+-.eE", at), text.size());
}

// Returns the position behind the string that opens at `at`, or the end.
std::size_t behind_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// Returns the four digits of an escape; nullopt if this is not one.
std::optional<std::uint32_t> code_unit(std::string_view escape) {
  if (!escape.starts_with("\\u") || escape.size() < 6) return std::nullopt;
  std::uint32_t unit = 0;
  const char* const end = escape.data() + 6;
  const auto [rest, error] = std::from_chars(escape.data() + 2, end, unit, 16);
  return error == std::errc{} && rest == end ? std::optional(unit) : std::nullopt;
}

bool leads(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool trails(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

// Returns true if a string that was read holds half of a surrogate pair: bytes that are not UTF-8.
bool has_surrogate(std::string_view text) {
  for (std::size_t at = 0; (at = text.find('\xed', at)) < text.size(); ++at) {
    const std::string_view next = text.substr(at + 1, 1);
    if (!next.empty() && static_cast<unsigned char>(next.front()) >= 0xa0) return true;
  }
  return false;
}

Error problem_of(simdjson::error_code error) {
  switch (error) {
    case simdjson::DEPTH_ERROR:
      return {Errc::limit, "this JSON is nested too deep; allowed: " +
                               std::to_string(JsonReader::kMostDepth) + " levels"};
    case simdjson::CAPACITY:
    case simdjson::MEMALLOC:
      return {Errc::limit, "this JSON is too large", simdjson::error_message(error)};
    default:
      return {Errc::corrupt, "this is not JSON", simdjson::error_message(error)};
  }
}

}  // namespace

struct JsonReader::Parsers {
  simdjson::dom::parser document;
  simdjson::dom::element root;
  mutable simdjson::dom::parser number;
};

JsonReader::JsonReader() : parsers_(std::make_unique<Parsers>()) {}
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;
JsonReader::~JsonReader() = default;

Result<void> JsonReader::parse(std::string_view text) {
  is_rebuilt_ = false;
  is_torn_ = false;
  auto error = parsers_->document.parse(text.data(), text.size(), false).get(parsers_->root);
  if (error == simdjson::NUMBER_ERROR || error == simdjson::STRING_ERROR) {
    rebuild(text);
    is_rebuilt_ = true;
    error = parsers_->document.parse(rebuilt_.data(), rebuilt_.size() - kPadding, false)
                .get(parsers_->root);
  }
  if (error) return problem_of(error);
  return {};
}

// Copies what is neither a number nor a string by the grammar: the parser will refuse it.
void JsonReader::rebuild(std::string_view text) {
  rebuilt_.clear();
  numbers_.clear();
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      for (const std::size_t end = behind_string(text, at); at < end;) {
        at += rebuild_escape(text.substr(at, end - at));
      }
    } else if (text[at] == '-' || is_digit(text[at])) {
      const std::string_view token = text.substr(at, behind_number(text, at) - at);
      const bool sound = is_number(token);
      rebuilt_ += sound ? std::to_string(numbers_.size()) : token;
      if (sound) numbers_.push_back(token);
      at += token.size();
    } else {
      rebuilt_ += text[at++];
    }
  }
  rebuilt_.append(kPadding, '\0');
}

// Takes an escape, or one other byte, from the beginning of `rest`, and returns its size.
std::size_t JsonReader::rebuild_escape(std::string_view rest) {
  std::size_t size = rest.front() == '\\' ? std::min<std::size_t>(2, rest.size()) : 1;
  if (const auto unit = code_unit(rest)) {
    size = 6;
    const auto next = code_unit(rest.substr(size));
    if (leads(*unit) && next && trails(*next)) {
      size = 12;
    } else if (leads(*unit) || trails(*unit)) {
      is_torn_ = true;
      rebuilt_ += kReplacement;
      return size;
    }
  }
  rebuilt_ += rest.substr(0, size);
  return size;
}

std::string JsonReader::number(std::string_view ordinal) const {
  std::size_t place = 0;
  std::from_chars(ordinal.data(), ordinal.data() + ordinal.size(), place);
  const std::string_view token = numbers_[place];
  simdjson::dom::element element;
  if (parsers_->number.parse(token.data(), token.size(), true).get(element)) {
    return std::string(token);
  }
  return simdjson::minify(element);
}

JsonReader::Value JsonReader::at(const std::string& pointer, std::string& buffer) const {
  simdjson::dom::element value;
  if (parsers_->root.at_pointer(pointer).get(value)) return {};
  const auto torn = [&](std::string_view text) {
    return has_surrogate(text) || (is_torn_ && text.find(kReplacement) != std::string_view::npos);
  };
  std::string_view string;
  if (!value.get(string)) return {torn(string) ? Kind::torn : Kind::string, string};
  buffer = simdjson::minify(value);
  const bool is_integer = value.is_int64() || value.is_uint64();
  if (!is_integer && torn(buffer)) return {Kind::torn, {}};
  if (!is_rebuilt_) return {is_integer ? Kind::whole : Kind::other, buffer};

  const std::string ordinals = std::exchange(buffer, "");
  for (std::size_t at = 0; at < ordinals.size();) {
    const std::size_t from = at;
    if (ordinals[at] == '"') {
      at = behind_string(ordinals, at);
    } else if (is_digit(ordinals[at])) {
      at = behind_digits(ordinals, at);
      buffer += number(std::string_view(ordinals).substr(from, at - from));
      continue;
    } else {
      ++at;
    }
    buffer.append(ordinals, from, at - from);
  }
  return {is_integer && is_whole(buffer) ? Kind::whole : Kind::other, buffer};
}

}  // namespace semel::cli
