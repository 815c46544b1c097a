// Directories and states with a damaged file: the command gives all of the data, or an error. It
// never gives less, and it never crashes.
//
// Some damages of each kind here, ROUNDS of them with `make damage`. SEMEL_SEED repeats a run.
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/store/rocksdb_store.h"
#include "semel/tally/store/tally_directory.h"
#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kRecords = 1000;
constexpr const char* kDamaged = "damaged";

// A copy of this is damaged, and asked for all of the data.
struct Victim {
  fs::path pristine;
  // Each is some commands, the last of which writes the data; kDamaged stands for the path.
  std::vector<std::vector<Words>> questions;
  std::string input = {};  // of the questions
  // Damage of these files cannot be told from a kill, or from the work of another program.
  using Files = bool (*)(const fs::path&);
  Files may_be_cut = none;
  Files may_be_gone = none;
  Files target = all;
  static bool none(const fs::path& /*file*/) { return false; }
  static bool all(const fs::path& /*file*/) { return true; }
};

std::vector<fs::path> files_in(const fs::path& root) {
  if (!fs::is_directory(root)) return {root};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void overwrite(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

// Damages one file. Returns what was done, or nothing if there was nothing to do.
std::string damage(const Victim& victim, const fs::path& root, Random& random) {
  std::vector<fs::path> files = files_in(root);
  std::erase_if(files, [&](const fs::path& each) { return !victim.target(each); });
  const fs::path& file = files[random.below(files.size())];
  std::string bytes = read_file(file);
  const std::string before = bytes;
  const std::string name = file.filename();
  const bool directory = fs::is_directory(root);
  switch (random.below(directory ? 7 : 5)) {
    case 0:
    case 1: {
      if (bytes.empty()) return "";
      const std::size_t at = random.below(bytes.size());
      const auto bit = static_cast<int>(random.below(8));
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      overwrite(file, bytes);
      return "bit " + std::to_string(bit) + " of byte " + std::to_string(at) + " of " + name;
    }
    case 2: {
      // An empty state is a new one.
      if (bytes.empty() || victim.may_be_cut(file)) return "";
      const std::size_t size =
          directory ? random.below(bytes.size()) : 1 + random.below(bytes.size() - 1);
      fs::resize_file(file, size);
      return name + " cut to " + std::to_string(size) + " bytes";
    }
    case 3: {
      constexpr std::size_t kPage = 512;
      if (bytes.empty()) return "";
      const std::size_t at = random.below(bytes.size()) / kPage * kPage;
      const std::size_t size = std::min(kPage << random.below(4), bytes.size() - at);
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, '\0');
      if (bytes == before) return "";
      overwrite(file, bytes);
      return std::to_string(size) + " zeros at byte " + std::to_string(at) + " of " + name;
    }
    case 4: {
      const std::size_t size = 1 + random.below(100);
      for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(random.below(256));
      overwrite(file, bytes);
      return std::to_string(size) + " bytes more in " + name;
    }
    case 5: {
      // Other bytes in its place, as long as it was.
      if (bytes.size() < 16) return "";
      const std::string_view text = random.below(2) == 0 ? "\xff" : "MANIFEST-000005\n";
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = text[i % text.size()];
      overwrite(file, bytes);
      return name + " overwritten";
    }
    default:
      if (victim.may_be_gone(file)) return "";
      fs::remove(file);
      return name + " removed";
  }
}

class Damage : public ::testing::Test {
 protected:
  fs::path path(const std::string& name) const { return directory_.path() / name; }

  std::string records() const {
    std::string lines;
    for (int i = 0; i < kRecords; ++i) {
      lines += "key-" + std::to_string(i) + "\tvalue " + std::to_string(i) + '\n';
    }
    return lines;
  }

  void make_foreign() const {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, path("db"), &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    for (int i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(db->Put({}, "key-" + std::to_string(i), "value").ok());
      if (i == kRecords / 2) {
        ASSERT_TRUE(db->Flush({}).ok());
      }
    }
  }

  void attack(const Victim& victim) {
    const std::uint64_t seed = fresh_seed();
    const std::uint64_t rounds = setting("SEMEL_DAMAGE_ROUNDS", 12);
    std::vector<std::string> answers;
    for (const auto& question : victim.questions) {
      restore(victim);
      const Outcome outcome = ask(victim, question);
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      answers.push_back(outcome.out);
    }
    std::uint64_t errors = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < victim.questions.size(); ++i) {
        Random random(seed + round);  // the same damage for each question
        restore(victim);
        const std::string done = damage(victim, path(kDamaged), random);
        if (done.empty()) continue;
        const Outcome outcome = ask(victim, victim.questions[i]);
        SCOPED_TRACE("SEMEL_SEED=" + std::to_string(seed + round) + ": " + done + ": question " +
                     std::to_string(i) + ": " + outcome.err);
        EXPECT_FALSE(outcome.timed_out);
        EXPECT_EQ(outcome.signal, 0);
        EXPECT_TRUE(outcome.status != 0 || outcome.out == answers[i]) << "there is less";
        const bool named = outcome.err.find(path(kDamaged).string()) != std::string::npos;
        EXPECT_TRUE(outcome.status == 0 || named) << "it does not say where the damage is";
        if (outcome.status != 0) ++errors;
      }
    }
    std::printf("%llu damages, %zu questions: %llu errors\n",
                static_cast<unsigned long long>(rounds), victim.questions.size(),
                static_cast<unsigned long long>(errors));
  }

  TemporaryDirectory directory_;

 private:
  Words placed(Words question) const {
    for (std::string& word : question) {
      if (word == kDamaged) word = path(kDamaged);
    }
    return question;
  }
  void restore(const Victim& victim) const {
    fs::remove_all(path(kDamaged));
    fs::copy(victim.pristine, path(kDamaged), fs::copy_options::recursive);
  }
  Outcome ask(const Victim& victim, const std::vector<Words>& question) const {
    Outcome outcome;
    for (const Words& command : question) {
      outcome = run_semel(placed(command), victim.input);
      if (outcome.status != 0) break;
    }
    return outcome;
  }
};

bool is_log(const fs::path& file) { return file.extension() == ".log"; }
bool is_options(const fs::path& file) { return file.filename().string().starts_with("OPTIONS-"); }
bool is_log_or_manifest(const fs::path& file) {
  return is_log(file) || file.filename().string().starts_with("MANIFEST-");
}

// A directory that was opened to write must not have lost anything afterwards.
const std::vector<std::vector<Words>> kOfRecords = {{{"dump", kDamaged}},
                                                    {{"dump", kDamaged, "--secondary"}},
                                                    {{"load", kDamaged}, {"dump", kDamaged}}};
const std::vector<std::vector<Words>> kOfCounters = {
    {{"tally", "sum", kDamaged}},
    {{"tally", "top", kDamaged, "1000"}},
    {{"tally", "load", "-q", kDamaged}, {"tally", "sum", kDamaged}},
    {{"tally", "add", kDamaged, "counter-7", "0"}, {"tally", "sum", kDamaged}},
    {{"dump", kDamaged}}};

TEST_F(Damage, OfALoadedDirectoryIsTold) {
  ASSERT_EQ(run_semel({"load", path("db")}, records()).status, 0);
  attack({.pristine = path("db"), .questions = kOfRecords});
}

TEST_F(Damage, OfADirectoryThatWasSyncedIsTold) {
  ASSERT_EQ(run_semel({"load", path("a")}, records()).status, 0);
  ASSERT_EQ(run_semel({"load", path("db")}, "b\t1\n").status, 0);
  ASSERT_EQ(run_semel({"sync", path("a"), path("db")}).status, 0);
  attack({.pristine = path("db"),
          .questions = {{{"dump", kDamaged}},
                        {{"diff", path("a"), kDamaged}},
                        {{"sync", "-q", path("a"), kDamaged}, {"dump", kDamaged}}}});
}

TEST_F(Damage, OfATableIsTold) {
  std::string lines;
  for (int i = 0; i < kRecords; ++i) {
    const std::string number = std::to_string(i);
    lines += "counter-" + std::to_string(i % 300) + '\t' + number + "\tid-" + number + '\n';
  }
  ASSERT_EQ(run_semel({"tally", "load", "-q", path("db")}, lines).status, 0);
  attack({.pristine = path("db"), .questions = kOfCounters});
}

// The pristine directory is a copy of one in use: what kill -9 leaves.
TEST_F(Damage, OfADirectoryWhoseProcessWasKilledIsTold) {
  Result<std::unique_ptr<RocksStore>> store = RocksStore::open(path("used"), {.create = true});
  ASSERT_TRUE(store);
  for (int i = 0; i < 200; ++i) {
    const std::string key = "key-" + std::to_string(i);
    const std::string value(i % 40 == 39 ? 50'000 : 100, static_cast<char>('a' + i % 26));
    ASSERT_TRUE((*store)->write(std::vector<RecordWrite>{{key, value}}));
  }
  fs::copy(path("used"), path("db"), fs::copy_options::recursive);
  attack({.pristine = path("db"), .questions = kOfRecords, .may_be_cut = is_log_or_manifest});
}

TEST_F(Damage, OfATableWhoseProcessWasKilledIsTold) {
  tally::TallyStore::Settings settings;
  settings.recognition = tally::Recognition{};
  auto table = tally::TallyDirectory::open(path("used"), settings);
  ASSERT_TRUE(table) << table.error().message();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(
        (*table)->table().add({"counter-" + std::to_string(i % 30), i, {}}, (*table)->now_ms()));
  }
  fs::copy(path("used"), path("db"), fs::copy_options::recursive);
  attack({.pristine = path("db"), .questions = kOfCounters, .may_be_cut = is_log_or_manifest});
}

// Without a seal of ours.
TEST_F(Damage, OfADirectoryOfAnotherProgramIsTold) {
  make_foreign();
  attack({.pristine = path("db"),
          .questions = kOfRecords,
          .may_be_cut = is_log_or_manifest,
          .may_be_gone = is_log});
}

TEST_F(Damage, OfTheOptionsOfAnotherProgramDoesNoHarm) {
  make_foreign();
  attack({.pristine = path("db"), .questions = kOfRecords, .target = is_options});
}

TEST_F(Damage, OfAStateIsTold) {
  for (const Words& mode : {Words{}, Words{"-x"}, Words{"-w", "1h"}, Words{"-L", "diced"}}) {
    fs::remove_all(path("state"));
    Words question = {"sift", "-q", "--state", path("state")};
    question.insert(question.end(), mode.begin(), mode.end());
    ASSERT_EQ(run_semel(question, records()).status, 0);
    question[3] = kDamaged;
    attack({.pristine = path("state"), .questions = {{question}}, .input = records()});
  }
}

}  // namespace
}  // namespace semel
