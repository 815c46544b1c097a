// Compressed bytes, as the programs of the system write them.
#include "cli/compression.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"

namespace semel::cli {
namespace {

// Returns the compressed bytes; none if the system has no such program.
std::string packed_by(const std::string& command, const std::string& text) {
  return run({.command = {"bash", "-c", command + " 2>/dev/null"}, .input = text}).out;
}

TEST(Compression, IsToldByWhatProgramsWrite) {
  const std::vector<std::pair<std::string, std::string>> programs = {
      {"gzip -c", "gzip"}, {"bzip2 -1 -c", "bzip2"}, {"bzip2 -9 -c", "bzip2"}, {"xz -c", "xz"},
      {"zstd -c", "zstd"}, {"lz4 -c", "lz4"},        {"zip -q - -", "zip"}};
  int known = 0;
  for (const auto& [command, name] : programs) {
    for (const std::string text : {"", "a\nb\n"}) {
      const std::string packed = packed_by(command, text);
      if (packed.empty()) continue;
      ++known;
      EXPECT_EQ(compression_of(packed).name, name) << command;
    }
  }
  EXPECT_GT(known, 0) << "every system has gzip";
}

// The first bytes of an input may come one by one.
TEST(Compression, WaitsForBytesThatDecide) {
  const std::string packed = "BZh9\x31\x41\x59\x26\x53\x59 and more";
  for (std::size_t size = 0; size < 10; ++size) {
    EXPECT_FALSE(compression_of(packed.substr(0, size)));
    EXPECT_TRUE(may_become_compressed(packed.substr(0, size)));
  }
  EXPECT_EQ(compression_of(packed).name, "bzip2");
  EXPECT_FALSE(may_become_compressed(packed));
  for (const char* text : {"a", "BZ\n", "BZh0", "BZh91AY&SX", "PK\n", "7z\n", "(b", "LZIP\n"}) {
    EXPECT_FALSE(compression_of(text)) << text;
    EXPECT_FALSE(may_become_compressed(text)) << text;
  }
}

// More bytes decide whether an undecided input is compressed, and the decision never changes.
RC_GTEST_PROP(Compression, IsDecidedOnce, ()) {
  const auto bytes = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("\x1f\x8b\x9d\x28\xb5\x2f\xfdPK\x03\x04"
                                     "BZh7z")));
  bool decided = false;
  Compression last{};
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::string_view head = std::string_view(bytes).substr(0, size);
    if (decided) {
      RC_ASSERT(!may_become_compressed(head));
      RC_ASSERT(compression_of(head).name == last.name);
    }
    decided = !may_become_compressed(head);
    last = compression_of(head);
    RC_ASSERT(decided || !last);
  }
}

// No record of a compressed input is read, and the message tells a way that works.
TEST(Compression, IsRefusedByWhoeverReadsRecords) {
  const TemporaryDirectory directory;
  directory.write("text", "a\nb\na\n");
  ASSERT_EQ(run_shell("gzip -c text >packed.gz", directory.path()).status, 0);
  for (const char* line :
       {"$SEMEL sift -q packed.gz", "$SEMEL sift -q <packed.gz",
        "cat packed.gz | $SEMEL sift -q -f json -E pass", "$SEMEL sift -q -f csv -H packed.gz"}) {
    const Outcome outcome = run_shell(line, directory.path());
    EXPECT_EQ(outcome.status, 1) << line;
    EXPECT_EQ(outcome.out, "") << line;
    EXPECT_NE(outcome.err.find("it is compressed by gzip; allowed: zcat "), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find(" | semel sift\n"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run_shell("zcat 'packed.gz' | $SEMEL sift -q", directory.path()).out, "a\nb\n");
}

}  // namespace
}  // namespace semel::cli
