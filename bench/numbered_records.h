// NumberedRecords: records in the order of their keys, and cursors over them. All values are equal.
// Records can be hidden, as if they were not there yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/store/ordered_store.h"

namespace semel::bench {

class NumberedRecords {
 public:
  NumberedRecords(std::vector<std::string> keys, std::size_t value_size)
      : keys_(std::move(keys)), value_(value_size, 'v') {
    std::sort(keys_.begin(), keys_.end());
    hidden_.resize(keys_.size());
  }

  const std::vector<std::string>& keys() const { return keys_; }
  const std::string& value() const { return value_; }

  // REQUIRES: there is such a key.
  void hide(std::string_view key, bool hidden) { hidden_[place_of(key)] = hidden; }

  class Reading : public Cursor {
   public:
    explicit Reading(const NumberedRecords& records) : records_(records) {}
    void seek(std::string_view key) override {
      at_ = records_.place_of(key);
      pass_hidden();
    }
    void next() override {
      ++at_;
      pass_hidden();
    }
    bool valid() const override { return at_ < records_.keys_.size(); }
    std::string_view key() const override { return records_.keys_[at_]; }
    std::string_view value() const override { return records_.value_; }
    Result<void> status() const override { return {}; }

   private:
    void pass_hidden() {
      while (valid() && records_.hidden_[at_]) ++at_;
    }

    const NumberedRecords& records_;
    std::size_t at_ = 0;
  };

 private:
  std::size_t place_of(std::string_view key) const {
    return static_cast<std::size_t>(std::lower_bound(keys_.begin(), keys_.end(), key) -
                                    keys_.begin());
  }

  std::vector<std::string> keys_;
  std::vector<bool> hidden_;
  std::string value_;
};

// Returns a number as eight bytes, so that the order of the bytes is that of the numbers.
inline std::string big_endian(std::uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

}  // namespace semel::bench
