// RocksDbFilter: the Bloom filter of RocksDB 7.8, blocked by cache lines, hashed with its own XXH3.
//
// The public header makes filters, but only names the two classes through which they are used. They
// are declared here with the virtual functions of 7.8 in the order of 7.8, which is all that a call
// needs. Another version is refused below; check() shows that the calls do what they should.
//
// The filter lies in memory from operator new, as in RocksDB. On Linux with the usual settings that
// means pages of 4 KiB; pages_of_2_mib() moves it, to tell what the pages are worth.
#pragma once

#include <rocksdb/filter_policy.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "bench/keys.h"
#include "semel/bits/internal/line_array.h"
#include "semel/core/assert.h"

static_assert(ROCKSDB_MAJOR == 7 && ROCKSDB_MINOR == 8, "the classes below are those of 7.8");

// NOLINTBEGIN(readability-identifier-naming): the names are RocksDB's.
namespace rocksdb {

class FilterBitsBuilder {
 public:
  virtual ~FilterBitsBuilder() = default;
  virtual void AddKey(const Slice& key) = 0;
  virtual std::size_t EstimateEntriesAdded() = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* memory) = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* memory, Status* status) = 0;
  virtual Status MaybePostVerify(const Slice& filter) = 0;
  virtual std::size_t ApproximateNumEntries(std::size_t bytes) = 0;
};

class FilterBitsReader {
 public:
  virtual ~FilterBitsReader() = default;
  virtual bool MayMatch(const Slice& key) = 0;
  virtual void MayMatch(int keys, Slice** key, bool* found) = 0;
};

}  // namespace rocksdb
// NOLINTEND(readability-identifier-naming)

namespace semel::bench {

class RocksDbFilter {
 public:
  explicit RocksDbFilter(double bits_per_key)
      : policy_(rocksdb::NewBloomFilterPolicy(bits_per_key)) {
    rocksdb::BlockBasedTableOptions options;
    options.format_version = 5;  // the newest
    builder_.reset(policy_->GetBuilderWithContext(rocksdb::FilterBuildingContext(options)));
    SEMEL_ASSERT(builder_ != nullptr);
  }

  void add(const Key& key) { builder_->AddKey(slice_of(key)); }
  void seal() {
    filter_ = builder_->Finish(&memory_);
    builder_.reset();
    reader_.reset(policy_->GetFilterBitsReader(filter_));
  }
  void pages_of_2_mib() {
    huge_ = LineArray<char>(filter_.size());
    std::copy_n(filter_.data(), filter_.size(), huge_.data());
    filter_ = rocksdb::Slice(huge_.data(), huge_.size());
    memory_.reset();
    reader_.reset(policy_->GetFilterBitsReader(filter_));
  }

  bool contains(const Key& key) const { return reader_->MayMatch(slice_of(key)); }
  void contains(std::span<const Key> keys, std::span<bool> found) const {
    std::array<rocksdb::Slice, kMost> slices;
    std::array<rocksdb::Slice*, kMost> places;
    for (std::size_t i = 0; i < kMost; ++i) places[i] = &slices[i];
    for (std::size_t start = 0; start < keys.size(); start += kMost) {
      const std::size_t count = std::min(kMost, keys.size() - start);
      for (std::size_t i = 0; i < count; ++i) slices[i] = slice_of(keys[start + i]);
      reader_->MayMatch(static_cast<int>(count), places.data(), found.data() + start);
    }
  }
  std::uint64_t bits() const { return filter_.size() * 8; }

  // A small filter behaves as a Bloom filter: it finds all of its keys, and few others.
  static void check() {
    constexpr std::uint64_t kKeys = 10'000;
    RocksDbFilter filter(10);
    for (std::uint64_t n = 0; n < kKeys; ++n) filter.add(key_of(n));
    filter.seal();
    std::uint64_t found = 0;
    std::uint64_t wrong = 0;
    for (std::uint64_t n = 0; n < kKeys; ++n) {
      const std::array<Key, 2> keys = {key_of(n), key_of(kKeys + n)};
      std::array<bool, 2> both{};
      filter.contains(keys, both);
      found += filter.contains(keys[0]) && both[0];
      wrong += both[1];
      SEMEL_ASSERT(filter.contains(keys[1]) == both[1]);
    }
    SEMEL_ASSERT(found == kKeys && wrong > 0 && wrong < kKeys / 50);
  }

 private:
  static constexpr std::size_t kMost = 32;  // keys in a batch: its reader has room for no more

  static rocksdb::Slice slice_of(const Key& key) {
    return {reinterpret_cast<const char*>(&key), sizeof key};
  }

  std::unique_ptr<const rocksdb::FilterPolicy> policy_;
  std::unique_ptr<rocksdb::FilterBitsBuilder> builder_;
  std::unique_ptr<const char[]> memory_;
  LineArray<char> huge_;
  rocksdb::Slice filter_;
  std::unique_ptr<rocksdb::FilterBitsReader> reader_;
};

}  // namespace semel::bench
