// RangeCursor: a cursor that sees only the records of a range.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "semel/core/assert.h"
#include "semel/store/ordered_store.h"

namespace semel::index_internal {

class RangeCursor final : public Cursor {
 public:
  // REQUIRES: below != nullptr.
  RangeCursor(std::unique_ptr<Cursor> below, KeyRange range)
      : below_(std::move(below)), range_(std::move(range)) {
    SEMEL_ASSERT(below_ != nullptr);
  }

  void seek(std::string_view key) override {
    below_->seek(key < range_.first ? std::string_view(range_.first) : key);
    look();
  }
  void next() override {
    below_->next();
    look();
  }
  bool valid() const override { return valid_; }
  std::string_view key() const override { return below_->key(); }
  std::string_view value() const override { return below_->value(); }
  Result<void> status() const override { return below_->status(); }

 private:
  void look() { valid_ = below_->valid() && (!range_.end || below_->key() < *range_.end); }

  std::unique_ptr<Cursor> below_;
  KeyRange range_;
  bool valid_ = false;
};

}  // namespace semel::index_internal
