// Stores beside a map: their records, and the changes that they report.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "semel/store/ordered_store.h"
#include "semel/store/range_set.h"

namespace semel {

using Model = std::map<std::string, std::string>;

// The changes that were reported, by any thread.
class Told final : public ChangeObserver {
 public:
  Told() = default;
  Told(const Told& other) : keys_(other.keys_), ranges_(other.ranges_) {}
  void changed(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    keys_.emplace(key);
  }
  void changed(const KeyRange& range) override {
    const std::lock_guard lock(mutex_);
    ranges_.add(range);
  }
  bool contains(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    return keys_.contains(key) || ranges_.contains(key);
  }
  bool nothing() const {
    const std::lock_guard lock(mutex_);
    return keys_.empty() && ranges_.empty();
  }
  std::set<std::string> keys() const { return keys_; }
  RangeSet ranges() const { return ranges_; }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> keys_;
  RangeSet ranges_;
};

// A merge operator that appends: the result shows the order of operands, and not their grouping. A
// '!' is damage.
class Appender final : public Merger {
 public:
  const char* name() const override { return "semel.test.appender"; }
  bool merge(std::string_view /*key*/, std::optional<std::string_view> now,
             std::string_view operand, std::string& merged) const override {
    merged = std::string(now.value_or("")).append(operand);
    return merged.find('!') == std::string::npos;
  }
};

inline void put(OrderedStore& store, std::string_view key, std::string_view value) {
  const RecordWrite write{key, value};
  ASSERT_TRUE(store.write({&write, 1}));
}

inline Result<void> merge(OrderedStore& store, std::string_view key, std::string_view operand) {
  const RecordWrite write{key, operand, true};
  return store.write({&write, 1});
}

inline Model read(Cursor& cursor, std::string_view from = "") {
  Model records;
  for (cursor.seek(from); cursor.valid(); cursor.next()) {
    EXPECT_TRUE(records.empty() || records.rbegin()->first < cursor.key());
    records.emplace(cursor.key(), cursor.value());
  }
  EXPECT_TRUE(cursor.status());
  return records;
}

inline Model read(const OrderedStore& store) {
  const auto cursor = store.cursor();
  EXPECT_TRUE(cursor);
  return read(**cursor);
}

}  // namespace semel
