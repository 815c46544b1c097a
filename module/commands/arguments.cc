#include "module/commands/arguments.h"

#include <algorithm>
#include <array>
#include <limits>

#include "semel/core/internal/error_rate.h"

namespace semel::module {
namespace {

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 64;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kShown ? "...'" : "'");
}

}  // namespace

bool is_word(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (upper(text[i]) != word[i]) return false;
  }
  return true;
}

std::optional<std::uint64_t> parse_memory(std::string_view text) {
  struct Unit {
    const char* word;
    std::uint64_t bytes;
  };
  static constexpr std::array kUnits = {
      Unit{"", 1},          Unit{"B", 1},        Unit{"K", 1'000},         Unit{"KB", 1 << 10},
      Unit{"M", 1'000'000}, Unit{"MB", 1 << 20}, Unit{"G", 1'000'000'000}, Unit{"GB", 1 << 30}};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::uint64_t> number = parse_unsigned(text.substr(0, digits));
  for (const Unit& unit : kUnits) {
    if (!is_word(text.substr(digits), unit.word)) continue;
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / unit.bytes;
    return number && *number <= most ? std::optional(*number * unit.bytes) : std::nullopt;
  }
  return std::nullopt;
}

bool Options::once(std::string_view word) {
  std::string marked(word);
  marked += ' ';
  if (seen_.find(marked) != std::string::npos) {
    refuse("ERR " + std::string(word) + " is given twice");
    return false;
  }
  seen_ += marked;
  return true;
}

bool Options::flag(std::string_view word) {
  if (!is(word) || !once(word)) return false;
  ++next_;
  return true;
}

std::optional<std::string_view> Options::value(std::string_view word) {
  if (!is(word) || !once(word)) return std::nullopt;
  if (last()) {
    refuse("ERR " + std::string(word) + " needs a value");
    return std::nullopt;
  }
  next_ += 2;
  return call_[next_ - 1];
}

bool Options::rest(std::string_view word, std::size_t& first) {
  if (!is(word)) return false;
  first = next_ + 1;
  next_ = call_.size();
  return true;
}

void Options::refuse(const std::string& error) {
  if (refused_) return;
  refused_ = true;
  call_.error(error);
}

void Options::unknown() {
  if (more()) refuse("ERR unknown option " + quoted(call_[next_]));
}

void Options::wrong_arity() {
  if (refused_) return;
  refused_ = true;
  call_.wrong_arity();
}

bool Options::duration(std::string_view word, TimeMs& out) {
  const std::optional<std::string_view> text = value(word);
  if (!text) return false;
  const std::optional<TimeMs> parsed = parse_duration_ms(*text);
  if (!parsed || *parsed < 1) {
    refuse_value(word, *text, "milliseconds, 1 or more, or 30s, 10m, 2h, 7d");
    return false;
  }
  out = *parsed;
  return true;
}

bool Options::error_rate(std::string_view word, double& out) {
  const std::optional<std::string_view> text = value(word);
  if (!text) return false;
  const std::optional<double> parsed = parse_number(*text);
  if (!parsed || !is_error_rate(*parsed)) {
    refuse_value(word, *text, kErrorRatesAllowed);
    return false;
  }
  out = *parsed;
  return true;
}

bool Options::count(std::string_view word, std::uint64_t least, std::uint64_t most,
                    std::uint64_t& out) {
  const std::optional<std::string_view> text = value(word);
  if (!text) return false;
  const std::optional<std::uint64_t> parsed = parse_unsigned(*text);
  if (!parsed || *parsed < least || *parsed > most) {
    refuse_value(word, *text, std::to_string(least) + " to " + std::to_string(most));
    return false;
  }
  out = *parsed;
  return true;
}

bool Options::memory(std::string_view word, std::uint64_t least, std::uint64_t& out) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::optional<std::string_view> text = value(word);
  if (!text) return false;
  const std::optional<std::uint64_t> parsed = parse_memory(*text);
  if (!parsed || *parsed < least || *parsed > kMost) {
    refuse_value(
        word, *text,
        std::to_string(least) + " to " + std::to_string(kMost) + ", or a size such as 64mb");
    return false;
  }
  out = *parsed;
  return true;
}

void Options::refuse_value(std::string_view word, std::string_view value,
                           const std::string& allowed) {
  refuse(std::string("ERR ").append(word).append(" cannot be ").append(quoted(value)) +
         "; allowed: " + allowed);
}

}  // namespace semel::module
