// LineWriter: writes lines to a file, in large pieces.
//
// Contract  Bytes come out as they went in. A newline is added only where a line without one is
//           followed by another line: two lines never become one.
//           The first error stays. Nothing is written after it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/files.h"

namespace semel::cli {

class LineWriter {
 public:
  static constexpr std::size_t kCapacity = std::size_t{256} << 10;

  // `name` is for messages.
  LineWriter(File file, std::string name, std::size_t capacity = kCapacity);

  // Appends whole lines. Only the last one may lack its newline.
  void append(std::string_view lines);
  void flush();
  // Flushes, and waits until a regular file is on the disk.
  void sync();
  // Flushes and closes.
  void finish();

  const std::error_code& error() const { return error_; }
  const std::string& name() const { return name_; }

 private:
  void put(std::string_view bytes);

  File file_;
  std::string name_;
  std::size_t capacity_;
  std::string buffer_;
  bool open_line_ = false;  // the last line lacks its newline
  std::error_code error_;
};

}  // namespace semel::cli
