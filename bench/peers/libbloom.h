// Libbloom: the plain Bloom filter of libbloom 1.6, hashed with its own MurmurHash2.
//
// It is made for a number of keys and an error rate; bits and hashes follow from them. Its hashes
// have 32 bits.
#pragma once

#include <bloom.h>

#include <cstdint>

#include "bench/keys.h"
#include "semel/core/assert.h"

namespace semel::bench {

class Libbloom {
 public:
  Libbloom(std::uint64_t keys, double error) {
    SEMEL_ASSERT(bloom_init(&bloom_, static_cast<int>(keys), error) == 0);
  }
  ~Libbloom() { bloom_free(&bloom_); }
  Libbloom(const Libbloom&) = delete;
  Libbloom& operator=(const Libbloom&) = delete;

  bool add(const Key& key) { return bloom_add(&bloom_, &key, sizeof key) == 0; }
  bool contains(const Key& key) const { return bloom_check(&bloom_, &key, sizeof key) == 1; }
  std::uint64_t bits() const { return static_cast<std::uint64_t>(bloom_.bytes) * 8; }
  void clear() { SEMEL_ASSERT(bloom_reset(&bloom_) == 0); }

 private:
  mutable bloom bloom_{};  // bloom_check() takes it as if it would change it
};

}  // namespace semel::bench
