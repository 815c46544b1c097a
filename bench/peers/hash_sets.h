// Exact sets: std::unordered_set and absl::flat_hash_set, each with the hash function that comes
// with it and with room for all keys from the start, as a filter has. Their memory is counted where
// they allocate it; what malloc adds is not.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_set>

#include "bench/keys.h"

namespace semel::bench {

template <class T>
class CountingAllocator {
 public:
  using value_type = T;

  explicit CountingAllocator(std::uint64_t* bytes) : bytes_(bytes) {}
  template <class U>
  CountingAllocator(const CountingAllocator<U>& other) : bytes_(other.bytes()) {}

  T* allocate(std::size_t n) {
    *bytes_ += n * kSize;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* memory, std::size_t n) {
    *bytes_ -= n * kSize;
    std::allocator<T>().deallocate(memory, n);
  }
  std::uint64_t* bytes() const { return bytes_; }
  bool operator==(const CountingAllocator& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr std::size_t kSize = sizeof(T);  // NOLINT(bugprone-sizeof-expression): any T
  std::uint64_t* bytes_;
};

struct StandardHash {
  std::size_t operator()(const Key& key) const { return std::hash<std::string_view>()(key.view()); }
};
struct AbslHash {
  std::size_t operator()(const Key& key) const { return absl::HashOf(key.first, key.second); }
};

template <class Set>
class ExactSet {
 public:
  explicit ExactSet(std::uint64_t keys)
      : keys_(keys),
        set_(0, typename Set::hasher(), {}, typename Set::allocator_type(bytes_.get())) {
    set_.reserve(keys_);
  }

  bool add(const Key& key) { return set_.insert(key).second; }
  bool remove(const Key& key) { return set_.erase(key) == 1; }
  bool contains(const Key& key) const { return set_.contains(key); }
  std::uint64_t bits() const { return *bytes_ * 8; }
  void clear() {
    set_.clear();
    set_.reserve(keys_);
  }

 private:
  std::uint64_t keys_;
  std::unique_ptr<std::uint64_t> bytes_ = std::make_unique<std::uint64_t>(0);
  Set set_;
};

using UnorderedSet =
    ExactSet<std::unordered_set<Key, StandardHash, std::equal_to<>, CountingAllocator<Key>>>;
using FlatHashSet =
    ExactSet<absl::flat_hash_set<Key, AbslHash, std::equal_to<>, CountingAllocator<Key>>>;

}  // namespace semel::bench
