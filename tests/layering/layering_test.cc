// Layering: the tree keeps to the table, and the checker sees a planted breach of every kind.
#include "tests/layering/layering.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace semel::layering {
namespace {

namespace fs = std::filesystem;

std::string printed(const std::vector<Breach>& breaches) {
  std::ostringstream out;
  for (const Breach& breach : breaches) out << breach << '\n';
  return out.str();
}

// What the checker says of a file that holds this one include.
std::string said_of(std::string_view file, std::string_view header) {
  return printed(breaches_in(file, "#include " + std::string(header)));
}

bool allows(std::string_view file, std::string_view header) {
  return said_of(file, header).empty();
}

TEST(Layering, TheTreeKeepsToTheTable) {
  const Report report = check_tree(fs::current_path());  // ctest starts tests at the root
  EXPECT_GE(report.files, 20) << "is this the root of the repository?";
  EXPECT_EQ(printed(report.breaches), "");
}

TEST(Layering, TheTableHasNoCycle) { EXPECT_EQ(upward_dependency(), ""); }

TEST(LayeringChecker, NamesTheFileTheLineAndWhatIsAllowed) {
  const std::string text =
      "#pragma once\n#include <vector>\n\n#include \"semel/filter/bloom_filter.h\"\n";
  EXPECT_EQ(printed(breaches_in("semel/hash/digest.h", text)),
            "semel/hash/digest.h:4: semel/filter/bloom_filter.h: "
            "semel/hash may include semel/core\n");
}

TEST(LayeringChecker, AllowsWhatTheTableAllows) {
  EXPECT_TRUE(allows("semel/core/codec.h", "<vector>"));
  EXPECT_TRUE(allows("semel/core/codec.h", R"("semel/core/assert.h")"));
  EXPECT_TRUE(allows("semel/bits/huge_pages.cc", "<sys/mman.h>"));
  EXPECT_TRUE(allows("semel/hash/digest.h", "<xxhash.h>"));
  EXPECT_TRUE(allows("semel/hash/keyed_digest.cc", "<sodium.h>"));
  EXPECT_TRUE(allows("semel/store/memory_store.cc", "<absl/container/btree_map.h>"));
  EXPECT_TRUE(allows("semel/store/internal/rocksdb_merge.cc", "<rocksdb/merge_operator.h>"));
  EXPECT_TRUE(allows("semel/store/rocksdb_store.cc", "<rocksdb/db.h>"));
  EXPECT_TRUE(allows("semel/store/rocksdb_store_test.cc", "<rocksdb/db.h>"));
  EXPECT_TRUE(allows("semel/tally/store/tally_store.cc", R"("semel/store/ordered_store.h")"));
  EXPECT_TRUE(allows("client/connection.cc", "<hiredis/hiredis.h>"));
  EXPECT_TRUE(allows("client/connection.cc", R"("semel/slices/slice.h")"));
  EXPECT_TRUE(allows("semel/tally/store/tally_store.cc", R"("semel/tally/table.h")"));
  EXPECT_TRUE(allows("semel/tally/table.cc", R"("semel/tally/counters/internal/counters.h")"));
  EXPECT_TRUE(allows("semel/window/internal/lane_table.cc", R"("semel/window/window.h")"));
  EXPECT_TRUE(allows("module/host/call.h", R"("module/host/api.h")"));
  EXPECT_TRUE(allows("module/types/bloom.cc", R"("module/host/value.h")"));
  EXPECT_TRUE(allows("module/commands/sift.cc", R"("module/host/call.h")"));
  EXPECT_TRUE(allows("cli/main.cc", R"("client/connection.h")"));
  EXPECT_TRUE(allows("semel/core/core_test.cc", "<gtest/gtest.h>"));
  EXPECT_TRUE(allows("semel/filter/bloom_filter_test.cc", R"("tests/laws/merge_laws.h")"));
}

TEST(LayeringChecker, RefusesAnIncludeUpwards) {
  EXPECT_FALSE(allows("semel/core/codec.h", R"("semel/hash/digest.h")"));
  EXPECT_FALSE(allows("semel/bits/bit_array.h", R"("semel/hash/digest.h")"));
  EXPECT_FALSE(allows("semel/tally/table.cc", R"("semel/store/ordered_store.h")"));
  EXPECT_FALSE(allows("module/commands/sift.cc", R"("client/connection.h")"));
  EXPECT_FALSE(allows("semel/filter/bloom_filter.cc", R"("tests/laws/merge_laws.h")"));
  EXPECT_FALSE(allows("semel/core/core_test.cc", R"("semel/hash/digest.h")"));
}

TEST(LayeringChecker, RefusesTheInternalsOfAnotherRoom) {
  EXPECT_FALSE(allows("semel/sift/sifter.h", R"("semel/window/internal/lane_table.h")"));
  EXPECT_FALSE(allows("module/types/sift_value.h", R"("semel/window/internal/lane_table.h")"));
  EXPECT_FALSE(allows("cli/sift.cc", R"("semel/slices/internal/slice_run.h")"));
  EXPECT_EQ(said_of("client/url.cc", R"("semel/sync/internal/frame.h")"),
            "client/url.cc:1: semel/sync/internal/frame.h: internal to semel/sync\n");
}

TEST(LayeringChecker, RefusesAnIncludeOfARoomWithinTheRoom) {
  EXPECT_FALSE(allows("semel/tally/table.cc", R"("semel/tally/store/tally_store.h")"));
  EXPECT_FALSE(allows("semel/tally/counters/internal/arena.cc", R"("semel/tally/table.h")"));
}

TEST(LayeringChecker, RefusesALibraryOutsideItsPlace) {
  EXPECT_FALSE(allows("semel/core/codec.h", "<sys/mman.h>"));
  EXPECT_FALSE(allows("semel/core/codec.h", "<xxhash.h>"));
  EXPECT_FALSE(allows("semel/filter/bloom_filter.cc", "<xxhash.h>"));
  EXPECT_FALSE(allows("cli/main.cc", "<sodium.h>"));
  EXPECT_FALSE(allows("semel/store/memory_store.cc", "<rocksdb/db.h>"));
  EXPECT_FALSE(allows("semel/store/memory_store.h", "<absl/container/btree_map.h>"));
  EXPECT_FALSE(allows("semel/store/ordered_store_test.cc", "<rocksdb/db.h>"));
  EXPECT_FALSE(allows("semel/store/rocksdb_store.h", "<rocksdb/db.h>"));
  EXPECT_FALSE(allows("cli/main.cc", "<hiredis/hiredis.h>"));
  EXPECT_FALSE(allows("module/types/bloom.cc", R"("module/host/api.h")"));
  EXPECT_FALSE(allows("module/commands/sift.cc", R"("module/host/api.h")"));
  EXPECT_FALSE(allows("semel/filter/bloom_filter.cc", "<gtest/gtest.h>"));
  EXPECT_FALSE(allows("semel/filter/bloom_filter.cc", "<boost/any.hpp>"));
}

TEST(LayeringChecker, RefusesWhatItCannotPlace) {
  EXPECT_FALSE(allows("semel/filter/bloom_filter.cc", R"("bloom_math.h")"));
  EXPECT_FALSE(allows("semel/filter/bloom_filter.cc", R"("../core/result.h")"));
  EXPECT_FALSE(allows("semel/filter/bloom_filter.cc", "HEADER"));
  EXPECT_FALSE(allows("semel/novelty/novelty.h", "<vector>"));
  EXPECT_FALSE(allows("semel/stray.h", "<vector>"));
  EXPECT_FALSE(allows("semel/corex/codec.h", "<vector>")) << "a prefix is not a folder";
}

TEST(LayeringChecker, SeesAnIncludeHoweverItIsSpaced) {
  for (const char* const line :
       {"#include <sodium.h>", "  #  include <sodium.h>", "#include<sodium.h> // why",
        "#\tinclude\t\"sodium.h\"", "#include <sodium.h>\r", "#include_next <sodium.h>"}) {
    EXPECT_EQ(breaches_in("cli/main.cc", line).size(), 1) << line;
  }
  EXPECT_EQ(printed(breaches_in("cli/main.cc", "// #include <sodium.h>\n")), "");
}

TEST(LayeringChecker, FindsABreachDeepInATree) {
  const fs::path root = fs::path(testing::TempDir()) / "layering_test_tree";
  fs::remove_all(root);
  fs::create_directories(root / "semel/core/deep");
  fs::create_directories(root / "cli");
  std::ofstream(root / "semel/core/deep/sound.h") << "#include <vector>\n";
  std::ofstream(root / "semel/core/deep/broken.cc") << "\n#include \"cli/main.h\"\n";
  std::ofstream(root / "cli/main.cc") << "#include <rocksdb/db.h>\n";
  std::ofstream(root / "cli/notes.md") << "#include <rocksdb/db.h>\n";
  const Report report = check_tree(root);
  fs::remove_all(root);
  EXPECT_EQ(report.files, 3);
  EXPECT_EQ(printed(report.breaches),
            "cli/main.cc:1: rocksdb/db.h: "
            "rocksdb may be included only in semel/store/internal/rocksdb_checksum.cc, "
            "semel/store/internal/rocksdb_files.cc, semel/store/internal/rocksdb_log_contents.cc, "
            "semel/store/internal/rocksdb_merge.cc, semel/store/internal/rocksdb_plan.cc, "
            "semel/store/internal/rocksdb_plan.h, semel/store/internal/rocksdb_stand_in.cc, "
            "semel/store/internal/rocksdb_status.cc, semel/store/internal/rocksdb_status.h, "
            "semel/store/rocksdb_store.cc\n"
            "semel/core/deep/broken.cc:2: cli/main.h: "
            "semel/core may include nothing but itself\n");
}

}  // namespace
}  // namespace semel::layering
