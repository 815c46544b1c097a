// The byte stream of a sync over a pipe: frames, signs of life and the end.
//
// Contract  Frames come out as they went in, whole and in order. If bytes were lost, changed,
//           repeated or swapped, the stream gives an error, and no frame that was not sent. The
//           error shows after at most two more signs of life: each is as long as the longest
//           record, so it completes any record that the reader waits for.
// Memory    The decoder holds bytes that it has not read yet, and a frame of at most `most_bytes`,
//           which grows with its pieces.
// Format    docs/formats/sync_pipe_v1.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel::cli {

// The two ends of a pipe.
enum class PipeRole : std::uint8_t { asks, answers };

// Returns the line with which this end begins.
std::string_view hello_of(PipeRole role);

// Writes records, and numbers them.
class PipeEncoder {
 public:
  // Each appends to `out`.
  void frame(ByteView frame, std::string& out);
  // `full`: this end does not read until it has room.
  void alive(bool full, std::string& out);
  void end(std::string& out);

 private:
  void record(std::uint8_t kind, ByteView content, std::string& out);

  std::uint32_t number_ = 0;  // of the next record
};

class PipeDecoder {
 public:
  enum class Item : std::uint8_t {
    none,     // feed() more
    frame,    // take it
    alive,    // a sign of life
    full,     // a sign of life of a peer that does not read at present
    end,      // the peer sends nothing more
    foreign,  // the stream has no hello; foreign() describes it, better with more bytes
  };

  // `peer` is the end that wrote the stream.
  PipeDecoder(PipeRole peer, std::uint32_t most_bytes) : peer_(peer), most_bytes_(most_bytes) {}

  void feed(std::string_view bytes) { bytes_.append(bytes); }
  // Returns the next item. `frame` is set by Item::frame alone. Errors: Errc::corrupt and
  // Errc::limit if the stream is broken. After an error, `foreign` or `end` it returns the same.
  Result<Item> next(Bytes& frame);

  // Returns true after the peer's hello.
  bool greeted() const { return greeted_; }
  // Returns true if the stream must not end here.
  bool in_the_middle() const { return !greeted_ || at_ < bytes_.size() || !frame_.empty(); }
  // Returns true if the first line of a foreign stream is there, or enough of it.
  bool line_is_whole() const;
  // Returns the error that a foreign stream is. REQUIRES: next() returned `foreign`.
  Error foreign() const;

 private:
  Result<Item> greet();
  Result<Item> record(Bytes& frame);
  Result<Item> settle(Result<Item> last);

  PipeRole peer_;
  std::uint32_t most_bytes_;
  std::string bytes_;         // fed
  std::size_t at_ = 0;        // of these are read
  Bytes frame_;               // the pieces that have come
  std::uint32_t number_ = 0;  // of the next record
  bool greeted_ = false;
  Result<Item> last_ = Item::none;  // an error, and what is not `none`, stays
};

}  // namespace semel::cli
