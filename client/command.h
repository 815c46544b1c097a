// Command: one command for a server, in the bytes of its protocol (a RESP array of bulk strings).
//
// Cost      Words are copied once, into the bytes that are sent. A cleared command keeps its
//           memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace semel::client {

class Command {
 public:
  Command() = default;
  Command(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) add(word);
  }

  Command& add(std::string_view word) {
    ++words_;
    body_ += '$';
    body_ += std::to_string(word.size());
    body_ += "\r\n";
    body_ += word;
    body_ += "\r\n";
    return *this;
  }
  Command& add(std::int64_t number) { return add(std::to_string(number)); }
  void clear() {
    words_ = 0;
    body_.clear();
  }

  std::size_t words() const { return words_; }

  // REQUIRES: there is a word.
  void write(std::string& to) const {
    to += '*';
    to += std::to_string(words_);
    to += "\r\n";
    to += body_;
  }

 private:
  std::size_t words_ = 0;
  std::string body_;
};

}  // namespace semel::client
