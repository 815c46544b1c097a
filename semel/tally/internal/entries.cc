#include "semel/tally/internal/entries.h"

#include <algorithm>

#include "semel/core/codec.h"
#include "semel/hash/internal/sealed.h"

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

constexpr std::size_t kChecksumBytes = 8;

std::string sealed_entry(const std::string& key, const auto& value) {
  Bytes out;
  value.encode(out);
  Writer(out).u64(entry_checksum(key, out));
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

std::uint64_t entry_checksum(std::string_view key, ByteView value) {
  Bytes both;
  both.reserve(key.size() + value.size());
  const ByteView first = bytes_of(key);
  both.insert(both.end(), first.begin(), first.end());
  both.insert(both.end(), value.begin(), value.end());
  return checksum(both);
}

std::string entry_of(const Operation& operation) {
  return sealed_entry(operation_key(operation.dot), operation);
}

std::string entry_of(SiteId site, const SiteView& view) {
  return sealed_entry(view_key(site), view);
}

Result<SharedEntry> decode_entry(std::string_view key, ByteView value) {
  const std::optional<Dot> dot = dot_of_key(key);
  const std::optional<SiteId> site = site_of_key(key);
  if (!dot && !site) return Error{Errc::corrupt, "this is not an entry of a table"};
  if (value.size() < kChecksumBytes) return Error{Errc::corrupt, "entry: size"};
  const ByteView body = value.first(value.size() - kChecksumBytes);
  if (load_u64(value.data() + body.size()) != entry_checksum(key, body)) {
    return Error{Errc::corrupt, "entry: checksum"};
  }
  if (dot) return SharedEntry(SEMEL_TRY(decoded_part(Operation::decode(*dot, body))));
  return SharedEntry(ViewOfSite{*site, SEMEL_TRY(decoded_part(SiteView::decode(body)))});
}

std::string join_entries(std::string_view key, std::string_view a, std::string_view b) {
  Result<SharedEntry> left = decode_entry(key, bytes_of(a));
  const Result<SharedEntry> right = decode_entry(key, bytes_of(b));
  if (left.has_value() != right.has_value()) return std::string(left ? a : b);
  if (left) {
    if (auto* const said = std::get_if<ViewOfSite>(&*left)) {
      said->view.merge(std::get<ViewOfSite>(*right).view);
      return entry_of(said->site, said->view);
    }
  }
  return std::string(std::max(a, b));
}

}  // namespace semel::tally::internal
