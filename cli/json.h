// JsonReader: one JSON text after another, and the value at a place in it.
//
// Contract  Takes every text that RFC 8259 allows, nested in at most kMostDepth levels. Numbers may
//           have any size: one that fits neither 64 bits nor a double is known by its text. A
//           string may hold half of a surrogate pair, which is no character: then only its value
//           cannot be read. If members share a name, the first one counts.
// Cost      simdjson reads a text in one pass. If it refuses a number or a string, the text is read
//           again, with other words in their place.
// Threads   For one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/result.h"

namespace semel::cli {

class JsonReader {
 public:
  static constexpr std::size_t kMostDepth = 1023;

  JsonReader();
  JsonReader(JsonReader&&) noexcept;
  JsonReader& operator=(JsonReader&&) noexcept;
  ~JsonReader();

  // Reads a text. The error says what is wrong with it.
  // REQUIRES: kPadding bytes (records.h) can be read behind the text.
  Result<void> parse(std::string_view text);

  enum class Kind : std::uint8_t {
    missing,  // there is no such place
    string,
    whole,  // a whole number in plain digits
    other,
    torn,  // half of a surrogate pair is in it
  };
  struct Value {
    Kind kind = Kind::missing;
    // The characters of a string. For any other value, its text without blanks, always in the same
    // form: 0.10 is 0.1.
    std::string_view text = {};
  };
  // Returns the value at an RFC 6901 pointer. Its text is valid until the next parse(), and while
  // `buffer` is unchanged. REQUIRES: parse() succeeded.
  Value at(const std::string& pointer, std::string& buffer) const;

 private:
  struct Parsers;

  void rebuild(std::string_view text);
  std::size_t rebuild_escape(std::string_view rest);
  std::string number(std::string_view ordinal) const;

  std::unique_ptr<Parsers> parsers_;
  // Set for a text that simdjson cannot read as it is. Each number is replaced by its place in
  // `numbers_`, half of a surrogate pair by the replacement character.
  bool is_rebuilt_ = false;
  bool is_torn_ = false;
  std::string rebuilt_;
  std::vector<std::string_view> numbers_;
};

}  // namespace semel::cli
