// ChunkReader and LineWriter, with pieces so small that every record is split.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "cli/chunk_reader.h"
#include "cli/line_writer.h"
#include "tests/cli/lines.h"
#include "tests/cli/temporary_directory.h"

namespace semel::cli {
namespace {

struct Read {
  std::vector<std::string> chunks;
  std::vector<std::string> complaints;
  std::string header;
  bool failed = false;

  std::string text() const {
    std::string all;
    for (const std::string& chunk : chunks) all += chunk;
    return all;
  }
};

Read read_all(ChunkReader::Plan plan) {
  Read read;
  ChunkReader reader(
      std::move(plan), [](int) { return true; },
      [&](const std::string& text) { read.complaints.push_back(text); });
  Chunk chunk;
  while (reader.next(chunk)) {
    EXPECT_EQ(chunk.number, read.chunks.size());
    read.chunks.emplace_back(chunk.text());
    read.header += chunk.header;
  }
  read.failed = reader.failed();
  return read;
}

// Few different bytes, so that newlines are many and lines equal.
rc::Gen<std::string> bytes_of_lines() {
  return rc::gen::container<std::string>(rc::gen::elementOf(std::string("\n\n\nab\0\r\xff", 8)));
}

RC_GTEST_PROP(ChunkReader, HandsOnWholeLinesOfOneFileWhateverTheChunk, ()) {
  const TemporaryDirectory directory;
  const auto files = *rc::gen::container<std::vector<std::string>>(bytes_of_lines());
  ChunkReader::Plan plan;
  std::string all;
  std::vector<std::string> lines;
  for (const std::string& bytes : files) {
    plan.inputs.push_back(directory.write(std::to_string(plan.inputs.size()), bytes));
    for (std::string& line : lines_of(bytes)) lines.push_back(std::move(line));
    all += bytes;
  }
  plan.chunk_bytes = *rc::gen::inRange<std::size_t>(1, 20);
  const Read read = read_all(plan);
  RC_ASSERT(read.text() == all);
  std::vector<std::string> cut;
  for (const std::string& chunk : read.chunks) {
    for (std::string& line : lines_of(chunk)) cut.push_back(std::move(line));
  }
  RC_ASSERT(cut == lines);
}

TEST(ChunkReader, WaitsForADescriptorThatDoesNotBlock) {
  const TemporaryDirectory directory;
  const std::string pipe = directory.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    std::error_code error;
    const File file = File::open_to_write(pipe, error);
    EXPECT_FALSE(write_all(file.fd(), std::string(1'000'000, 'x')));  // more than a pipe holds
  });
  const Read read =
      read_all({.inputs = {pipe}, .syntax = {}, .questions = {}, .chunk_bytes = 1000});
  writer.join();
  EXPECT_EQ(read.text().size(), 1'000'000u);
  EXPECT_EQ(read.chunks.size(), 1u);
}

TEST(ChunkReader, ReportsWhatItCannotReadAndGoesOn) {
  const TemporaryDirectory directory;
  const std::string a = directory.write("a", "1\n");
  const Read read = read_all({.inputs = {"/nowhere", a, "/"}, .syntax = {}, .questions = {}});
  EXPECT_EQ(read.text(), "1\n");
  EXPECT_TRUE(read.failed);
  EXPECT_EQ(read.complaints,
            (std::vector<std::string>{"cannot read '/nowhere': No such file or directory",
                                      "cannot read '/': Is a directory"}));
}

TEST(ChunkReader, TakesTheHeaderOfEachFile) {
  const TemporaryDirectory directory;
  ChunkReader::Plan plan;
  plan.inputs = {directory.write("0", "y\n0\n"), directory.write("a", "\"id\nof\",x\n1,2\n"),
                 directory.write("b", "\"id\nof\",\"x\"\r\n3,4"), directory.write("c", "")};
  plan.syntax = {Format::csv, ','};
  plan.questions.key = parse_fields(plan.syntax, "x");
  plan.has_header = true;
  plan.chunk_bytes = 3;
  const Read read = read_all(plan);
  EXPECT_EQ(read.header, "\"id\nof\",x\n");
  EXPECT_EQ(read.text(), "1,2\n3,4");
  EXPECT_EQ(read.complaints.size(), 1u);
  EXPECT_NE(read.complaints.at(0).find("has no column 'x'"), std::string::npos);
}

// Nothing is handed on from an input with other columns, or in another order.
TEST(ChunkReader, RefusesAHeaderThatIsNotTheFirst) {
  const TemporaryDirectory directory;
  const std::string a = directory.write("a", "x,id\n1,2\n");
  const std::vector<std::pair<std::string, std::string>> others = {
      {"id,x\n3,4\n", "column 1 is 'id' and not 'x'"},
      {"x,ID\n3,4\n", "column 2 is 'ID' and not 'id'"},
      {"x\n3\n", "it has 1 columns and not 2"},
      {"x,id,more\n3,4,5\n", "it has 3 columns and not 2"},
      {"\n3,4\n", "column 1 is '' and not 'x'"}};
  for (const auto& [text, difference] : others) {
    const std::string b = directory.write("b", text);
    ChunkReader::Plan plan;
    plan.inputs = {a, b, a};
    plan.syntax = {Format::csv, ','};
    plan.questions.key = parse_fields(plan.syntax, "x");
    plan.has_header = true;
    plan.chunk_bytes = 3;
    const Read read = read_all(plan);
    EXPECT_EQ(read.text(), "1,2\n1,2\n");
    EXPECT_TRUE(read.failed);
    EXPECT_EQ(read.complaints,
              (std::vector<std::string>{"the header of '" + b + "' is not that of '" + a +
                                        "': " + difference}));
  }
}

// The result does not depend on how many bytes come at a time, or on the bytes that follow.
TEST(ChunkReader, RefusesCompressedInputAndGoesOn) {
  const TemporaryDirectory directory;
  const std::string text = directory.write("text", "BZh\n");
  for (const std::size_t chunk_bytes : {1, 3, 1000}) {
    const std::string packed = directory.write("packed", "\x28\xb5\x2f\xfd\nrest\n");
    const Read read = read_all({.inputs = {text, packed, text},
                                .syntax = {},
                                .questions = {},
                                .chunk_bytes = chunk_bytes,
                                .command = "semel sift"});
    EXPECT_EQ(read.text(), "BZh\nBZh\n");
    EXPECT_TRUE(read.failed);
    EXPECT_EQ(read.complaints,
              (std::vector<std::string>{"cannot read '" + packed +
                                        "': it is compressed by zstd; allowed: zstdcat '" + packed +
                                        "' | semel sift"}));
  }
}

TEST(ChunkReader, StopsWhenItIsTold) {
  const TemporaryDirectory directory;
  const std::string a = directory.write("a", "1\n2\n3\n");
  int reads = 0;
  ChunkReader reader(
      {.inputs = {a, a}, .syntax = {}, .questions = {}, .chunk_bytes = 2},
      [&](int) { return ++reads < 3; }, [](const std::string&) {});
  Chunk chunk;
  std::string text;
  while (reader.next(chunk)) text += chunk.text();
  EXPECT_EQ(text, "1\n2\n");
  EXPECT_FALSE(reader.next(chunk));
}

RC_GTEST_PROP(LineWriter, WritesWhatItIsGivenWhateverItsCapacity, ()) {
  const TemporaryDirectory directory;
  const auto pieces = *rc::gen::container<std::vector<std::string>>(bytes_of_lines());
  std::error_code error;
  LineWriter writer(File::open_to_write(directory.path() / "out", error), "out",
                    *rc::gen::inRange<std::size_t>(1, 20));
  std::string expected;
  for (const std::string& piece : pieces) {
    if (!piece.empty() && !expected.empty() && expected.back() != '\n') expected += '\n';
    expected += piece;
    writer.append(piece);
    if (*rc::gen::inRange(0, 4) == 0) {
      writer.flush();
      RC_ASSERT(read_file(directory.path() / "out") == expected);
    }
  }
  writer.finish();
  RC_ASSERT(!writer.error());
  RC_ASSERT(read_file(directory.path() / "out") == expected);
}

TEST(LineWriter, ReportsWhatOnlyClosingReveals) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  LineWriter writer(File::borrow(ends[1]), "pipe");
  ::close(ends[0]);
  ::close(ends[1]);
  writer.finish();
  EXPECT_EQ(writer.error(), std::errc::bad_file_descriptor);
}

TEST(LineWriter, KeepsItsFirstError) {
  std::error_code error;
  LineWriter writer(File::open_to_write("/dev/full", error), "full", 4);
  ASSERT_FALSE(error);
  writer.append("ab\n");
  EXPECT_FALSE(writer.error());
  writer.append("cd\n");
  EXPECT_EQ(writer.error(), std::errc::no_space_on_device);
  writer.finish();
  EXPECT_EQ(writer.error(), std::errc::no_space_on_device);
}

}  // namespace
}  // namespace semel::cli
