// Differences: the keys that differ, in order and each once, written as soon as they are settled.
//
// Memory    That of the keys that are not settled.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "semel/sync/sync.h"

namespace semel::cli {

class Differences {
 public:
  enum class Form : std::uint8_t {
    lines,  // < key, > key or ! key, the key escaped
    zero,   // the same with the bytes of the key, and a zero behind it
    json,   // an object on a line for each
    none,   // counted only
  };

  // To `fd`, which stays open longer.
  Differences(Form form, int fd) : form_(form), fd_(fd) {}

  // Of a key that is told twice the second counts.
  void add(std::string_view key, Where where) {
    unsettled_.insert_or_assign(std::string(key), where);
  }
  // Those of less than this key stay as they are.
  void settle_before(std::string_view key);
  void settle_all();
  void flush();

  std::uint64_t only_a() const { return only_a_; }
  std::uint64_t only_b() const { return only_b_; }
  std::uint64_t changed() const { return changed_; }
  std::uint64_t total() const { return only_a_ + only_b_ + changed_; }
  const std::error_code& error() const { return error_; }  // the first one stays

 private:
  using Keys = std::map<std::string, Where, std::less<>>;
  void settle(Keys::iterator end);
  void write(std::string_view key, Where where);

  Form form_;
  int fd_;
  Keys unsettled_;
  std::uint64_t only_a_ = 0;
  std::uint64_t only_b_ = 0;
  std::uint64_t changed_ = 0;
  std::string text_;  // not yet written
  std::error_code error_;
};

}  // namespace semel::cli
