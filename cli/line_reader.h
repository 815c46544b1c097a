// LineReader: cuts what a file holds into lines, without copying them.
//
// Contract  A line ends with its newline; the last one may lack it. Lines are of any length and hold
//           any other bytes. Each line is cut as soon as its end is read: nothing waits for more.
// Cost      One search for the newline over each byte, however it arrives.
// Memory    The chunk, or up to four times the longest line.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

namespace semel::cli {

class LineReader {
 public:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;

  // REQUIRES: chunk > 0, and fd stays open longer than this.
  explicit LineReader(int fd, std::size_t chunk = kChunk);

  // Reads what is there, at most about a chunk; waits if there is nothing. The lines cut before are
  // gone. At the end of the file ended() becomes true, and the last line can be cut.
  std::error_code read();
  bool ended() const { return ended_; }

  // The next lines, adjacent in memory; fewer than `lines` has room for when more must be read.
  std::span<const std::string_view> cut(std::span<std::string_view> lines);

 private:
  int fd_;
  std::size_t capacity_;
  std::unique_ptr<char[]> buffer_;
  // 0 <= begin_ <= scanned_ <= end_ <= capacity_: cut, without a newline, not yet searched, free.
  std::size_t begin_ = 0;
  std::size_t scanned_ = 0;
  std::size_t end_ = 0;
  bool ended_ = false;
};

}  // namespace semel::cli
