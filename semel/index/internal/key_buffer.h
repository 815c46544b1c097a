// KeyBuffer: collects keys that are looked up together, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace semel::index_internal {

class KeyBuffer {
 public:
  static constexpr std::size_t kFull = std::size_t{256} << 10;

  void add(std::string_view key);
  bool empty() const { return ends_.empty(); }
  bool full() const { return bytes() >= kFull; }
  std::size_t bytes() const { return keys_.size() + ends_.size() * sizeof ends_[0]; }
  std::size_t capacity() const { return keys_.capacity() + ends_.capacity() * sizeof ends_[0]; }
  // Valid until the buffer changes.
  std::vector<std::string_view> sorted() const;
  void clear();
  void release();  // also frees the memory

 private:
  std::string_view at(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(keys_).substr(begin, ends_[i] - begin);
  }

  std::string keys_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace semel::index_internal
