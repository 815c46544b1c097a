#include "cli/differences.h"

#include "cli/escaped.h"
#include "cli/files.h"
#include "cli/json_object.h"

namespace semel::cli {
namespace {

constexpr std::size_t kBuffer = std::size_t{64} << 10;

}  // namespace

void Differences::settle_before(std::string_view key) { settle(unsettled_.lower_bound(key)); }
void Differences::settle_all() { settle(unsettled_.end()); }

void Differences::settle(Keys::iterator end) {
  for (auto at = unsettled_.begin(); at != end; ++at) {
    const auto& [key, where] = *at;
    ++(where == DifferenceSide::initiator   ? only_a_
       : where == DifferenceSide::responder ? only_b_
                                            : changed_);
    write(key, where);
    if (text_.size() >= kBuffer) flush();
  }
  unsettled_.erase(unsettled_.begin(), end);
}

void Differences::write(std::string_view key, DifferenceSide where) {
  const char sign = where == DifferenceSide::initiator   ? '<'
                    : where == DifferenceSide::responder ? '>'
                                                         : '!';
  switch (form_) {
    case Form::lines:
      text_.append({sign, ' '}).append(escaped(key)).append("\n");
      break;
    case Form::zero:
      text_.append({sign, ' '}).append(key).append({'\0'});
      break;
    case Form::json:
      text_ += JsonObject()
                   .text("in", where == DifferenceSide::initiator   ? "a"
                               : where == DifferenceSide::responder ? "b"
                                                                    : "both")
                   .text("key", escaped(key))
                   .end() +
               '\n';
      break;
    case Form::none:
      break;
  }
}

void Differences::flush() {
  if (!error_) error_ = write_all(fd_, text_);
  text_.clear();
}

}  // namespace semel::cli
