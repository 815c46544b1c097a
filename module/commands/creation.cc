#include "module/commands/creation.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "module/host/counters.h"
#include "module/host/value_limit.h"
#include "semel/core/internal/parse.h"

namespace semel::module {

std::string text_of(double value) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
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

bool take_tag(Options& options, const host::Call& call, const char* word,
              std::optional<std::uint64_t>& out) {
  if (!call.replayed()) return false;
  const std::optional<std::string_view> text = options.value(word);
  if (!text) return false;
  out = parse_unsigned(*text);
  if (!out) options.refuse("ERR TAG and LIFE are numbers");
  return true;
}

std::uint64_t max_value_bytes(const host::Call& call) {
  return call.replayed() ? 0 : host::value_limit();
}

std::string too_large(const char* what) {
  ++host::counters.refused_limit;
  return std::string("ERR ").append(what).append(" would take more memory than ") +
         "semel.max-value-bytes allows, " + std::to_string(host::value_limit()) + " bytes";
}

}  // namespace semel::module
