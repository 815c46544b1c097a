// The options at the end of a command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "module/host/call.h"
#include "semel/core/internal/parse.h"

namespace semel::module {

// Returns true if `text` is this word, in any case. REQUIRES: `word` is in capitals.
bool is_word(std::string_view text, std::string_view word);

// Reads a size as the server's maxmemory does: 9000000, 9000k or 9m (of 1000), 9000kb or 9mb (of
// 1024), with g and gb, in any case. Returns nullopt for any other text.
std::optional<std::uint64_t> parse_memory(std::string_view text);

// Options at the end of a command, such as WINDOW 10m EXACT.
//
//   Options options(call, 2);
//   while (options.more()) {
//     if (options.flag("EXACT")) {
//       exact = true;
//     } else if (options.duration("WINDOW", window_ms)) {
//       continue;
//     } else if (const auto text = options.value("ONFULL")) {
//       if (...) options.refuse("ERR ...");
//     } else {
//       options.unknown();
//     }
//   }
//   if (options.refused()) return;   // the call is answered
//
// Contract  The first refusal answers the call. After it there are no more arguments: every
//           function below returns false, and further refusals change nothing. So a loop may
//           continue, if it reads arguments and answers only through Options.
class Options {
 public:
  // Begins at argument `next`.
  Options(host::Call& call, std::size_t next) : call_(call), next_(next) {}

  bool more() const { return !refused_ && next_ < call_.size(); }
  // Returns true if the next argument is the last one.
  bool last() const { return more() && next_ + 1 == call_.size(); }
  // Returns true if the next argument is this word. Takes nothing.
  bool is(std::string_view word) const { return more() && is_word(call_[next_], word); }

  // Takes this word, if it is the next argument. Refuses it if it was taken before.
  bool flag(std::string_view word);
  // If the next argument is this word, takes it and returns the argument after it. Refuses the word
  // if it was taken before or nothing is after it.
  std::optional<std::string_view> value(std::string_view word);
  // If the next argument is this word, takes it and everything after it. Sets `first` to the index
  // of the argument after it, or to call.size() if there is none.
  bool rest(std::string_view word, std::size_t& first);

  // Answers with an error.
  void refuse(const std::string& error);
  void unknown();
  void wrong_arity();
  bool refused() const { return refused_; }

  // If the next argument is this word, these take it, and its value into `out`. They refuse values
  // out of range.
  bool duration(std::string_view word, TimeMs& out);
  bool error_rate(std::string_view word, double& out);
  bool count(std::string_view word, std::uint64_t least, std::uint64_t most, std::uint64_t& out);
  bool memory(std::string_view word, std::uint64_t least, std::uint64_t& out);

 private:
  bool once(std::string_view word);
  void refuse_value(std::string_view word, std::string_view value, const std::string& allowed);

  host::Call& call_;
  std::size_t next_;
  bool refused_ = false;
  std::string seen_;  // the words taken, each with a blank after it
};

}  // namespace semel::module
