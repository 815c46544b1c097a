// Records: how they are cut and read, at every edge.
#include "cli/records.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/cli/lines.h"

namespace semel::cli {
namespace {

using Strings = std::vector<std::string>;

constexpr RecordSyntax kLines{Format::lines};
constexpr RecordSyntax kCsv{Format::csv, ','};
constexpr RecordSyntax kTsv{Format::tsv};
constexpr RecordSyntax kJson{Format::json};

Strings records_of(const RecordSyntax& syntax, std::string_view bytes) {
  Strings records;
  while (!bytes.empty()) {
    const Cut cut = cut_record(syntax, bytes, true);
    records.emplace_back(bytes.substr(0, cut.size));
    bytes.remove_prefix(cut.size);
  }
  return records;
}

TEST(Records, OfLinesEndWithTheNewline) {
  EXPECT_EQ(records_of(kLines, "a\n\n\"b\nc\""), (Strings{"a\n", "\n", "\"b\n", "c\""}));
  EXPECT_EQ(cut_record(kLines, "abc", false).size, 0u);
  EXPECT_EQ(cut_record(kLines, "abc", true).size, 3u);
}

TEST(Records, OfCsvHoldNewlinesWithinQuotes) {
  EXPECT_EQ(records_of(kCsv, "a,\"b\nc\",d\r\ne\n"), (Strings{"a,\"b\nc\",d\r\n", "e\n"}));
  EXPECT_EQ(records_of(kCsv, "\"a \"\"quoted\"\"\n\"\nb\n"),
            (Strings{"\"a \"\"quoted\"\"\n\"\n", "b\n"}));
  EXPECT_EQ(cut_record(kCsv, "\"a\nb\nc\",d\ne", true).lines, 3u);
  EXPECT_EQ(cut_record(kCsv, "\"a\nb\"", true).lines, 2u);
}

TEST(Records, OfCsvTakeAQuoteWithinAColumnAsItIs) {
  EXPECT_EQ(records_of(kCsv, "5\" disk,b\nc\n"), (Strings{"5\" disk,b\n", "c\n"}));
  EXPECT_EQ(records_of(kCsv, "\"a\"b\"c\nd\n"), (Strings{"\"a\"b\"c\n", "d\n"}));
}

TEST(Records, OfCsvWithAnUnclosedQuoteLoseOneLine) {
  EXPECT_EQ(records_of(kCsv, "a\n\"b\nc\nd\n"), (Strings{"a\n", "\"b\n", "c\n", "d\n"}));
  EXPECT_TRUE(cut_record(kCsv, "\"b\nc\nd\n", true).unclosed);
  EXPECT_EQ(cut_record(kCsv, "\"b\nc\nd\n", false).size, 0u) << "more may close it";

  const std::string line = "c,d,e\n";
  std::string long_after = "\"b\n";
  while (long_after.size() < kMostQuoted + 100) long_after += line;
  const Cut cut = cut_record(kCsv, long_after, false);
  EXPECT_TRUE(cut.unclosed);
  EXPECT_EQ(cut.size, 3u);
}

TEST(Records, OfCsvMayHaveALongQuotedColumnWithoutANewline) {
  const std::string record = '"' + std::string(3 * kMostQuoted, 'x') + "\",b\n";
  const Cut cut = cut_record(kCsv, record + "next\n", false);
  EXPECT_FALSE(cut.unclosed);
  EXPECT_EQ(cut.size, record.size());
}

// However many bytes are at hand, whole_records() ends where a record does, and gets to the end.
RC_GTEST_PROP(Records, AreTheSameHoweverTheyAreCut, ()) {
  const auto bytes =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("\n\n\"\",ab\r")));
  const RecordSyntax syntax = *rc::gen::element(kLines, kCsv, kTsv);
  const Strings all = records_of(syntax, bytes);
  Strings pieces;
  std::size_t at = 0;
  std::size_t seen = 0;
  CutProgress progress;
  while (at < bytes.size()) {
    seen = std::min(bytes.size(), seen + *rc::gen::inRange<std::size_t>(1, 5));
    const bool end = seen == bytes.size();
    const std::string_view rest = std::string_view(bytes).substr(at, seen - at);
    const std::size_t whole = whole_records(syntax, rest, end, progress);
    for (std::string& record : records_of(syntax, rest.substr(0, whole))) {
      pieces.push_back(std::move(record));
    }
    if (whole > 0) progress = {};
    at += whole;
    RC_ASSERT(!end || at == bytes.size());
  }
  // Only the end of the input may show that a quote is never closed. Then the records are cut in
  // different places, and the bytes are the same.
  std::string joined;
  for (const std::string& piece : pieces) joined += piece;
  RC_ASSERT(joined == bytes);
  if (syntax.format != Format::csv) RC_ASSERT(pieces == all);
}

TEST(Columns, AreSplitAtDelimitersAndFreedOfQuotes) {
  ColumnSplitter csv(kCsv);
  const auto split = [&](std::string_view record) {
    const auto& fields = csv.split(record, 100);
    return Strings(fields.begin(), fields.end());
  };
  EXPECT_EQ(split("a,b,c\n"), (Strings{"a", "b", "c"}));
  EXPECT_EQ(split("a,,\r\n"), (Strings{"a", "", ""}));
  EXPECT_EQ(split("\n"), (Strings{""}));
  EXPECT_EQ(split("\"a,b\",\"say \"\"hi\"\"\",\"\"\n"), (Strings{"a,b", "say \"hi\"", ""}));
  EXPECT_EQ(split("\"a\"x,b"), (Strings{"ax", "b"}));
  EXPECT_EQ(split("a\"b,c"), (Strings{"a\"b", "c"}));
  EXPECT_EQ(split("\"line\nbreak\",2"), (Strings{"line\nbreak", "2"}));
  EXPECT_EQ(csv.split("a,b,c\n", 2).size(), 2u);
  ColumnSplitter tsv(kTsv);
  EXPECT_EQ(tsv.split("\"a\tb\"\tc\n", 9).size(), 3u);
  ColumnSplitter semicolons({Format::csv, ';'});
  EXPECT_EQ(semicolons.split("a,b;c\n", 9).size(), 2u);
}

TEST(Columns, AreFoundByNumberAndByName) {
  Questions questions;
  questions.key = parse_fields(kCsv, "id,2");
  questions.time = parse_field(kCsv, "when");
  EXPECT_EQ(*find_columns(kCsv, questions, "when,\"id\",x\r\n"), (Columns{2, 2, 1}));
  EXPECT_EQ(*find_columns(kCsv, questions, "\xef\xbb\xbfid,when\n"), (Columns{1, 2, 2}));
  EXPECT_EQ(find_columns(kCsv, questions, "a,b\n").error().message(), "has no column 'id'");
  EXPECT_EQ(find_columns(kCsv, questions, std::nullopt).error().message(),
            "column 'id' is a name; allowed: with --header, or a number");
}

TEST(Fields, RefuseWhatCannotBe) {
  EXPECT_TRUE(parse_fields(kCsv, "0").empty());
  EXPECT_TRUE(parse_fields(kCsv, "1,,2").empty());
  EXPECT_TRUE(parse_fields(kCsv, "").empty());
  EXPECT_TRUE(parse_fields(kCsv, "99999999999").empty());
  EXPECT_TRUE(parse_fields(kLines, "1").empty());
  EXPECT_EQ(parse_fields(kJson, "a.b/c.~d").at(0).pointer, "/a/b~1c/~0d");
  EXPECT_EQ(parse_fields(kJson, "/a.b").at(0).pointer, "/a.b");
}

class Reading {
 public:
  Reading(const RecordSyntax& syntax, std::string_view key, std::string_view time = "")
      : syntax_(syntax) {
    if (!key.empty()) questions_.key = parse_fields(syntax, key);
    if (!time.empty()) questions_.time = parse_field(syntax, time);
    columns_ = *find_columns(syntax, questions_, std::nullopt);
    reader_.emplace(syntax_, questions_, hasher_);
  }
  std::string problem(const std::string& record) {
    const std::string padded = record + std::string(kPadding, '\0');
    const auto read =
        reader_->read(std::string_view(padded).substr(0, record.size()), columns_, answers_);
    return read ? "" : read.error().message();
  }
  Digest key(const std::string& record) {
    EXPECT_EQ(problem(record), "") << record;
    return answers_.key;
  }
  TimeMs time(const std::string& record) {
    EXPECT_EQ(problem(record), "") << record;
    return answers_.time_ms;
  }

 private:
  Hasher hasher_ = Hasher::fast(0);
  RecordSyntax syntax_;
  Questions questions_;
  Columns columns_;
  std::optional<RecordReader> reader_;
  RecordReader::Answers answers_{};
};

TEST(Keys, AreTheWholeRecordWithoutFields) {
  Reading lines(kLines, "");
  EXPECT_EQ(lines.key("a\n"), lines.key("a"));
  EXPECT_NE(lines.key("a\r\n"), lines.key("a\n"));
  Reading csv(kCsv, "");
  EXPECT_EQ(csv.key("a,b\r\n"), csv.key("a,b"));
}

TEST(Keys, OfColumnsIgnoreTheRestAndTheQuotes) {
  Reading second(kCsv, "2");
  EXPECT_EQ(second.key("1,x,2\n"), second.key("9,\"x\"\r\n"));
  EXPECT_NE(second.key("1,x\n"), second.key("1,y\n"));
  EXPECT_EQ(second.problem("1\n"), "there is no column 2, the last one is 1");
  Reading both(kCsv, "1,2");
  EXPECT_NE(both.key("ab,c\n"), both.key("a,bc\n"));
  EXPECT_NE(both.key("a,b\n"), both.key("b,a\n"));
}

TEST(Keys, OfJsonAreValues) {
  Reading id(kJson, "user.id");
  EXPECT_EQ(id.key(R"({"user":{"id":"A"}})"), id.key(R"( {"x":1, "user": {"id" : "\u0041"}})"));
  EXPECT_NE(id.key(R"({"user":{"id":1}})"), id.key(R"({"user":{"id":"1"}})"));
  EXPECT_EQ(id.key(R"({"user":{"id":[1, 2]}})"), id.key(R"({"user":{"id":[1,2]}})"));
  EXPECT_EQ(id.key(R"({"user":{"id":0.10}})"), id.key(R"({"user":{"id":0.1}})"));
  EXPECT_NE(id.key(R"({"user":{"id":null}})"), id.key(R"({"user":{"id":false}})"));
  EXPECT_EQ(id.problem(R"({"user":{}})"), "there is no field 'user.id'");
  EXPECT_EQ(id.problem(R"({"user":3})"), "there is no field 'user.id'");
  EXPECT_EQ(id.problem(R"([1])"), "there is no field 'user.id'");
  for (const char* broken :
       {"", " ", "{", "{\"user\":", "{} {}", "nul", "{\"a\":\"\n\"}", "\xff"}) {
    EXPECT_EQ(id.problem(broken).rfind("this is not JSON: ", 0), 0u) << broken;
  }
  Reading item(kJson, "items.1");
  EXPECT_EQ(item.key(R"({"items":[0,"b"]})"), item.key(R"({"items":["x","b"]})"));
}

TEST(Times, AreReadInEveryUnit) {
  constexpr TimeMs kTime = 1'700'000'000'123;
  for (const char* text :
       {"1700000000123", "1700000000.123", "1700000000123456", "1700000000123456789",
        "2023-11-14T22:13:20.123Z", "2023-11-14 22:13:20.123", "2023-11-14T23:13:20.123+01:00",
        "2023-11-14T17:13:20,123999-0500", "2023-11-14t22:13:20.123z"}) {
    EXPECT_EQ(parse_time(text), kTime) << text;
  }
  EXPECT_EQ(parse_time("1700000000"), 1'700'000'000'000);
  EXPECT_EQ(parse_time("2023-11-14"), 1'699'920'000'000);
  EXPECT_EQ(parse_time("2023-11-14T22:13"), 1'699'999'980'000);
  EXPECT_EQ(parse_time("1969-12-31T23:59:59.500Z"), -500);
  EXPECT_EQ(parse_time("-1"), -1000);
  EXPECT_EQ(parse_time("0"), 0);
  EXPECT_EQ(parse_time("-9223372036854775808"), -9'223'372'036'854);
  for (const char* text : {"", " ", "x", "1700000000x", "2023-13-01", "2023-02-30", "2023-11-14T",
                           "2023-11-14T25:00", "2023-11-14T22:13:20.", "2023-11-14T22:13+1", "nan",
                           "inf", "1e300", "2023-11-14T22:13:20Zx", "99999999999999999999"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(Times, ComeFromColumnsAndFields) {
  Reading csv(kCsv, "1", "2");
  EXPECT_EQ(csv.time("a,1700000000\n"), 1'700'000'000'000);
  EXPECT_EQ(csv.problem("a,soon\n"), "there is no time in 'soon'");
  Reading json(kJson, "id", "at");
  EXPECT_EQ(json.time(R"({"id":1,"at":1700000000.5})"), 1'700'000'000'500);
  EXPECT_EQ(json.time(R"({"id":1,"at":"2023-11-14"})"), 1'699'920'000'000);
  EXPECT_EQ(json.problem(R"({"id":1,"at":[]})"), "there is no time in '[]'");
}

}  // namespace
}  // namespace semel::cli
