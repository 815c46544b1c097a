// Hidden: a member whose type a public header need not define.
//
// Contract  A Hidden<T> is a value, as a T would be: a copy is a second T, and two are equal if
//           their Ts are. T has to be complete only where a Hidden is made from arguments.
//           A Hidden that was moved from, and every object that has one, can only be assigned to,
//           copied, moved and destroyed. The copy is one that was moved from, too.
// Example   class Filter {
//            public:
//             explicit Filter(const Shape& shape);  // : table_(std::in_place, shape)
//            private:
//             Hidden<filter_internal::Table> table_;
//           };
#pragma once

#include <concepts>
#include <utility>

namespace semel {

template <class T>
class Hidden {
 public:
  template <class... Arguments>
  explicit Hidden(std::in_place_t, Arguments&&... arguments)
      : value_(new T(std::forward<Arguments>(arguments)...)), ops_(&kOps<T>) {}
  Hidden(const Hidden& other)
      : value_(other.value_ == nullptr ? nullptr : other.ops_->copy(*other.value_)),
        ops_(other.ops_) {}
  Hidden(Hidden&& other) noexcept
      : value_(std::exchange(other.value_, nullptr)), ops_(other.ops_) {}
  Hidden& operator=(Hidden other) noexcept {
    std::swap(value_, other.value_);
    std::swap(ops_, other.ops_);
    return *this;
  }
  ~Hidden() {
    if (value_ != nullptr) ops_->destroy(value_);
  }

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_; }
  const T* operator->() const { return value_; }

  bool operator==(const Hidden& other) const { return ops_->equal(*value_, *other.value_); }

 private:
  struct Ops {
    T* (*copy)(const T&);
    void (*destroy)(T*);
    bool (*equal)(const T&, const T&);
  };
  // A template, so that T is looked at only where a Hidden is made.
  template <class U>
  static constexpr Ops kOps = {
      [](const U& value) { return new U(value); },
      [](U* value) { delete value; },
      [](const U& a, const U& b) {
        if constexpr (std::equality_comparable<U>) return a == b;
        return &a == &b;
      },
  };

  T* value_;
  const Ops* ops_;
};

}  // namespace semel
