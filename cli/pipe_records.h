// The byte stream of a sync over a pipe: frames, signs of life and the end.
//
// Contract  Frames come out as they went in, whole and in order. If bytes were lost, changed,
//           repeated or swapped, the stream gives a problem, and no frame that was not sent. The
//           problem shows after at most two more signs of life: each is as long as the longest
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
    foreign,  // the stream has no hello; what() describes it, better with more bytes
    broken,   // what() says how
  };

  // `peer` is the end that wrote the stream.
  PipeDecoder(PipeRole peer, std::uint32_t most_bytes) : peer_(peer), most_bytes_(most_bytes) {}

  void feed(std::string_view bytes) { bytes_.append(bytes); }
  // Returns the next item. After `foreign`, `broken` and `end` it is always the same.
  // `frame` is set by Item::frame alone.
  Item next(Bytes& frame);

  // True after the peer's hello.
  bool greeted() const { return greeted_; }
  // True if the stream must not end here.
  bool in_the_middle() const { return !greeted_ || at_ < bytes_.size() || !frame_.empty(); }
  // True if the first line of a foreign stream is there, or enough of it.
  bool line_is_whole() const;
  // REQUIRES: next() gave `foreign` or `broken`.
  std::string what() const;

 private:
  Item greet();
  Item record(Bytes& frame);
  Item settle(Item last, std::string problem = "");

  PipeRole peer_;
  std::uint32_t most_bytes_;
  std::string bytes_;         // fed
  std::size_t at_ = 0;        // of these are read
  Bytes frame_;               // the pieces that have come
  std::uint32_t number_ = 0;  // of the next record
  bool greeted_ = false;
  Item last_ = Item::none;  // that stays
  std::string problem_;
};

}  // namespace semel::cli
