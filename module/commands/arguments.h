// What arguments mean: numbers, durations, options. Nothing here changes anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "module/host/call.h"
#include "semel/core/clock.h"

namespace semel::module {

// Whether `text` is this word, in capitals or not. REQUIRES: `word` is in capitals.
bool is_word(std::string_view text, std::string_view word);

std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<std::uint64_t> parse_count(std::string_view text);  // 0 or more
std::optional<double> parse_number(std::string_view text);        // finite
// 250ms, 30s, 10m, 2h, 7d; a number alone is of milliseconds.
std::optional<TimeMs> parse_duration(std::string_view text);

// Options at the end of a command, such as WINDOW 10m EXACT.
//
//   Options options(call, 2);
//   while (options.more()) {
//     if (options.flag("EXACT")) { exact = true; continue; }
//     if (const auto text = options.value("WINDOW")) { ... options.refuse("...") ... continue; }
//     options.unknown();
//   }
//   if (options.refused()) return;   // the caller has been told
class Options {
 public:
  // From argument `next` on.
  Options(host::Call& call, std::size_t next) : call_(call), next_(next) {}

  bool more() const { return !refused_ && next_ < call_.size(); }
  // Whether the next argument is this word; then it is taken.
  bool flag(std::string_view word);
  // The argument after this word, if the next one is this word. Refuses if there is none.
  std::optional<std::string_view> value(std::string_view word);
  // The next argument, whatever it is.
  std::string_view take() { return call_[next_++]; }
  std::size_t next() const { return next_; }

  // Answers with an error; the first one counts.
  void refuse(const std::string& error);
  void unknown();
  bool refused() const { return refused_; }

  // These take the value of an option into `out`, and refuse what is not within its range.
  bool duration(std::string_view word, TimeMs& out);
  bool error_rate(std::string_view word, double& out);
  bool count(std::string_view word, std::uint64_t least, std::uint64_t most, std::uint64_t& out);

 private:
  bool once(std::string_view word);

  host::Call& call_;
  std::size_t next_;
  bool refused_ = false;
  std::string seen_;  // the words taken, each with a blank behind it
};

}  // namespace semel::module
