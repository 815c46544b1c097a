// Differences: writes the keys that differ, in order and each once, as soon as they are settled.
//
// Memory    Grows with the keys that are not settled.
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
    zero,   // the same with the raw bytes of the key, and a zero byte after it
    json,   // one object a line
    none,   // nothing, only counts
  };

  // Writes to `fd`. REQUIRES: it stays open.
  Differences(Form form, int fd) : form_(form), fd_(fd) {}

  // Adds a key. If it was added before, the last call counts.
  void add(std::string_view key, DifferenceSide where) {
    unsettled_.insert_or_assign(std::string(key), where);
  }
  // Settles the keys before this one: they will not change.
  void settle_before(std::string_view key);
  void settle_all();
  void flush();

  std::uint64_t only_a() const { return only_a_; }
  std::uint64_t only_b() const { return only_b_; }
  std::uint64_t changed() const { return changed_; }
  std::uint64_t total() const { return only_a_ + only_b_ + changed_; }
  const std::error_code& error() const { return error_; }  // the first one stays

 private:
  using Keys = std::map<std::string, DifferenceSide, std::less<>>;
  void settle(Keys::iterator end);
  void write(std::string_view key, DifferenceSide where);

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
