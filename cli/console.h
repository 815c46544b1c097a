// Console: what a subcommand says on standard error while it runs. There is a line of progress,
// which is written over and over, and reports of lines of the inputs, of which ten are shown.
//
// Threads   A call needs the object to itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace semel::cli {

enum class ProgressForm : std::uint8_t { none, terminal, lines };

class ProgressLine {
 public:
  // A terminal shows nothing of work that is over at once. Lines are shown at least once.
  ProgressLine(ProgressForm form, std::chrono::milliseconds every)
      : form_(form), every_(every), next_(start_) {
    if (form_ != ProgressForm::lines) next_ += every_;
  }

  // Returns the time since the beginning.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  // Returns true if progress should be shown now.
  bool due() const {
    return form_ != ProgressForm::none && std::chrono::steady_clock::now() >= next_;
  }
  void show(const std::string& progress);
  // Removes the line from a terminal. Call it before anything else is written there.
  void hide();

 private:
  ProgressForm form_;
  std::chrono::milliseconds every_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_;
  bool shown_ = false;
};

class Console : public ProgressLine {
 public:
  Console(const char* who, ProgressForm form, std::chrono::milliseconds every)
      : ProgressLine(form, every), who_(who) {}

  void complain(const std::string& text);
  // Reports a line of an input, from 0 on, unless ten were reported. `always` reports it anyway.
  void report(const std::string& input, std::uint64_t line, const std::string& text,
              bool always = false);
  // Removes the progress, and tells how many reports were not shown.
  void end();

 private:
  const char* who_;
  std::uint64_t reports_ = 0;
};

}  // namespace semel::cli
