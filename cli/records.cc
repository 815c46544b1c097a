#include "cli/records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>

#include "cli/json.h"
#include "cli/options.h"
#include "semel/core/assert.h"

namespace semel::cli {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

std::size_t find(std::string_view text, char c, std::size_t from) {
  if (from >= text.size()) return kNone;
  const void* found = std::memchr(text.data() + from, c, text.size() - from);
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : kNone;
}

// Returns the position of the last `c` at `from` or behind it.
std::size_t find_last(std::string_view text, char c, std::size_t from) {
  if (from >= text.size()) return kNone;
  const void* found = ::memrchr(text.data() + from, c, text.size() - from);
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : kNone;
}

// Returns the position behind the closing quote of the column that opens at `open`; kNone if there
// is no closing quote.
std::size_t close_quote(std::string_view text, std::size_t open) {
  for (std::size_t at = open + 1;;) {
    at = find(text, '"', at);
    if (at == kNone) return kNone;
    if (at + 1 == text.size() || text[at + 1] != '"') return at + 1;
    at += 2;
  }
}

// Cuts a record that has quotes. Bytes between a closing quote and the delimiter are part of the
// column, as in most programs that read CSV.
Cut cut_quoted(char delimiter, std::string_view bytes, bool end) {
  const auto newlines = [&](std::size_t size) {
    return static_cast<std::size_t>(
        std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size), '\n'));
  };
  for (std::size_t at = 0;;) {
    if (at < bytes.size() && bytes[at] == '"') {
      const std::size_t newline = find(bytes, '\n', at);
      const std::size_t most =
          newline == kNone ? bytes.size() : std::min(bytes.size(), newline + kMostQuoted);
      at = close_quote(bytes.substr(0, most), at);
      if (at == kNone) {
        if (!end && most == bytes.size()) return {};
        return {std::min(find(bytes, '\n', 0), bytes.size() - 1) + 1, 1, true};
      }
    }
    while (at < bytes.size() && bytes[at] != delimiter && bytes[at] != '\n') ++at;
    if (at == bytes.size()) return end ? Cut{at, newlines(at) + 1} : Cut{};
    if (bytes[at++] == '\n') return {at, newlines(at)};
  }
}

// Returns the RFC 6901 pointer for a path with dots: a.b.0 is /a/b/0.
std::string pointer_of(std::string_view path) {
  std::string pointer = "/";
  for (const char c : path) {
    switch (c) {
      case '.':
        pointer += '/';
        break;
      case '/':
        pointer += "~1";
        break;
      case '~':
        pointer += "~0";
        break;
      default:
        pointer += c;
    }
  }
  return pointer;
}

// Reads numbers and separators from a text. After a failure all that follows fails.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int digits(std::size_t count) {
    int number = 0;
    if (rest_.size() < count) return fail();
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return fail();
      number = 10 * number + (c - '0');
    }
    rest_.remove_prefix(count);
    return number;
  }
  bool skip(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == kNone) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void need(std::string_view any_of) {
    if (!skip(any_of)) fail();
  }
  // Reads a fraction of a second, cut to milliseconds.
  int fraction_ms() {
    int ms = 0;
    int unit = 100;
    if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') fail();
    for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; rest_.remove_prefix(1)) {
      ms += unit * (rest_.front() - '0');
      unit /= 10;
    }
    return ms;
  }
  char front() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool ended() const { return ok_ && rest_.empty(); }

 private:
  int fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool ok_ = true;
};

std::optional<TimeMs> parse_iso(std::string_view text) {
  using namespace std::chrono;
  Scanner in(text);
  const year_month_day date{year(in.digits(4)),
                            (in.need("-"), month(static_cast<unsigned>(in.digits(2)))),
                            (in.need("-"), day(static_cast<unsigned>(in.digits(2))))};
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
  int fraction = 0;
  int zone_minutes = 0;
  if (in.skip("T t")) {
    hours = in.digits(2);
    in.need(":");
    minutes = in.digits(2);
    if (in.skip(":")) {
      seconds = in.digits(2);
      if (in.skip(".,")) fraction = in.fraction_ms();
    }
    const char sign = in.front();
    if (sign == '+' || sign == '-') {
      in.need("+-");
      const int zone_hours = in.digits(2);
      in.skip(":");
      zone_minutes = (60 * zone_hours + in.digits(2)) * (sign == '+' ? 1 : -1);
    } else {
      in.skip("Zz");
    }
  }
  // 60 is a leap second.
  if (!in.ended() || !date.ok() || hours > 23 || minutes > 59 || seconds > 60) return std::nullopt;
  const TimeMs day_ms = sys_days(date).time_since_epoch().count() * TimeMs{86'400'000};
  return day_ms + ((hours * 60 + minutes - zone_minutes) * 60 + seconds) * TimeMs{1000} + fraction;
}

// Chooses the unit by the size: seconds until the year 5138, and so on.
TimeMs scaled(std::int64_t number) {
  const auto size = static_cast<double>(number < 0 ? -(number + 1) : number);
  if (size < 1e11) return number * 1000;
  if (size < 1e14) return number;
  return size < 1e17 ? number / 1000 : number / 1'000'000;
}

std::optional<TimeMs> scaled(double number) {
  if (!(std::abs(number) < 9e18)) return std::nullopt;
  const double size = std::abs(number);
  const double ms = size < 1e11   ? number * 1e3
                    : size < 1e14 ? number
                                  : number / (size < 1e17 ? 1e3 : 1e6);
  return static_cast<TimeMs>(std::floor(ms));
}

}  // namespace

Cut cut_record(const RecordSyntax& syntax, std::string_view bytes, bool end) {
  const std::size_t newline = find(bytes, '\n', 0);
  const std::size_t size = newline == kNone ? (end ? bytes.size() : 0) : newline + 1;
  if (syntax.format == Format::csv &&
      find(bytes.substr(0, newline == kNone ? bytes.size() : size), '"', 0) != kNone) {
    return cut_quoted(syntax.delimiter, bytes, end);
  }
  return {size};
}

std::size_t whole_records(const RecordSyntax& syntax, std::string_view bytes, bool end,
                          CutProgress& progress) {
  std::size_t& whole = progress.whole;
  // Before the end of the input, a record can end only with a newline.
  const std::size_t newline = find_last(bytes, '\n', progress.seen);
  const bool more = end || newline != kNone;
  progress.seen = bytes.size();
  if (!more) return whole;
  const std::size_t last = end ? bytes.size() : newline + 1;
  if (syntax.format != Format::csv || find(bytes.substr(0, last), '"', whole) == kNone) {
    return whole = last;
  }
  while (whole < bytes.size()) {
    const Cut cut = cut_record(syntax, bytes.substr(whole), end);
    if (cut.size == 0) break;
    whole += cut.size;
  }
  return whole;
}

std::optional<Field> parse_field(const RecordSyntax& syntax, std::string_view text) {
  if (text.empty() || syntax.format == Format::lines) return std::nullopt;
  Field field{std::string(text), "", 0};
  if (syntax.format == Format::json) {
    field.pointer = text.front() == '/' ? std::string(text) : pointer_of(text);
    return field;
  }
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    const auto column = parse_count(text);
    if (!column || *column == 0 || *column > std::numeric_limits<std::uint32_t>::max()) {
      return std::nullopt;
    }
    field.column = *column;
  }
  return field;
}

std::vector<Field> parse_fields(const RecordSyntax& syntax, std::string_view text) {
  std::vector<Field> fields;
  for (;;) {
    const std::size_t comma = text.find(',');
    auto field = parse_field(syntax, text.substr(0, comma));
    if (!field) return {};
    fields.push_back(*std::move(field));
    if (comma == kNone) return fields;
    text.remove_prefix(comma + 1);
  }
}

std::string_view without_line_end(Format format, std::string_view record) {
  if (record.ends_with('\n')) record.remove_suffix(1);
  if ((format == Format::csv || format == Format::tsv) && record.ends_with('\r')) {
    record.remove_suffix(1);
  }
  return record;
}

std::optional<TimeMs> parse_time(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::int64_t whole = 0;
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, whole);
  if (code == std::errc() && end == last) return scaled(whole);
  if (const auto iso = parse_iso(text)) return iso;
  if (const auto number = parse_number(text)) return scaled(*number);
  return std::nullopt;
}

const std::vector<std::string_view>& ColumnSplitter::split(std::string_view record,
                                                           std::size_t most) {
  record = without_line_end(syntax_.format, record);
  fields_.clear();
  unquoted_.clear();
  unquoted_.reserve(record.size());  // views into it must stay valid
  const bool quotes = syntax_.format == Format::csv;
  const char delimiter = quotes ? syntax_.delimiter : '\t';
  for (std::size_t at = 0; fields_.size() < most;) {
    std::size_t end = 0;
    if (quotes && at < record.size() && record[at] == '"') {
      const std::size_t behind = std::min(close_quote(record, at), record.size());
      end = std::min(find(record, delimiter, behind), record.size());
      const std::size_t start = unquoted_.size();
      for (std::size_t i = at + 1; i + 1 < behind; ++i) {
        unquoted_ += record[i];
        if (record[i] == '"') ++i;  // the second of a pair
      }
      unquoted_ += record.substr(behind, end - behind);
      fields_.push_back(std::string_view(unquoted_).substr(start));
    } else {
      end = std::min(find(record, delimiter, at), record.size());
      fields_.push_back(record.substr(at, end - at));
    }
    if (end == record.size()) break;
    at = end + 1;
  }
  return fields_;
}

namespace {

// Reads the values of these columns; an error if one is not there.
Result<void> columns_of(ColumnSplitter& splitter, std::string_view record, const Columns& columns,
                        std::vector<std::string_view>& values) {
  const auto& fields = splitter.split(record, *std::max_element(columns.begin(), columns.end()));
  values.clear();
  for (const std::size_t column : columns) {
    if (column > fields.size()) {
      return Error{Errc::invalid, "there is no column " + std::to_string(column) +
                                      ", the last one is " + std::to_string(fields.size())};
    }
    values.push_back(fields[column - 1]);
  }
  return {};
}

// Returns the value of a JSON field; an error if it is not there.
Result<JsonReader::Value> value_of(const JsonReader& json, const Field& field,
                                   std::string& buffer) {
  const JsonReader::Value value = json.at(field.pointer, buffer);
  if (value.kind == JsonReader::Kind::missing) {
    return Error{Errc::invalid, "there is no field " + quoted(field.name)};
  }
  if (value.kind == JsonReader::Kind::torn) {
    return Error{Errc::invalid, "the field " + quoted(field.name) +
                                    " has half of a surrogate pair, which is no character"};
  }
  return value;
}

}  // namespace

// The JSON texts of one thread, one at a time.
struct RecordReader::Json {
  JsonReader reader;
  std::vector<std::string> texts;  // the values of the fields
  std::string buffer;
};

RecordReader::RecordReader(const RecordSyntax& syntax, const Questions& questions,
                           const Hasher& hasher)
    : syntax_(syntax), questions_(questions), hasher_(hasher), splitter_(syntax) {
  if (syntax.format == Format::json) json_ = std::make_unique<Json>();
}

RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader::~RecordReader() = default;

Result<void> RecordReader::read(std::string_view record, const Columns& columns, Answers& answers) {
  if (syntax_.format == Format::json) return read_json(record, answers);
  if (!columns.empty()) return read_columns(record, columns, answers);
  answers.key_text = without_line_end(syntax_.format, record);
  answers.key = hasher_(answers.key_text);
  return {};
}

Result<void> RecordReader::read_columns(std::string_view record, const Columns& columns,
                                        Answers& answers) {
  SEMEL_TRY(columns_of(splitter_, record, columns, values_));
  if (questions_.key.empty()) {
    answers.key_text = without_line_end(syntax_.format, record);
    answers.key = hasher_(answers.key_text);
  }
  return answer(values_, answers);
}

Result<void> RecordReader::read_json(std::string_view record, Answers& answers) {
  const std::string_view text = without_line_end(Format::json, record);
  SEMEL_TRY(json_->reader.parse(text));
  std::vector<std::string>& texts = json_->texts;
  texts.clear();
  const auto look = [&](const Field& field, bool plain) -> Result<void> {
    const JsonReader::Value value = SEMEL_TRY(value_of(json_->reader, field, json_->buffer));
    // A string is marked, so that "1" and 1 differ; a time need not be.
    const bool marked = value.kind == JsonReader::Kind::string && !plain;
    texts.emplace_back(marked ? "\"" : "").append(value.text);
    return {};
  };
  for (const Field& field : questions_.key) SEMEL_TRY(look(field, false));
  if (questions_.time) SEMEL_TRY(look(*questions_.time, true));
  for (const Field& field : questions_.places) SEMEL_TRY(look(field, false));
  values_.assign(texts.begin(), texts.end());
  if (questions_.key.empty()) {
    answers.key_text = text;
    answers.key = hasher_(text);
  }
  return answer(values_, answers);
}

Result<void> RecordReader::answer(const std::vector<std::string_view>& values, Answers& answers) {
  auto value = values.begin();
  if (questions_.key.size() == 1) {
    answers.key_text = *value++;
    answers.key = hasher_(answers.key_text);
  } else if (!questions_.key.empty()) {
    composed_.clear();
    for (std::size_t i = 0; i < questions_.key.size(); ++i, ++value) {
      std::array<std::uint8_t, 8> length{};
      store_u64(length.data(), value->size());
      composed_.append(length.begin(), length.end());
      composed_ += *value;
    }
    answers.key_text = composed_;
    answers.key = hasher_(composed_);
  }
  if (questions_.time) {
    const auto time = parse_time(*value);
    if (!time) return Error{Errc::invalid, "there is no time in " + cli::quoted(*value)};
    answers.time_ms = *time;
    ++value;
  }
  answers.places.clear();
  for (; value != values.end(); ++value) answers.places.push_back(hasher_(*value));
  return {};
}

struct FieldReader::Json {
  JsonReader reader;
  std::vector<std::string> buffers;  // of each field
};

FieldReader::FieldReader(const RecordSyntax& syntax, const std::vector<Field>& fields)
    : fields_(fields), splitter_(syntax) {
  if (syntax.format != Format::json) return;
  json_ = std::make_unique<Json>();
  json_->buffers.resize(fields.size());  // views into them must stay valid
}

FieldReader::FieldReader(FieldReader&&) noexcept = default;
FieldReader::~FieldReader() = default;

Result<void> FieldReader::read(std::string_view record, const Columns& columns) {
  return json_ ? read_json(record) : columns_of(splitter_, record, columns, texts_);
}

Result<void> FieldReader::read_json(std::string_view record) {
  const std::string_view text = without_line_end(Format::json, record);
  SEMEL_TRY(json_->reader.parse(text));
  texts_.clear();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const JsonReader::Value value =
        SEMEL_TRY(value_of(json_->reader, fields_[i], json_->buffers[i]));
    if (value.kind == JsonReader::Kind::other) {
      return Error{Errc::invalid, "the field " + quoted(fields_[i].name) +
                                      " is neither a string nor a whole number in plain digits"};
    }
    texts_.push_back(value.text);
  }
  return {};
}

std::vector<std::string> names_in(const RecordSyntax& syntax, std::string_view header) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // which spreadsheets put first
  if (header.starts_with(kByteOrderMark)) header.remove_prefix(kByteOrderMark.size());
  ColumnSplitter splitter(syntax);
  const auto& names = splitter.split(header, header.size() + 1);
  return {names.begin(), names.end()};
}

Result<Columns> find_columns(const RecordSyntax& syntax, const Questions& questions,
                             std::optional<std::string_view> header) {
  Columns columns;
  if (syntax.format != Format::csv && syntax.format != Format::tsv) return columns;
  std::vector<std::string> names;
  if (header) names = names_in(syntax, *header);
  std::vector<Field> fields = questions.key;
  if (questions.time) fields.push_back(*questions.time);
  fields.insert(fields.end(), questions.places.begin(), questions.places.end());
  for (const Field& field : fields) {
    const auto found = std::find(names.begin(), names.end(), field.name);
    if (field.column == 0 && found == names.end()) {
      if (header) return Error{Errc::invalid, "has no column " + quoted(field.name)};
      return Error{Errc::invalid, "column " + quoted(field.name) +
                                      " is a name; allowed: with --header, or a number"};
    }
    columns.push_back(field.column != 0 ? field.column
                                        : static_cast<std::size_t>(found - names.begin()) + 1);
  }
  return columns;
}

}  // namespace semel::cli
