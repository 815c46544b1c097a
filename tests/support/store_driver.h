// Random writes, merges, removals and updates to a store, and to a std::map beside it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/store/key_range.h"
#include "semel/store/ordered_store.h"
#include "tests/support/store.h"

namespace semel {

// Returns the keys with different values, or in only one of the two.
inline std::set<std::string> changed_keys(const Model& before, const Model& after) {
  std::set<std::string> keys;
  for (const auto& [key, value] : before) {
    const auto same = after.find(key);
    if (same == after.end() || same->second != value) keys.insert(key);
  }
  for (const auto& [key, value] : after) {
    if (!before.contains(key)) keys.insert(key);
  }
  return keys;
}

inline void expect_told(const Told& told, const Model& before, const Model& after) {
  for (const std::string& key : changed_keys(before, after)) {
    ASSERT_TRUE(told.contains(key)) << "nobody was told of '" << key << "'";
  }
}

// Few keys, so that they meet; one is the beginning of another, some hold zeros or high bytes.
inline std::string small_key(std::uint64_t n) {
  static const std::string kBytes("a\0\x7f\x80z", 5);
  std::string key(n % 2 == 0 ? "a" : "b");
  for (n /= 2; n > 0; n /= kBytes.size()) key.push_back(kBytes[n % kBytes.size()]);
  return key;
}

// Applies random operations to a store and to its model. REQUIRES: the store appends (Appender).
class Driver {
 public:
  Driver(OrderedStore& store, const KeyRange& everything) : store_(store), within_(everything) {}

  void step(Random& random) {
    switch (random.below(8)) {
      case 0:
        return remove_range(random);
      case 1:
        return update(random);
      default:
        return write(random);
    }
  }
  const Model& model() const { return model_; }
  void restore(Model model) { model_ = std::move(model); }  // when the store has gone back to it

 private:
  static std::string random_key(Random& random) { return small_key(random.below(60)); }

  void write(Random& random) {
    std::vector<std::string> keys(1 + random.below(5)), values(keys.size());
    std::vector<RecordWrite> writes;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = random_key(random);
      values[i] = std::to_string(random());
      const std::uint64_t kind = random.below(4);
      if (kind == 0) {
        writes.push_back({keys[i], std::nullopt});
        model_.erase(keys[i]);
      } else if (kind == 1) {
        writes.push_back({keys[i], values[i]});
        model_[keys[i]] = values[i];
      } else {
        writes.push_back({keys[i], values[i], true});
        model_[keys[i]] += values[i];
      }
    }
    ASSERT_TRUE(store_.write(writes));
  }

  void remove_range(Random& random) {
    KeyRange range{random_key(random), std::nullopt};
    if (random.below(4) != 0) range.end = random_key(random);
    range = intersection(range, within_);
    ASSERT_TRUE(store_.remove_range(range));
    std::erase_if(model_, [&](const auto& record) { return range.contains(record.first); });
  }

  void update(Random& random) {
    std::set<std::string> keys;
    for (std::uint64_t n = random.below(4); n > 0; --n) keys.insert(random_key(random));
    const std::vector<std::string_view> list(keys.begin(), keys.end());
    const auto become = [&](std::size_t i, std::optional<std::string_view> now) {
      const auto found = model_.find(std::string(list[i]));
      EXPECT_EQ(now.has_value(), found != model_.end());
      EXPECT_TRUE(!now || *now == found->second);
      return list[i].size() % 3 == 0 ? std::nullopt
                                     : std::optional(std::string(now.value_or("")) + "+");
    };
    ASSERT_TRUE(store_.update(list, become));
    for (const std::string& key : keys) {
      if (key.size() % 3 == 0) {
        model_.erase(key);
      } else {
        model_[key] += "+";
      }
    }
  }

  OrderedStore& store_;
  KeyRange within_;
  Model model_;
};

}  // namespace semel
