#include "cli/line_writer.h"

#include <unistd.h>

#include <utility>

namespace semel::cli {

LineWriter::LineWriter(File file, std::string name, std::size_t capacity)
    : file_(std::move(file)), name_(std::move(name)), capacity_(capacity) {
  buffer_.reserve(capacity);
}

void LineWriter::append(std::string_view lines) {
  if (lines.empty()) return;
  if (std::exchange(open_line_, lines.back() != '\n')) put("\n");
  put(lines);
}

void LineWriter::put(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > capacity_) flush();
  if (bytes.size() < capacity_) {
    buffer_ += bytes;
  } else if (!error_) {
    error_ = write_all(file_.fd(), bytes);
  }
}

void LineWriter::flush() {
  if (!error_) error_ = write_all(file_.fd(), buffer_);
  buffer_.clear();
}

void LineWriter::sync() {
  flush();
  if (!error_ && file_id(file_.fd()) && ::fdatasync(file_.fd()) != 0) error_ = last_error();
}

void LineWriter::finish() {
  flush();
  const std::error_code closed = file_.close();
  if (!error_) error_ = closed;
}

}  // namespace semel::cli
