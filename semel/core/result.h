// Result<T>: a value, or the reason there is none.
//
// There are three kinds of failure:
//   * bytes, peers and disks that misbehave   -> Result, never an exception;
//   * a caller that breaks a REQUIRES clause  -> SEMEL_ASSERT, in every build;
//   * memory that runs out                    -> std::bad_alloc, passed through.
//
// The interface is the part of std::expected<T, Error> that we use, and take(), which SEMEL_TRY
// needs. Not every compiler that we support has std::expected (g++ 12: only with -std=c++23; clang
// 14: not at all).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

// Why something failed: a code for programs, words for people.
//
//   return Error{Errc::full, "the table is full"};            // allocates nothing
//   return Error{Errc::io, "cannot open", path + ": " + why};  // 'cannot open: PATH: WHY'
//   return opened.error().about(path);                        // 'PATH: ' and the words so far
struct Error {
  Errc code = Errc::invalid;
  std::uint64_t site = 0;  // Errc::forked: the site, a SiteId (crdt/dot.h)
  bool from_peer = false;  // the detail is what a peer said: untrusted words

  constexpr Error() = default;
  constexpr Error(Errc why, const char* literal, std::uint64_t of_site = 0)
      : code(why), site(of_site), literal_(literal) {}
  Error(Errc why, const char* literal, std::string more)
      : code(why),
        literal_(literal),
        detail_(std::make_shared<const std::string>(std::move(more))) {}
  Error(Errc why, std::string words) : Error(why, "", std::move(words)) {}

  // Returns all the words.
  std::string message() const {
    const std::string_view more = detail();
    std::string words = literal_;
    if (!words.empty() && !more.empty()) words += ": ";
    return words.append(more);
  }

  // Returns what this case adds to the fixed words, for example a path. Often empty.
  std::string_view detail() const { return detail_ ? std::string_view(*detail_) : ""; }

  // Returns the fixed words, for somebody who should not see the detail, such as a peer. An error
  // without fixed words gives its detail.
  std::string_view without_detail() const { return *literal_ == 0 ? detail() : literal_; }

  // Returns the same error with `subject: ` before its words.
  Error about(std::string_view subject) const {
    Error error(code, std::string(subject) + ": " + message());
    error.site = site;
    error.from_peer = from_peer;
    return error;
  }

 private:
  const char* literal_ = "";
  std::shared_ptr<const std::string> detail_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: has_value().
  const T& operator*() const& { return *checked(*this); }
  T& operator*() & { return *checked(*this); }
  T&& operator*() && { return std::move(*checked(*this)); }
  const T* operator->() const { return checked(*this); }
  T* operator->() { return checked(*this); }

  T take() && { return std::move(*checked(*this)); }

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
  Result(Error error) : error_(std::move(error)), ok_(false) {}

  bool has_value() const { return ok_; }
  explicit operator bool() const { return ok_; }
  void take() && { SEMEL_ASSERT(ok_); }
  const Error& error() const {
    SEMEL_ASSERT(!ok_);
    return error_;
  }

 private:
  Error error_{};
  bool ok_ = true;
};

}  // namespace semel

// Passes an error on to the caller, or gives the value:
//
//   SEMEL_TRY(check(in));
//   const Header header = SEMEL_TRY(read_header(in));
//
// In a larger expression, no other temporary may need its destructor: g++ 12 does not destroy the
// temporaries of an expression that returns in the middle.
#define SEMEL_TRY(expression)                                   \
  __extension__({                                               \
    auto semel_result = (expression);                           \
    if (!semel_result.has_value()) return semel_result.error(); \
    std::move(semel_result).take();                             \
  })
