#include "module/commands/creation.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace semel::module {

std::string text_of(double value) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

bool take_when_full(Options& options, WhenFull& out) {
  const std::optional<std::string_view> text = options.value("ONFULL");
  if (!text) return false;
  if (is_word(*text, "REFUSE")) {
    out = WhenFull::refuse;
  } else if (is_word(*text, "FORGET")) {
    out = WhenFull::forget;
  } else {
    options.refuse("ERR ONFULL is refuse or forget");
  }
  return true;
}

bool take_max_bytes(Options& options, std::uint64_t least, std::uint64_t& out) {
  return options.count("MAXBYTES", least, std::numeric_limits<std::int64_t>::max(), out);
}

bool take_secret(Options& options, const host::Call& call, std::optional<Secret>& out) {
  if (!call.replayed()) return false;
  const std::optional<std::string_view> text = options.value("SECRET");
  if (!text) return false;
  if (text->size() != Secret::kSize) {
    options.refuse("ERR SECRET has 32 bytes");
    return true;
  }
  std::array<std::uint8_t, Secret::kSize> bytes;
  std::copy(text->begin(), text->end(), bytes.begin());
  out.emplace(bytes);
  return true;
}

bool take_tag(Options& options, const host::Call& call, std::optional<std::uint64_t>& out,
              const char* word) {
  if (!call.replayed()) return false;
  const std::optional<std::string_view> text = options.value(word);
  if (!text) return false;
  out = parse_count(*text);
  if (!out) options.refuse("ERR TAG and LIFE are numbers");
  return true;
}

bool take_limit(host::Call& call, std::uint64_t& max_bytes) {
  const std::uint64_t limit = max_value_bytes(call);
  if (limit == 0) return true;
  if (max_bytes == kNoCap) max_bytes = limit;
  if (max_bytes <= limit) return true;
  call.error("ERR MAXBYTES is more than semel.max-value-bytes, " + std::to_string(limit));
  return false;
}

std::string refusal(const host::Call& call, const char* what, const Error& error) {
  std::string text = std::string("ERR could not create ").append(what).append(": ");
  text += error.what;
  const std::uint64_t limit = max_value_bytes(call);
  if (limit != 0) text += " (semel.max-value-bytes is " + std::to_string(limit) + ")";
  return text;
}

std::string too_large(const char* what) {
  return std::string("ERR ").append(what).append(" would take more memory than ") +
         "semel.max-value-bytes allows, " + std::to_string(host::value_limit()) + " bytes";
}

}  // namespace semel::module
