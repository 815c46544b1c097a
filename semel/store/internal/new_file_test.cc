// NewFile: what it replaces, what it leaves behind, and files that others plant in its way.
#include "semel/store/internal/new_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "tests/cli/temporary_directory.h"

namespace semel::store_internal {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public ::testing::Test {
 protected:
  std::string path() const { return directory_.path() / "file"; }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      all.insert(entry.path().filename());
    }
    return all;
  }

  TemporaryDirectory directory_;
};

TEST_F(NewFileTest, TakesThePlaceOfTheOldOneAndLeavesNothingElse) {
  for (const char* bytes : {"first", "second"}) {
    EXPECT_FALSE(replace_file(path(), bytes_of(bytes)));
    EXPECT_EQ(read_file(path()), bytes);
    EXPECT_EQ(names(), std::set<std::string>{"file"});
  }
}

TEST_F(NewFileTest, IsReadAsAWholeOrNotAtAll) {
  for (const std::size_t size : {0, 1, 65'535, 65'536, 65'537, 200'000}) {
    const std::string bytes(size, 'x');
    EXPECT_FALSE(replace_file(path(), bytes_of(bytes)));
    EXPECT_EQ(content_of(path()), bytes);
  }
  EXPECT_EQ(content_of(path() + "2"), std::nullopt);
  EXPECT_EQ(content_of(directory_.path()), std::nullopt);  // it can be opened, but not read
  EXPECT_EQ(content_of("/proc/self/mem"), std::nullopt);
}

TEST_F(NewFileTest, LeavesTheOldOneIfItIsNotPutInPlace) {
  directory_.write("file", "old");
  {
    std::error_code error;
    NewFile file = NewFile::beside(path(), error);
    ASSERT_FALSE(error);
    EXPECT_FALSE(file.write(bytes_of("new")));
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(read_file(path()), "old");
  EXPECT_EQ(names(), std::set<std::string>{"file"});
}

TEST_F(NewFileTest, IsForItsOwnerAloneUntilItIsPermitted) {
  directory_.write("file", "old");
  fs::permissions(path(), fs::perms(0644));
  std::error_code error;
  NewFile file = NewFile::beside(path(), error);
  ASSERT_FALSE(error);
  struct stat status {};
  ASSERT_EQ(::fstat(file.fd(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600u);
  const int old = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(file.permit_like(old));
  ::close(old);
  ASSERT_EQ(::fstat(file.fd(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0644u);
}

TEST_F(NewFileTest, DoesNotWriteThroughLinksInItsPlace) {
  const std::string victim = directory_.write("victim", "precious");
  fs::create_symlink(victim, path());
  EXPECT_FALSE(replace_file(path(), bytes_of("new")));
  fs::remove(path());
  fs::create_hard_link(victim, path());
  EXPECT_FALSE(replace_file(path(), bytes_of("new")));
  EXPECT_EQ(read_file(victim), "precious");
  EXPECT_EQ(read_file(path()), "new");
}

TEST_F(NewFileTest, FailsWhereADirectoryIsAndWhereNoneIs) {
  fs::create_directories(path() + "/within");
  EXPECT_EQ(replace_file(path(), bytes_of("new")), std::errc::is_a_directory);
  EXPECT_EQ(names(), std::set<std::string>{"file"});
  EXPECT_EQ(replace_file(path() + "/none/file", bytes_of("new")),
            std::errc::no_such_file_or_directory);
}

TEST_F(NewFileTest, RemovesWhatAKilledProcessLeftAndNothingElse) {
  const std::string victim = directory_.write("victim", "precious");
  directory_.write(".file.semel-abcDEF", "left");
  const std::set<std::string> others = {".file.semel-abcdefg", ".other.semel-abcDEF", "file",
                                        "file.semel-abcDEF", ".file.semel-linked"};
  for (const std::string& name : others) {
    if (name == ".file.semel-linked") {
      fs::create_symlink(victim, directory_.path() / name);
    } else {
      directory_.write(name, "not ours");
    }
  }
  remove_leftovers(path());
  std::set<std::string> expected = others;
  expected.insert("victim");
  EXPECT_EQ(names(), expected);
}

}  // namespace
}  // namespace semel::store_internal
