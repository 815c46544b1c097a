// semel sift on records: CSV, TSV and JSON, keys, headers, and what cannot be read.
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

TEST(SiftRecords, KeepsTheFirstOfEachColumnByteForByte) {
  const std::string csv = "1,\"a\r\nb\",x\r\n2,c,y\n3,\"a\r\nb\",z\n4,\"c\",\n";
  EXPECT_EQ(sift_quietly({"-f", "csv", "-k", "2"}, csv).out, "1,\"a\r\nb\",x\r\n2,c,y\n");
  EXPECT_EQ(sift_quietly({"-f", "csv"}, "a,b\r\na,b\n\"a\",b\n").out, "a,b\r\n\"a\",b\n");
  EXPECT_EQ(sift_quietly({"-f", "tsv", "-k", "1,3"}, "a\tx\tb\na\ty\tb\na\tx\tc\n").out,
            "a\tx\tb\na\tx\tc\n");
  EXPECT_EQ(sift_quietly({"-f", "csv", "-D", ";", "-k", "2"}, "1;a,b\n2;a,b\n").out, "1;a,b\n");
}

TEST(SiftRecords, TakesColumnsByNameFromTheHeaderOfEachFile) {
  const TemporaryDirectory directory;
  const std::string a = directory.write("a", "id,name\n1,x\n1,y\n");
  const std::string b = directory.write("b", "\xef\xbb\xbf\"id\",name\r\n1,z\n2,z\n");
  const std::string dropped = directory.path() / "dropped";
  EXPECT_EQ(sift_quietly({"-f", "csv", "-H", "-k", "id", "-d", dropped, a, b}, "").out,
            "id,name\n1,x\n2,z\n");
  EXPECT_EQ(read_file(dropped), "id,name\n1,y\n1,z\n");
  EXPECT_EQ(sift_quietly({"-f", "csv", "-H", "-k", "id"}, "id\n").out, "id\n");
  EXPECT_EQ(sift_quietly({"-f", "csv", "-H", "-k", "id"}, "").out, "");

  const Outcome missing = sift_quietly({"-f", "csv", "-H", "-k", "nr", a}, "");
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(missing.err, "semel sift: the header of '" + a + "' has no column 'nr'\n");
}

// Rows under the wrong header would be wrong data: nothing of such a file is read.
TEST(SiftRecords, RefusesAFileWithAnotherHeader) {
  const TemporaryDirectory directory;
  const std::string a = directory.write("a", "id,name\n1,x\n");
  const std::string b = directory.write("b", "name,id\nz,2\n");
  for (const char* key : {"id", "1"}) {
    const Outcome outcome = sift_quietly({"-f", "csv", "-H", "-k", key, a, b}, "");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "id,name\n1,x\n");
    EXPECT_EQ(outcome.err, "semel sift: the header of '" + b + "' is not that of '" + a +
                               "': column 1 is 'name' and not 'id'\n");
  }
  const Outcome piped = sift_quietly({"-f", "tsv", "-H", a, "-"}, "other\n2\n");
  EXPECT_EQ(piped.status, 1);
  EXPECT_EQ(piped.out, "id,name\n1,x\n");
  EXPECT_EQ(piped.err, "semel sift: the header of standard input is not that of '" + a +
                           "': column 1 is 'other' and not 'id,name'\n");
}

TEST(SiftRecords, TakesFieldsOfJson) {
  const std::string json =
      "{\"user\":{\"id\":7},\"n\":1}\n{\"user\":{\"id\":\"7\"}}\r\n{ \"n\":2, "
      "\"user\":{\"id\":7}}\n";
  EXPECT_EQ(sift_quietly({"-f", "json", "-k", "user.id"}, json).out,
            "{\"user\":{\"id\":7},\"n\":1}\n{\"user\":{\"id\":\"7\"}}\r\n");
  EXPECT_EQ(
      sift_quietly({"-f", "json", "-k", "/user/id,n"}, "{\"user\":{\"id\":1},\"n\":1}\n").status,
      0);
}

TEST(SiftRecords, TakesJsonNumbersOfAnySize) {
  const std::string a = "{\"id\":18446744073709551616,\"x\":1}\n";
  const std::string b = "{\"id\":18446744073709551617,\"x\":1e400}\n";
  const std::string c = "{\"x\":1e999, \"id\":\"18446744073709551616\"}\n";
  const std::string d = "{\"id\":18446744073709551616.0}\n";
  EXPECT_EQ(sift_quietly({"-f", "json", "-k", "id"}, a + b + c + d + a + b + c + d).out,
            a + b + c + d);
  EXPECT_EQ(sift_quietly({"-f", "json"}, a + b + a).out, a + b);
  const Outcome late = sift_quietly({"-f", "json", "-k", "id", "-w", "1h", "-T", "x"}, b);
  EXPECT_EQ(late.status, 1);
  EXPECT_EQ(late.err, "semel sift: standard input line 1: there is no time in '1e400'\n");
}

// The message has the line, the rest is unharmed.
TEST(SiftRecords, StopsAtWhatItCannotReadUnlessToldOtherwise) {
  const std::string csv = "1,a\n2,b\n3\n4,a\n5,c\n";
  const std::string message =
      "semel sift: standard input line 3: there is no column 2, the last one is 1\n";
  const Outcome stopped = sift_quietly({"-f", "csv", "-k", "2"}, csv);
  EXPECT_EQ(stopped.status, 1);
  EXPECT_EQ(stopped.out, "1,a\n2,b\n");
  EXPECT_EQ(stopped.err, message);
  const Outcome skipped = sift_quietly({"-f", "csv", "-k", "2", "--on-error", "skip"}, csv);
  EXPECT_EQ(skipped.status, 0);
  EXPECT_EQ(skipped.out, "1,a\n2,b\n5,c\n");
  EXPECT_EQ(skipped.err, message);
  const Outcome passed = sift_quietly({"-f", "csv", "-k", "2", "--on-error", "pass"}, csv);
  EXPECT_EQ(passed.status, 0);
  EXPECT_EQ(passed.out, "1,a\n2,b\n3\n5,c\n");
  EXPECT_EQ(passed.err, message);
  EXPECT_EQ(sift_quietly({"-c", "-f", "csv", "-k", "2", "-E", "skip"}, csv).out,
            "lines 5\nfirst 3\nduplicates 1\nunreadable 1\n");
}

TEST(SiftRecords, CountsTheLinesOfRecordsThatTakeSeveral) {
  const Outcome outcome =
      sift_quietly({"-f", "csv", "-H", "-k", "2"}, "\"a\nb\",c\n\"1\n2\n3\",x\n4\n");
  EXPECT_EQ(outcome.err,
            "semel sift: standard input line 6: there is no column 2, the last one is 1\n");
}

TEST(SiftRecords, TellsOfBrokenJsonAndQuotes) {
  using std::string_literals::operator""s;
  const Outcome json =
      sift_quietly({"-f", "json", "-k", "id", "-E", "skip"},
                   "{\"id\":1}\n{\"id\":\n\n{\"no\":1}\n\0\n{\"id\":1}\n{\"id\":2}\n"s);
  EXPECT_EQ(json.out, "{\"id\":1}\n{\"id\":2}\n");
  EXPECT_NE(json.err.find("line 2: this is not JSON"), std::string::npos) << json.err;
  EXPECT_NE(json.err.find("line 3: this is not JSON"), std::string::npos) << json.err;
  EXPECT_NE(json.err.find("line 4: there is no field 'id'"), std::string::npos) << json.err;
  EXPECT_NE(json.err.find("line 5: this is not JSON"), std::string::npos) << json.err;
  const Outcome csv = sift_quietly({"-f", "csv", "-k", "1", "-E", "pass"}, "a\n\"b\na\nc\n");
  EXPECT_EQ(csv.out, "a\n\"b\nc\n");
  EXPECT_EQ(csv.err, "semel sift: standard input line 2: a quote is not closed\n");
}

TEST(SiftRecords, ShowsTheFirstTenProblemsAndTheirNumber) {
  std::string input;
  for (int i = 0; i < 5000; ++i) input += "x\n";
  const Outcome outcome = sift_quietly({"-f", "json", "-k", "id", "-E", "skip"}, input);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 11);
  EXPECT_NE(outcome.err.find("semel sift: 4990 more lines like these\n"), std::string::npos);
}

TEST(SiftRecords, TakesNulBytesLongLinesAndAnEmptyFile) {
  using std::string_literals::operator""s;
  EXPECT_EQ(sift_quietly({"-f", "csv", "-k", "1"}, "a\0b,1\na\0b,2\na\0c,3\n"s).out,
            "a\0b,1\na\0c,3\n"s);
  std::string value;
  value.resize(100'000'000, 'x');
  const std::string json = "{\"id\":\"" + value + "\"}\n";
  EXPECT_TRUE(sift_quietly({"-f", "json", "-k", "id"}, json + json + "{\"id\":1}\n").out ==
              json + "{\"id\":1}\n");
  const std::string csv = "1,\"" + value + "\"\n";
  EXPECT_TRUE(sift_quietly({"-f", "csv", "-k", "2"}, csv + csv + "3,4\n").out == csv + "3,4\n");
  for (const char* format : {"csv", "tsv", "json"}) {
    const Outcome outcome = sift_quietly({"-f", format, "-k", "1"}, "");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, "");
  }
}

// Whatever the threads do, the output is that of one.
TEST(SiftRecords, AreTheSameWithAnyNumberOfThreads) {
  std::string input;
  for (int i = 0; i < 200'000; ++i) {
    input += std::to_string(i * 7919 % 50'000) + ",\"" + std::string(i % 40, 'y') + "\"\n";
    if (i % 30'011 == 30'010) input += "broken\n";
  }
  const Outcome one = sift_quietly({"-f", "csv", "-k", "1,2", "-E", "pass", "-t", "1"}, input);
  EXPECT_EQ(one.status, 0);
  for (const char* threads : {"2", "5"}) {
    const Outcome many =
        sift_quietly({"-f", "csv", "-k", "1,2", "-E", "pass", "-t", threads}, input);
    EXPECT_TRUE(many.out == one.out);
    EXPECT_EQ(many.err, one.err);
  }
  const Outcome stopped = sift_quietly({"-f", "csv", "-k", "1,2", "-t", "1"}, input);
  EXPECT_EQ(stopped.status, 1);
  for (const char* threads : {"2", "5"}) {
    const Outcome many = sift_quietly({"-f", "csv", "-k", "1,2", "-t", threads}, input);
    EXPECT_TRUE(many.out == stopped.out);
    EXPECT_EQ(many.err, stopped.err);
    EXPECT_EQ(many.status, 1);
  }
}

TEST(SiftRecords, RefusesOptionsThatDoNotGoTogether) {
  expect_usage_error(run_semel({"sift", "-k", "1"}), {"--key needs fields"});
  expect_usage_error(run_semel({"sift", "-f", "csv", "-k", "id"}), {"'id' is a name"});
  expect_usage_error(run_semel({"sift", "-f", "csv", "-k", "0"}), {"--key cannot be '0'"});
  expect_usage_error(run_semel({"sift", "-f", "csv", "-k", ""}), {"--key cannot be ''"});
  expect_usage_error(run_semel({"sift", "-f", "json", "-H"}), {"--header needs columns"});
  expect_usage_error(run_semel({"sift", "-f", "tsv", "-D", ";"}), {"--delimiter is for CSV"});
  expect_usage_error(run_semel({"sift", "-f", "csv", "-D", "ab"}), {"--delimiter cannot be 'ab'"});
  expect_usage_error(run_semel({"sift", "-f", "csv", "-D", "\""}), {"--delimiter cannot be"});
  expect_usage_error(run_semel({"sift", "-f", "xml"}), {"lines, csv, tsv, json"});
  expect_usage_error(run_semel({"sift", "-f", "csv", "-T", "1"}), {"--time-field needs --window"});
  expect_usage_error(run_semel({"sift", "-w", "0s"}), {"--window"});
  expect_usage_error(run_semel({"sift", "-C", "1s"}), {"--checkpoint needs --state"});
  expect_usage_error(run_semel({"sift", "-p", "2"}), {"--spread"});
  expect_usage_error(run_semel({"sift", "--threads", "0"}), {"--threads"});
}

}  // namespace
}  // namespace semel
