// JsonObject: writes an object on one line, field after field.
//
//   JsonObject().add("lines", 3u).text("mode", "exact").end()   // {"lines":3,"mode":"exact"}
//
// Contract  Fields keep their order. A number that is not finite is null.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace semel::cli {

// Returns a JSON string. REQUIRES: printable ASCII.
inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Returns an array of json_of(item) for each item.
template <class Items, class JsonOf>
std::string json_array(const Items& items, JsonOf json_of) {
  std::string out;
  for (const auto& item : items) out.append(out.empty() ? "" : ",").append(json_of(item));
  return '[' + out + ']';
}

class JsonObject {
 public:
  JsonObject& add(std::string_view name, const std::string& json) {
    fields_.append(fields_.empty() ? "\"" : ",\"").append(name).append("\":").append(json);
    return *this;
  }
  JsonObject& text(std::string_view name, std::string_view value) {
    return add(name, json_text(value));
  }
  template <std::integral T>
  JsonObject& add(std::string_view name, T value) {
    if constexpr (std::same_as<T, bool>) return add(name, std::string(value ? "true" : "false"));
    return add(name, std::to_string(value));
  }
  JsonObject& add(std::string_view name, double number,
                  int digits = std::numeric_limits<double>::digits10) {
    if (!std::isfinite(number)) return add(name, std::string("null"));
    std::ostringstream out;
    out.precision(digits);
    out << number;
    return add(name, out.str());
  }
  // Adds null for nothing.
  template <class T>
  JsonObject& add(std::string_view name, const std::optional<T>& value) {
    return value ? add(name, *value) : add(name, std::string("null"));
  }
  // Adds all fields of another object.
  JsonObject& add(const JsonObject& other) {
    if (!fields_.empty() && !other.fields_.empty()) fields_ += ',';
    fields_ += other.fields_;
    return *this;
  }
  std::string end() const { return '{' + fields_ + '}'; }

 private:
  std::string fields_;
};

}  // namespace semel::cli
