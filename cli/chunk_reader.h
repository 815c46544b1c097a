// ChunkReader: cuts the inputs, one after another, into chunks of whole records.
//
// Contract  Records have any length and hold any bytes. A record is handed on as soon as its end is
//           read. A chunk holds records of one input.
//           An input that cannot be read, or is compressed, is reported, and the next one is read.
//           With `has_header` the first record of each input names its columns. The header of the
//           first input is handed on to be written. An input whose header has other columns, or
//           another order, is not read.
// Cost      Bytes are not copied after they are read, except those of a record that the end of a
//           chunk cuts in two. Every byte is searched once for the end of the last record.
// Memory    A chunk, or up to twice the longest record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/chunk.h"
#include "cli/files.h"
#include "cli/records.h"

namespace semel::cli {

class ChunkReader {
 public:
  static constexpr std::size_t kChunk = std::size_t{1} << 19;

  struct Plan {
    std::vector<std::string> inputs;  // names of files; "-" is standard input
    RecordSyntax syntax;
    Questions questions;
    bool has_header = false;
    std::size_t chunk_bytes = kChunk;
    std::string command = "semel";  // the command that reads, for messages
  };
  // `ready` waits until the file can be read, and returns false if reading has to end at once.
  // `complain` takes one line.
  ChunkReader(Plan plan, std::function<bool(int fd)> ready,
              std::function<void(const std::string&)> complain);

  // Reads the next records. Returns false if there are no more.
  bool next(Chunk& chunk);
  bool failed() const { return failed_; }  // an input could not be read to its end

 private:
  bool open_next();
  // Reads until there is a record in the chunk. Returns false at the end of the input, or on an
  // error.
  bool fill(Chunk& chunk);
  // Looks at the first bytes of the input, once there are enough. Returns false if the input is
  // compressed.
  bool see_beginning(std::string_view bytes);
  bool take_header(Chunk& chunk);
  Result<void> read_header(Chunk& chunk);
  // Returns an error if these are not the names in the first header.
  Result<void> compare_header(const std::vector<std::string>& names) const;
  void fail(const std::string& text);

  Plan plan_;
  std::function<bool(int)> ready_;
  std::function<void(const std::string&)> complain_;
  std::size_t inputs_opened_ = 0;
  std::string name_;  // of the input, for messages
  File file_;
  bool open_ = false;
  bool ended_ = false;  // nothing more can be read from this input
  bool expects_header_ = false;
  bool beginning_seen_ = false;
  struct Header {
    std::string input;  // empty: no header was read yet
    std::vector<std::string> names;
  };
  Header first_header_;
  std::uint64_t header_lines_ = 0;  // of the header, until a chunk takes them
  bool failed_ = false;
  bool stopped_ = false;
  std::string rest_;  // the beginning of a record, behind the last chunk
  std::shared_ptr<const Columns> columns_;
  std::uint64_t chunks_ = 0;
};

}  // namespace semel::cli
