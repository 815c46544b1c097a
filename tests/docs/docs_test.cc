// The documents of this repository are true, and the checker that says so notices when they are
// not.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/process.h"
#include "tests/cli/temporary_directory.h"
#include "tests/docs/checker.h"
#include "tests/support/redis_server.h"

namespace semel::docs {
namespace {

using Words = std::vector<std::string>;

const std::filesystem::path kCommands = std::filesystem::path(SEMEL_COMMAND).parent_path();

// Returns the complaints about a page that stands alone, beside one example.
std::vector<Complaint> complaints_about(const std::string& page) {
  const TemporaryDirectory root;
  root.write("README.md", page);
  root.write("docs/guide.md", "# The guide\n\n## What to do, first\n");
  root.write("examples/first.cc",
             "int main() {\n  int x = 1;\n  if (x) {\n    return 0;\n  }\n}\n");
  return Checker(root.path(), kCommands).check("README.md");
}

void expect_complaint(const std::string& page, std::size_t line, const std::string& part) {
  const std::vector<Complaint> complaints = complaints_about(page);
  ASSERT_EQ(complaints.size(), 1u) << page;
  EXPECT_EQ(complaints[0].line, line) << page;
  EXPECT_NE(complaints[0].what.find(part), std::string::npos) << complaints[0];
}

void expect_none(const std::string& page) {
  for (const Complaint& complaint : complaints_about(page)) ADD_FAILURE() << page << complaint;
}

void expect_true_documents(const std::filesystem::path& commands) {
  const Checker checker(".", commands);
  for (const std::string& document : checker.documents()) {
    for (const Complaint& complaint : checker.check(document)) ADD_FAILURE() << complaint;
  }
}

#ifdef SEMEL_MODULE

// The redis-cli of the documents talks to a server of this test, and prints as it would on a
// terminal.
TEST(Documents, ShowWhatIsSo) {
  const RedisServer server({"--loadmodule", SEMEL_MODULE});
  const TemporaryDirectory commands;
  const auto script = [&](const std::string& name, const std::string& line) {
    commands.write(name, "#!/bin/sh\nexec " + line + " \"$@\"\n");
    std::filesystem::permissions(commands.path() / name, std::filesystem::perms::owner_all);
  };
  script("semel", SEMEL_COMMAND);
  script("redis-cli", "/usr/bin/redis-cli --no-raw -p " + std::to_string(server.port()));
  expect_true_documents(commands.path());
}

#else

// A server without a sanitizer cannot load a module with one.
TEST(Documents, ShowWhatIsSo) { expect_true_documents(kCommands); }

#endif

TEST(Checker, FindsTheDocuments) {
  const TemporaryDirectory root;
  for (const char* name : {"README.md", "docs/a.md", "docs/deep/b.md", "docs/c.txt", "src/d.md"}) {
    root.write(name, "");
  }
  EXPECT_EQ(Checker(root.path(), kCommands).documents(),
            (Words{"README.md", "docs/a.md", "docs/deep/b.md"}));
}

TEST(Checker, IsContentWithAnEmptyPage) {
  expect_none("");
  expect_none("# Title\n\nText.\n");
}

TEST(Checker, RunsConsoleBlocks) {
  expect_none("```console\n$ printf 'a\\nb\\na\\n' | semel sift -q\na\nb\n```\n");
  expect_none("```console\n$ echo out; echo err >&2\nout\nerr\n```\n");
  expect_complaint("Text\n\n```console\n$ echo a\nb\n```\n", 4, "    b\n  but got\n    a\n");
  expect_complaint("```console\n$ echo a\n```\n", 2, "something else");
  expect_complaint("```console\n$ true\na\n```\n", 2, "something else");
  expect_complaint("```console\n$ echo a\na\n\n```\n", 2, "something else");
  expect_complaint("```console\n$ semel sift --eror\n```\n", 2, "unknown option '--eror'");
  expect_complaint("```console\na\n$ echo a\na\n```\n", 1, "before the first command");
  expect_complaint("```console\n```\n", 1, "no command");
}

TEST(Checker, ChecksEveryCommandOfABlock) {
  expect_none("```console\n$ echo a\na\n$ true\n$ echo b\nb\n```\n");
  expect_complaint("```console\n$ echo a\na\n$ echo b\nc\n$ echo d\nd\n```\n", 4, "echo b");
}

TEST(Checker, ContinuesCommandsOverLines) {
  expect_none("```console\n$ cat <<END\n> a\n>\n> b\n> END\na\n\nb\n```\n");
  expect_none("```console\n$ echo a \\\n>   b\na b\n```\n");
  expect_none("```console\n$ echo a; echo '> b'\na\n> b\n```\n");
}

TEST(Checker, SharesADirectoryWithinABlockOnly) {
  expect_none("```console\n$ echo x > file\n$ cat file\nx\n```\n```console\n$ ls\n```\n");
}

TEST(Checker, KnowsWildcards) {
  expect_none("```console\n$ seq 5\n1\n...\n5\n```\n");
  expect_none("```console\n$ seq 5\n...\n```\n");
  expect_none("```console\n$ true\n...\n```\n");
  expect_none("```console\n$ echo took 12 ms of 20\ntook [...] ms of [...]\n```\n");
  expect_complaint("```console\n$ seq 5\n1\n...\n4\n```\n", 2, "something else");
  expect_complaint("```console\n$ seq 5\n2\n...\n```\n", 2, "something else");
  expect_complaint("```console\n$ echo took 12 s\ntook [...] ms\n```\n", 2, "something else");
}

TEST(Checker, MatchesLinesByTheirPieces) {
  const auto match = [](const char* pattern, const char* text) {
    return matches({pattern}, {text});
  };
  EXPECT_TRUE(match("[...]", ""));
  EXPECT_TRUE(match("a[...]", "a"));
  EXPECT_TRUE(match("a[...]b[...]b", "a1b2b3b"));
  EXPECT_FALSE(match("a[...]a", "a"));
  EXPECT_FALSE(match("a[...]b[...]b", "a1b"));
  EXPECT_FALSE(match("[...]b", "abc"));
  EXPECT_FALSE(match("b[...]", "abc"));
  EXPECT_FALSE(matches({"[...]"}, {"a", "b"}));
  EXPECT_TRUE(matches({"...", "a", "...", "a"}, {"a", "b", "a", "a"}));
  EXPECT_FALSE(matches({"...", "a", "...", "a"}, {"b", "a"}));
}

TEST(Checker, WantsCodeFromTheExamples) {
  expect_none("```cpp\nint x = 1;\nif (x) {\n  return 0;\n}\n```\n");
  expect_none("* item\n\n  ```cpp\n  int x = 1;\n  ```\n");
  expect_complaint("```cpp\nint x = 2;\n```\n", 1, "no file below examples/");
  expect_complaint("```cpp\nint x = 1;\nif (x) {\nreturn 0;\n}\n```\n", 1, "examples/");
  expect_complaint("```cpp\nint x = 1\n```\n", 1, "examples/");
  expect_complaint("```cpp\n```\n", 1, "examples/");
}

TEST(Checker, KnowsItsLanguages) {
  for (const char* language : {"sh", "text", "cmake", "json", "make"}) {
    expect_none("```" + std::string(language) + "\nanything $ at all\n```\n");
  }
  expect_complaint("\n```python\nprint()\n```\n", 2, "unknown language 'python'");
  expect_complaint("```\nbare\n```\n", 1, "unknown language ''");
  expect_complaint("~~~ruby\n~~~\n", 1, "unknown language 'ruby'");
  expect_complaint("```text\nnever\n", 1, "never closed");
}

TEST(Checker, FollowsRelativeLinks) {
  expect_none("[guide](docs/guide.md) ![figure](<docs/guide.md>) [folder](docs \"Title\")\n");
  expect_none("[guide](docs/guide.md#what-to-do-first) [here](#title)\n# Title\n");
  expect_none("[elsewhere](https://example.org/x) <a href=\"mailto:x@example.org\">mail</a>\n");
  expect_none("`[code](nowhere.md)`\n\n```text\n[text](nowhere.md)\n```\n");
  expect_none("[root](/docs/guide.md)\n");
  expect_complaint("\n[a](nowhere.md)\n", 2, "'nowhere.md' leads nowhere: no such file");
  expect_complaint("[a][b]\n\n[b]: nowhere.md\n", 3, "no such file");
  expect_complaint("<img src=\"nowhere.png\">\n", 1, "no such file");
  expect_complaint("[a](docs/guide.md) and [b](docs/nowhere.md)\n", 1, "docs/nowhere.md");
  expect_complaint("[a](docs/guide.md#nothing)\n", 1, "no such heading");
  expect_complaint("[a](#nothing)\n", 1, "no such heading");
}

TEST(Checker, ResolvesLinksFromTheFolderOfTheDocument) {
  const TemporaryDirectory root;
  root.write("README.md", "");
  root.write("docs/a.md", "[up](../README.md) [beside](b.md) [wrong](README.md)\n");
  root.write("docs/b.md", "");
  const std::vector<Complaint> complaints = Checker(root.path(), kCommands).check("docs/a.md");
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_EQ(complaints[0].file, "docs/a.md");
  EXPECT_NE(complaints[0].what.find("'README.md' leads nowhere"), std::string::npos);
}

}  // namespace
}  // namespace semel::docs
