#include "cli/console.h"

#include <unistd.h>

#include <utility>

#include "cli/commands.h"
#include "cli/files.h"

namespace semel::cli {
namespace {

constexpr std::uint64_t kReportsShown = 10;

}  // namespace

void ProgressLine::show(const std::string& progress) {
  next_ = std::chrono::steady_clock::now() + every_;
  shown_ = form_ == ProgressForm::terminal;
  (void)write_all(STDERR_FILENO, progress + (shown_ ? "\033[K\r" : "\n"));
}

void ProgressLine::hide() {
  if (std::exchange(shown_, false)) (void)write_all(STDERR_FILENO, "\033[K");
}

void Console::complain(const std::string& text) {
  hide();
  cli::complain(who_, text);
}

void Console::report(const std::string& input, std::uint64_t line, const std::string& text,
                     bool always) {
  if (reports_++ >= kReportsShown && !always) return;
  complain(input_name(input) + " line " + std::to_string(line + 1) + ": " + text);
}

void Console::end() {
  hide();
  if (reports_ <= kReportsShown) return;
  cli::complain(who_, std::to_string(reports_ - kReportsShown) + " more lines like these");
}

}  // namespace semel::cli
