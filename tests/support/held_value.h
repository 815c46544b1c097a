// HeldValue: a value of the module that can be decoded, encoded and compared like any other object,
// for tests/hostile, tests/golden and fuzz/decode.h.
#pragma once

#include <memory>
#include <utility>

#include "module/host/value.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel {

template <class V>
class HeldValue {
 public:
  explicit HeldValue(std::unique_ptr<host::Value> value) : value_(std::move(value)) {}

  static Result<HeldValue> decode(ByteView in) {
    Result<std::unique_ptr<host::Value>> value = V::decode(in);
    if (!value) return value.error();
    return HeldValue(*std::move(value));
  }
  void encode(Sink out) const { value_->encode(out); }
  bool operator==(const HeldValue& other) const {
    Bytes mine, theirs;
    encode(mine);
    other.encode(theirs);
    return mine == theirs;
  }
  V& operator*() const { return static_cast<V&>(*value_); }

 private:
  std::unique_ptr<host::Value> value_;
};

}  // namespace semel
