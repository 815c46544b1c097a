// Layering: the tree obeys the table, and the checker sees a planted breach of every kind.
#include "tests/layering/layering.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

namespace semel::layering {
namespace {

namespace fs = std::filesystem;

std::string printed(const std::vector<Breach>& breaches) {
  std::ostringstream out;
  for (const Breach& breach : breaches) out << breach << '\n';
  return out.str();
}

// Returns the answer of the checker for a file that holds only this include.
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

TEST(Layering, NothingIsSeenThroughOtherHeadersThatMayNotBeSeen) {
  const std::set<std::string> headers = read_headers(fs::current_path());
  EXPECT_GE(headers.size(), 30U);
  EXPECT_EQ(printed(breaches_through(read_tree(fs::current_path()), headers)), "");
}

TEST(Layering, PublicHeadersStandOnTheirOwn) {
  const std::set<std::string> headers = read_headers(fs::current_path());
  EXPECT_EQ(printed(breaches_of_contract(read_tree(fs::current_path()), headers)), "");
}

TEST(Map, NamesOnlyPathsThatExist) {
  std::ifstream in("docs/architecture.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::regex path(R"(`((?:bench|cli|client|cmake|docs|fuzz|module|semel|tests)/[^` <]*)`)");
  std::size_t paths = 0;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), path); it != std::sregex_iterator();
       ++it, ++paths) {
    EXPECT_TRUE(fs::exists((*it)[1].str())) << (*it)[1];
  }
  EXPECT_GE(paths, 50U);
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
  EXPECT_TRUE(allows("semel/bits/internal/huge_pages.cc", "<sys/mman.h>"));
  EXPECT_TRUE(allows("semel/hash/digest.cc", "<xxhash.h>"));
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
  EXPECT_TRUE(allows("semel/papers/filter.cc", R"("semel/window/internal/lane_array.h")"));
  EXPECT_TRUE(allows("module/host/call.h", R"("module/host/api.h")"));
  EXPECT_TRUE(allows("module/types/bloom.cc", R"("module/host/value.h")"));
  EXPECT_TRUE(allows("module/commands/sift.cc", R"("module/host/call.h")"));
  EXPECT_TRUE(allows("cli/main.cc", R"("client/connection.h")"));
  EXPECT_TRUE(allows("semel/core/core_test.cc", "<gtest/gtest.h>"));
  EXPECT_TRUE(allows("semel/filter/bloom_filter_test.cc", R"("tests/laws/merge_laws.h")"));
}

TEST(LayeringChecker, RefusesAnIncludeUpwards) {
  EXPECT_FALSE(allows("semel/core/codec.h", R"("semel/hash/digest.h")"));
  EXPECT_FALSE(allows("semel/bits/internal/bit_array.h", R"("semel/hash/digest.h")"));
  EXPECT_FALSE(allows("semel/tally/table.cc", R"("semel/store/ordered_store.h")"));
  EXPECT_FALSE(allows("module/commands/sift.cc", R"("client/connection.h")"));
  EXPECT_FALSE(allows("semel/filter/bloom_filter.cc", R"("tests/laws/merge_laws.h")"));
  EXPECT_FALSE(allows("semel/core/core_test.cc", R"("semel/hash/digest.h")"));
}

TEST(LayeringChecker, RefusesTheInternalsOfAnotherRoom) {
  EXPECT_FALSE(allows("semel/sift/sifter.h", R"("semel/window/internal/lane_table.h")"));
  EXPECT_TRUE(allows("semel/sift/sifter_test.cc", R"("semel/window/internal/lane_table.h")"));
  EXPECT_TRUE(allows("cli/size.cc", R"("semel/core/internal/random.h")"));  // a tool of the house
  EXPECT_FALSE(allows("semel/slices/slice.h", R"("semel/window/internal/lane_table.h")"));
  EXPECT_FALSE(allows("cli/size.cc", R"("semel/bits/internal/bit_array.h")"));
  EXPECT_FALSE(allows("module/types/sift_value.h", R"("semel/window/internal/lane_table.h")"));
  EXPECT_FALSE(allows("cli/sift.cc", R"("semel/slices/internal/slice_run.h")"));
  EXPECT_EQ(said_of("client/url.cc", R"("semel/sync/internal/frame.h")"),
            "client/url.cc:1: semel/sync/internal/frame.h: internal to semel/sync\n");
}

TEST(LayeringChecker, RefusesThePapersRoomToTheProduct) {
  EXPECT_FALSE(allows("semel/window/window.h", R"("semel/papers/filter.h")"));
  EXPECT_FALSE(allows("cli/sift.cc", R"("semel/papers/filter.h")"));
  EXPECT_EQ(said_of("client/url.cc", R"("semel/papers/filter.h")"),
            "client/url.cc:1: semel/papers/filter.h: "
            "semel/papers/filter.h may be included only in semel/papers\n");
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
            "rocksdb may be included only in semel/store/internal/rocksdb_changes.cc, "
            "semel/store/internal/rocksdb_checksum.cc, semel/store/internal/rocksdb_database.cc, "
            "semel/store/internal/rocksdb_database.h, semel/store/internal/rocksdb_files.cc, "
            "semel/store/internal/rocksdb_listener.cc, semel/store/internal/rocksdb_listener.h, "
            "semel/store/internal/rocksdb_log_contents.cc, semel/store/internal/rocksdb_merge.cc, "
            "semel/store/internal/rocksdb_plan.cc, semel/store/internal/rocksdb_plan.h, "
            "semel/store/internal/rocksdb_stand_in.cc, semel/store/internal/rocksdb_status.cc, "
            "semel/store/internal/rocksdb_status.h, semel/store/rocksdb_store.cc\n"
            "semel/core/deep/broken.cc:2: cli/main.h: "
            "semel/core may include nothing but itself\n");
}

TEST(LayeringThroughHeaders, HidesTheServersApiFromTheCommands) {
  const Tree tree = {
      {"module/host/api.h", "#include <cstddef>\n"},
      {"module/host/call.h", "#pragma once\n#include \"module/host/api.h\"\n"},
      {"module/host/call.cc", "#include \"module/host/call.h\"\n"},
      {"module/types/value.h", "#include \"module/host/call.h\"\n"},
      {"module/commands/sift.cc", "#include \"module/types/value.h\"\n"},
  };
  EXPECT_EQ(printed(breaches_through(tree, {})),
            "module/host/call.h:2: module/host/api.h: module/commands/sift.cc sees it too\n");
  Tree mended = tree;
  mended["module/host/call.h"] = "class Call;\n";
  EXPECT_EQ(printed(breaches_through(mended, {})), "");
}

TEST(LayeringThroughHeaders, HidesInternalsFromOtherRooms) {
  const Tree tree = {
      {"semel/filter/internal/slots.h", "namespace semel::filter_internal {"},
      {"semel/crdt/internal/parts.h",
       "#include \"semel/filter/internal/slots.h\"\n"
       "namespace semel::crdt_internal {"},
      {"module/types/value.h", "\n#include \"semel/crdt/internal/parts.h\"\n"},
      {"module/types/value.cc", "#include \"module/types/value.h\"\n"},
      {"module/commands/add.cc", "#include \"module/types/value.h\"\n"},
      {"module/commands/add_test.cc", "#include \"module/types/value.h\"\n"},
  };
  EXPECT_EQ(printed(breaches_through(tree, {})),
            "module/types/value.h:2: semel/crdt/internal/parts.h: "
            "module/commands/add.cc sees it too\n");
  Tree mended = tree;
  mended["module/types/value.h"] = "struct Part;\n";
  mended["module/types/value.cc"] = "#include \"semel/crdt/internal/parts.h\"\n";
  EXPECT_EQ(printed(breaches_through(mended, {})), "");
}

TEST(LayeringThroughHeaders, WantsInternalsInTheNamespaceOfTheirRoom) {
  const Tree tree = {
      {"semel/a/internal/bare.h", "namespace semel {\n// a namespace that is internal\n"},
      {"semel/a/internal/own.h", "#pragma once\nnamespace semel::a_internal {\n"},
      {"semel/b/internal/tool.h", "namespace semel::inline b_internal {\n"},
      {"semel/tally/internal/log.h", "namespace semel::tally::internal {\n"},
  };
  EXPECT_EQ(printed(breaches_through(tree, {})),
            "semel/a/internal/bare.h:1: internal, but not in the namespace of its room\n");
}

TEST(LayeringThroughHeaders, KeepsInternalsAndLibrariesOutOfPublicHeaders) {
  const Tree tree = {
      {"semel/a/noun.h", "#include <vector>\n#include \"semel/a/shape.h\"\n"},
      {"semel/a/shape.h", "#include \"semel/a/internal/slots.h\"\n#include <absl/btree.h>\n"},
      {"semel/a/internal/slots.h", "#include <unistd.h>\nnamespace a_internal {\n"},
  };
  EXPECT_EQ(printed(breaches_through(tree, {"semel/a/noun.h", "semel/a/shape.h"})),
            "semel/a/shape.h:1: semel/a/internal/slots.h: not public, but semel/a/noun.h is\n"
            "semel/a/shape.h:2: absl/btree.h: not public, but semel/a/noun.h is\n"
            "semel/a/internal/slots.h:1: unistd.h: not public, but semel/a/noun.h is\n");
}

TEST(LayeringThroughHeaders, WantsEveryHeaderOfTheLibraryToBePublicOrInternal) {
  const Tree tree = {{"semel/a/noun.h", ""},
                     {"semel/a/internal/slots.h", "namespace a_internal {"},
                     {"semel/papers/trie.h", ""},
                     {"cli/files.h", ""},
                     {"semel/a/stray.h", ""}};
  EXPECT_EQ(printed(breaches_through(tree, {"semel/a/noun.h"})),
            "semel/a/stray.h:1: neither a public header nor in internal/\n");
  EXPECT_EQ(printed(breaches_through(tree, {"semel/a/noun.h", "semel/a/stray.h"})), "");
}

TEST(LayeringOfContracts, SendsNobodyToWhatIsNotInstalled) {
  const Tree tree = {
      {"semel/a/noun.h",
       "#include \"semel/a/shape.h\"\n// As in shape.h, a/shape.h and semel/a/shape.h.\n"
       "// It does what slots.h says (docs/a.md).\n// See a/internal/slots.h, a.cc and shape.h.\n"},
      {"semel/a/shape.h",
       "class SEMEL_API Shape {\n  SEMEL_LOCAL bool part();\n  struct SEMEL_LOCAL Body;\n};\n"},
      {"semel/a/internal/slots.h", "// See other.h.\n"},
  };
  EXPECT_EQ(printed(breaches_of_contract(tree, {"semel/a/noun.h", "semel/a/shape.h"})),
            "semel/a/noun.h:3: slots.h: not installed\n"
            "semel/a/noun.h:4: a/internal/slots.h: not installed\n"
            "semel/a/noun.h:4: a.cc: not installed\n"
            "semel/a/shape.h:2: a function that the shared library does not export\n");
}

TEST(LayeringThroughHeaders, WantsThePublicHeadersToBeThere) {
  EXPECT_EQ(printed(breaches_through({}, {"semel/a/noun.h"})),
            "semel/a/noun.h:1: a public header that is not there\n");
  EXPECT_EQ(printed(breaches_through({{"semel/a/internal/slots.h", "namespace a_internal {"}},
                                     {"semel/a/internal/slots.h"})),
            "semel/a/internal/slots.h:1: a public header in internal/\n");
}

}  // namespace
}  // namespace semel::layering
