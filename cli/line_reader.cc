#include "cli/line_reader.h"

#include <cstring>

#include "cli/files.h"
#include "semel/core/assert.h"

namespace semel::cli {

LineReader::LineReader(int fd, std::size_t chunk)
    : fd_(fd), capacity_(chunk), buffer_(new char[chunk]) {
  SEMEL_ASSERT(chunk > 0);
}

std::error_code LineReader::read() {
  const std::size_t rest = end_ - begin_;
  if (rest > capacity_ / 2) {
    std::unique_ptr<char[]> larger(new char[2 * capacity_]);
    std::memcpy(larger.get(), buffer_.get() + begin_, rest);
    buffer_ = std::move(larger);
    capacity_ *= 2;
  } else if (begin_ > 0) {  // a long line is not moved again for every piece of it
    std::memmove(buffer_.get(), buffer_.get() + begin_, rest);
  }
  scanned_ -= begin_;
  begin_ = 0;
  end_ = rest;

  std::size_t got = 0;
  const std::error_code error = read_some(fd_, buffer_.get() + end_, capacity_ - end_, got);
  end_ += got;
  ended_ = got == 0 && !error;
  return error;
}

std::span<const std::string_view> LineReader::cut(std::span<std::string_view> lines) {
  std::size_t count = 0;
  while (count < lines.size() && begin_ < end_) {
    const char* from = buffer_.get() + scanned_;
    const void* newline = std::memchr(from, '\n', end_ - scanned_);
    scanned_ =
        newline ? scanned_ + static_cast<std::size_t>(static_cast<const char*>(newline) - from) + 1
                : end_;
    if (!newline && !ended_) break;
    lines[count++] = {buffer_.get() + begin_, scanned_ - begin_};
    begin_ = scanned_;
  }
  return lines.first(count);
}

}  // namespace semel::cli
