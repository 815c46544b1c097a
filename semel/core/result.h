// Result<T>: a value, or the reason there is none.
//
// There are three kinds of failure:
//   * bytes, peers and disks that misbehave   -> Result, never an exception;
//   * a caller that breaks a REQUIRES clause  -> SEMEL_ASSERT, in every build;
//   * memory that runs out                    -> std::bad_alloc, passed through.
//
// The interface is the part of std::expected<T, Error> that we use. So Result can become an alias
// once every compiler that we support has it (g++ 12: only with -std=c++23; clang 14: not at all).
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "semel/core/assert.h"

namespace semel {

enum class Errc : std::uint8_t {
  invalid,      // the parameters describe no possible object
  truncated,    // the input ends too early
  corrupt,      // the magic, the checksum or an invariant does not hold
  unsupported,  // well formed, but this build does not know the version or the kind
  limit,        // well formed, but larger than the caller allows
  mismatch,     // two sound objects cannot be combined
  gap,          // well formed, but something that must come before it is missing
  full,         // no room; the object is unchanged
  io,           // the store or the socket below failed
  busy,         // another process holds the resource
  outside,      // the key or path does not belong to this store
  forked,       // one site has two histories: it was restored from a backup, or two use its id
};

struct Error {
  Errc code;
  const char* what;         // a string literal: building an Error never allocates
  std::uint64_t about = 0;  // Errc::forked: the site
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, error) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: has_value().
  const T& operator*() const& { return *checked(*this); }
  T& operator*() & { return *checked(*this); }
  T&& operator*() && { return std::move(*checked(*this)); }
  const T* operator->() const { return checked(*this); }
  T* operator->() { return checked(*this); }

  // REQUIRES: !has_value().
  const Error& error() const {
    SEMEL_ASSERT(!has_value());
    return *std::get_if<1>(&state_);
  }

 private:
  template <class Self>
  static auto checked(Self& self) {
    SEMEL_ASSERT(self.has_value());
    return std::get_if<0>(&self.state_);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(error), ok_(false) {}

  bool has_value() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const {
    SEMEL_ASSERT(!ok_);
    return error_;
  }

 private:
  Error error_{};
  bool ok_ = true;
};

}  // namespace semel
