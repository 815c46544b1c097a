// Chunk: some records of one input, on their way from the reader to the writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/records.h"
#include "semel/core/clock.h"
#include "semel/hash/digest.h"

namespace semel::cli {

// Holds bytes that a file is read into. They are not initialised, and kPadding bytes follow them.
class Buffer {
 public:
  char* data() { return bytes_.get(); }
  const char* data() const { return bytes_.get(); }
  std::size_t capacity() const { return capacity_; }
  // Makes room for more bytes and keeps the first `used`.
  void grow(std::size_t capacity, std::size_t used);

 private:
  std::size_t capacity_ = 0;
  std::unique_ptr<char[]> bytes_;
};

// The fate of a record: where it goes.
enum class Fate : std::uint8_t {
  unknown,    // not yet judged
  first,      // goes to the output
  duplicate,  // is dropped, or goes where duplicates go
  passed,     // cannot be read, and goes to the output
  skipped,    // cannot be read, and is dropped
};

struct Problem {
  std::size_t record;  // its index in the chunk
  std::uint64_t line;  // lines of the chunk before it
  std::string text;
};

struct Chunk {
  // The reader fills these.
  std::uint64_t number = 0;  // 0, 1, 2, ... over all inputs
  std::size_t input = 0;
  TimeMs read_ms = 0;
  std::string header;  // to be written before the records
  std::uint64_t header_lines = 0;
  Buffer buffer;
  std::size_t size = 0;  // bytes of whole records in the buffer
  std::shared_ptr<const Columns> columns;

  // One element for each record. Times and places are empty unless they are asked for.
  bool timed = false;
  std::vector<std::string_view> records;
  std::vector<Fate> fates;
  std::vector<Digest> keys;
  std::vector<TimeMs> times_ms;
  std::vector<TimeMs> now_ms;  // the latest of the times up to each record, in all chunks
  std::vector<std::vector<Digest>> places;
  // The keys in the form in which a server gets them, one after another; empty unless asked for.
  std::string ids;
  std::vector<std::size_t> id_ends;
  std::vector<Problem> problems;  // in order
  std::uint64_t lines = 0;

  // The records in the form in which they will be written, by their fate.
  std::string first;
  std::string duplicates;
  std::uint64_t first_count = 0;
  std::uint64_t duplicate_count = 0;

  std::string_view text() const { return {buffer.data(), size}; }
  std::string_view id(std::size_t record) const {
    const std::size_t begin = record == 0 ? 0 : id_ends[record - 1];
    return std::string_view(ids).substr(begin, id_ends[record] - begin);
  }
};

}  // namespace semel::cli
