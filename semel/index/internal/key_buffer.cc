#include "semel/index/internal/key_buffer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "semel/core/assert.h"

namespace semel::index_internal {
namespace {

// Returns the first eight bytes as a number of the same order. Short keys are padded with zeros.
std::uint64_t leading(std::string_view key) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    number = number << 8 | (i < key.size() ? static_cast<std::uint8_t>(key[i]) : 0U);
  }
  return number;
}

}  // namespace

void KeyBuffer::add(std::string_view key) {
  if (!empty() && at(ends_.size() - 1) == key) return;
  SEMEL_ASSERT(key.size() < std::numeric_limits<std::uint32_t>::max() - kFull);
  keys_.append(key);
  ends_.push_back(static_cast<std::uint32_t>(keys_.size()));
}

std::vector<std::string_view> KeyBuffer::sorted() const {
  std::vector<std::string_view> keys(ends_.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = at(i);
  if (std::is_sorted(keys.begin(), keys.end())) return keys;

  // Keys of one table have a common prefix. The eight bytes after it, compared as one number,
  // mostly decide.
  std::size_t alike = keys.front().size();
  for (const std::string_view key : keys) {
    const auto [differs, ignored] = std::mismatch(
        key.begin(), key.begin() + static_cast<std::ptrdiff_t>(std::min(alike, key.size())),
        keys.front().begin());
    alike = static_cast<std::size_t>(differs - key.begin());
  }
  std::vector<std::pair<std::uint64_t, std::string_view>> order(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    order[i] = {leading(keys[i].substr(alike)), keys[i]};
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = order[i].second;
  return keys;
}

void KeyBuffer::clear() {
  keys_.clear();
  ends_.clear();
}

void KeyBuffer::release() {
  std::string().swap(keys_);
  std::vector<std::uint32_t>().swap(ends_);
}

}  // namespace semel::index_internal
