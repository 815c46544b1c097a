// Records: cuts a stream of bytes into records, and reads the key and the time of a record, or the
// texts of its fields.
//
// Contract  A record is a line, newline included; the last one may lack it. A CSV record may hold
//           newlines within quotes (RFC 4180).
//           A record that cannot be read is an error of its own: cutting goes on behind it.
// Keys      Without fields: all that stands before the newline.
//           One column: its bytes, without quotes.
//           A JSON value: the value, however it is written. "A" and "\u0041" are one key, 1 and "1"
//           are two. The order of an object's members counts. A number beyond 64 bits and beyond a
//           double is compared by its digits.
//           Several fields: each with its length, so that ("ab", "c") and ("a", "bc") differ.
// Times     Seconds, milli-, micro- or nanoseconds since 1970, told apart by their size, or ISO
//           8601 (2026-11-15T10:45:00.250+01:00; without a zone it is UTC).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/clock.h"
#include "semel/core/result.h"
#include "semel/hash/hasher.h"

namespace semel::cli {

enum class Format : std::uint8_t { lines, csv, tsv, json };

struct RecordSyntax {
  Format format = Format::lines;
  char delimiter = ',';  // between the columns of CSV
};

// The number of bytes that must be readable behind every record: the JSON parser looks ahead.
inline constexpr std::size_t kPadding = 64;

// A quote that is not closed within this many bytes after a newline does not open a quoted column.
inline constexpr std::size_t kMostQuoted = std::size_t{1} << 20;

struct Cut {
  std::size_t size = 0;   // of the record, newline included; 0: it does not end in these bytes
  std::size_t lines = 1;  // how many it takes
  bool unclosed = false;  // a quote in it is never closed
};
// Cuts the record at the beginning of `bytes`. More bytes follow unless this is the end.
Cut cut_record(const RecordSyntax& syntax, std::string_view bytes, bool end);
// The progress of a search in bytes that come piece by piece.
struct CutProgress {
  std::size_t whole = 0;  // bytes of whole records
  std::size_t seen = 0;   // bytes in which no other record ends
};
// Returns the size of all whole records at the beginning of `bytes`. `progress` comes from the last
// call, with fewer of these bytes. So no byte of a long record is searched again for every piece.
std::size_t whole_records(const RecordSyntax& syntax, std::string_view bytes, bool end,
                          CutProgress& progress);

// A part of a record, as the user names it: a column by number or name, a JSON field by path.
struct Field {
  std::string name;
  std::string pointer;     // JSON: RFC 6901
  std::size_t column = 0;  // CSV and TSV: from 1 on; 0: by name
};
std::optional<Field> parse_field(const RecordSyntax& syntax, std::string_view text);
// Parses fields with commas between them. Returns none if one of them is not allowed.
std::vector<Field> parse_fields(const RecordSyntax& syntax, std::string_view text);

// The questions that every record answers.
struct Questions {
  std::vector<Field> key;  // none: the whole record
  std::optional<Field> time;
  std::vector<Field> places;  // the nodes of a tree on the way from the root to the leaf
};

// Returns the names of the columns, without their quotes. REQUIRES: the format has columns.
std::vector<std::string> names_in(const RecordSyntax& syntax, std::string_view header);

// The columns of the questions, in the order key, time, places. From 1 on.
using Columns = std::vector<std::size_t>;
// Finds the columns by number, or by the names in a header. The error says which one is missing.
Result<Columns> find_columns(const RecordSyntax& syntax, const Questions& questions,
                             std::optional<std::string_view> header);

// Removes the line end, which is "\n", and for a table also "\r\n".
std::string_view without_line_end(Format format, std::string_view record);

std::optional<TimeMs> parse_time(std::string_view text);

// Splits one record after another into its columns.
class ColumnSplitter {
 public:
  explicit ColumnSplitter(const RecordSyntax& syntax) : syntax_(syntax) {}
  // Returns the first columns, `most` at most, without their quotes; valid until the next call.
  const std::vector<std::string_view>& split(std::string_view record, std::size_t most);

 private:
  RecordSyntax syntax_;
  std::vector<std::string_view> fields_;
  std::string unquoted_;
};

// Reads the answers to the questions, for one thread.
class RecordReader {
 public:
  struct Answers {
    Digest key;
    std::string_view key_text;  // the bytes behind the digest; valid until the next record
    TimeMs time_ms;
    std::vector<Digest> places;
  };

  RecordReader(const RecordSyntax& syntax, const Questions& questions, const Hasher& hasher);
  RecordReader(RecordReader&&) noexcept;
  ~RecordReader();

  // Reads a record. The error says what is wrong with it.
  // REQUIRES: kPadding bytes can be read behind the record; `columns` are those of the questions.
  Result<void> read(std::string_view record, const Columns& columns, Answers& answers);

 private:
  struct Json;

  Result<void> read_columns(std::string_view record, const Columns& columns, Answers& answers);
  Result<void> read_json(std::string_view record, Answers& answers);
  // Answers from the values of the fields, in the order of Columns.
  Result<void> answer(const std::vector<std::string_view>& values, Answers& answers);

  RecordSyntax syntax_;
  const Questions& questions_;
  const Hasher& hasher_;
  ColumnSplitter splitter_;
  std::vector<std::string_view> values_;
  std::string composed_;
  std::unique_ptr<Json> json_;
};

// Reads some fields of one record after another as texts, for one thread.
class FieldReader {
 public:
  FieldReader(const RecordSyntax& syntax, const std::vector<Field>& fields);
  FieldReader(FieldReader&&) noexcept;
  ~FieldReader();

  // Reads a record. The error says what is wrong with it. A JSON field is a string, or a whole
  // number of any size in plain digits.
  // REQUIRES: kPadding bytes can be read behind the record; `columns` are those of the fields.
  Result<void> read(std::string_view record, const Columns& columns);
  // Returns the fields of the last record, in their order; valid until the next record.
  const std::vector<std::string_view>& texts() const { return texts_; }

 private:
  struct Json;

  Result<void> read_json(std::string_view record);

  const std::vector<Field>& fields_;
  ColumnSplitter splitter_;
  std::vector<std::string_view> texts_;
  std::unique_ptr<Json> json_;
};

}  // namespace semel::cli
