// LineReader and LineWriter, with chunks so small that every line is split.
#include "tests/cli/lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <thread>

#include "cli/line_reader.h"
#include "cli/line_writer.h"
#include "tests/cli/temporary_directory.h"

namespace semel::cli {
namespace {

std::vector<std::string> read_lines(int fd, std::size_t chunk, std::size_t batch) {
  LineReader reader(fd, chunk);
  std::vector<std::string> all;
  std::vector<std::string_view> room(batch);
  while (!reader.ended()) {
    EXPECT_FALSE(reader.read());
    for (auto lines = reader.cut(room); !lines.empty(); lines = reader.cut(room)) {
      for (std::size_t i = 1; i < lines.size(); ++i) {
        EXPECT_EQ(lines[i - 1].data() + lines[i - 1].size(), lines[i].data());
      }
      all.insert(all.end(), lines.begin(), lines.end());
    }
  }
  return all;
}

// Few different bytes, so that newlines are many and lines equal.
rc::Gen<std::string> bytes_of_lines() {
  return rc::gen::container<std::string>(rc::gen::elementOf(std::string("\n\n\nab\0\r\xff", 8)));
}

RC_GTEST_PROP(LineReader, CutsTheSameLinesWhateverTheChunk, ()) {
  const TemporaryDirectory directory;
  const std::string bytes = *bytes_of_lines();
  std::error_code error;
  const File file = File::open_to_read(directory.write("bytes", bytes), error);
  RC_ASSERT(!error);
  const auto chunk = *rc::gen::inRange<std::size_t>(1, 20);
  const auto batch = *rc::gen::inRange<std::size_t>(1, 5);
  RC_ASSERT(read_lines(file.fd(), chunk, batch) == lines_of(bytes));
}

RC_GTEST_PROP(LineReader, CutsTheSameLinesHoweverTheyArrive, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(bytes_of_lines());
  std::array<int, 2> ends{};
  RC_ASSERT(::pipe(ends.data()) == 0);
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  std::thread writer([&] {
    for (const std::string& piece : pieces) (void)write_all(ends[1], piece);
    ::close(ends[1]);
  });
  const std::vector<std::string> lines = read_lines(ends[0], 4, 3);
  writer.join();
  ::close(ends[0]);
  RC_ASSERT(lines == lines_of(all));
}

TEST(LineReader, WaitsForADescriptorThatDoesNotBlock) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
  EXPECT_TRUE(must_wait(ends[0]));
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(write_all(ends[1], std::string(1'000'000, 'x')));  // more than a pipe holds
    ::close(ends[1]);
  });
  const std::vector<std::string> lines = read_lines(ends[0], 1000, 1);
  writer.join();
  ::close(ends[0]);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].size(), 1'000'000u);
}

TEST(LineReader, TellsWhatTheSystemSays) {
  LineReader reader(-1);
  EXPECT_EQ(reader.read(), std::errc::bad_file_descriptor);
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
