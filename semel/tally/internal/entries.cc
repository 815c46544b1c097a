#include "semel/tally/internal/entries.h"

#include <algorithm>

#include "semel/core/codec.h"
#include "semel/tally/internal/logged_operation.h"
#include "semel/tally/internal/site_view.h"

namespace semel::tally::internal {
namespace {

// Appends the highest byte first, so that keys are in the order of their numbers.
template <class Number>
void append_ordered(std::string& key, Number number) {
  for (int shift = 8 * (static_cast<int>(sizeof number) - 1); shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>(number >> shift & 0xff));
  }
}

template <class Number>
Number take_ordered(std::string_view& key) {
  std::uint64_t number = 0;
  for (const char byte : key.substr(0, sizeof(Number))) {
    number = number << 8 | static_cast<std::uint8_t>(byte);
  }
  key.remove_prefix(sizeof(Number));
  return static_cast<Number>(number);
}

// Returns the rest of the key after the prefix, if it has this size.
std::optional<std::string_view> after(char prefix, std::size_t size, std::string_view key) {
  if (key.size() != 1 + size || key.front() != prefix) return std::nullopt;
  return key.substr(1);
}

// Flips the sign, so that negative times come first.
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

std::string encoded(const SiteView& view) {
  Bytes out;
  view.encode(out);
  return std::string(text_of(out));
}

}  // namespace

std::string counter_key(std::string_view counter) {
  std::string key;
  key.reserve(1 + counter.size());
  key.push_back(kCounterPrefix);
  key.append(counter);
  return key;
}

std::string operation_key(Dot dot) {
  std::string key(1, kOperationPrefix);
  append_ordered(key, dot.packed());
  return key;
}

std::string view_key(SiteId site) {
  std::string key(1, kViewPrefix);
  append_ordered(key, site);
  return key;
}

std::string forgotten_key(const Digest& client) {
  std::string key(1, kForgottenPrefix);
  append_ordered(key, client.hi);
  append_ordered(key, client.lo);
  return key;
}

std::string journal_key(TimeMs at_ms, std::uint64_t number) {
  std::string key(1, kJournalPrefix);
  append_ordered(key, static_cast<std::uint64_t>(at_ms) ^ kSign);
  append_ordered(key, number);
  return key;
}

std::optional<Dot> dot_of_key(std::string_view key) {
  std::optional<std::string_view> rest = after(kOperationPrefix, 8, key);
  if (!rest) return std::nullopt;
  const Dot dot = Dot::unpacked(take_ordered<std::uint64_t>(*rest));
  return dot.counter == 0 ? std::nullopt : std::optional(dot);
}

std::optional<SiteId> site_of_key(std::string_view key) {
  std::optional<std::string_view> rest = after(kViewPrefix, 2, key);
  return rest ? std::optional(take_ordered<SiteId>(*rest)) : std::nullopt;
}

std::optional<Digest> client_of_key(std::string_view key) {
  std::optional<std::string_view> rest = after(kForgottenPrefix, 16, key);
  if (!rest) return std::nullopt;
  const auto hi = take_ordered<std::uint64_t>(*rest);
  return Digest{take_ordered<std::uint64_t>(*rest), hi};
}

std::optional<JournalKey> journal_of_key(std::string_view key) {
  std::optional<std::string_view> rest = after(kJournalPrefix, 16, key);
  if (!rest) return std::nullopt;
  const auto at_ms = static_cast<TimeMs>(take_ordered<std::uint64_t>(*rest) ^ kSign);
  return JournalKey{at_ms, take_ordered<std::uint64_t>(*rest)};
}

std::string join_entries(std::string_view key, std::string_view a, std::string_view b) {
  if (site_of_key(key)) {
    Result<SiteView> left = SiteView::decode(bytes_of(a));
    const Result<SiteView> right = SiteView::decode(bytes_of(b));
    if (left && right) {
      left->merge(*right);
      return encoded(*left);
    }
    if (left || right) return std::string(left ? a : b);
  }
  if (const std::optional<Dot> dot = dot_of_key(key)) {
    const bool left = Operation::decode(*dot, bytes_of(a)).has_value();
    const bool right = Operation::decode(*dot, bytes_of(b)).has_value();
    if (left != right) return std::string(left ? a : b);
  }
  return std::string(std::max(a, b));
}

}  // namespace semel::tally::internal
