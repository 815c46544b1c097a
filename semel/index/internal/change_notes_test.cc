#include "semel/index/internal/change_notes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/allocation.h"

namespace semel::index_internal {
namespace {

struct Told final : ChangeObserver {
  void changed(std::string_view key) override { keys.emplace_back(key); }
  void changed(const KeyRange& range) override { ranges.push_back(range); }
  std::vector<std::string> keys;
  std::vector<KeyRange> ranges;
};

Told told_by(const ChangeNotes& notes) {
  Told told;
  notes.tell(told);
  return told;
}

TEST(ChangeNotes, TellWhatWasNotedAndNothingElse) {
  ChangeNotes notes;
  EXPECT_EQ(notes.bytes(), ChangeNotes().bytes());
  notes.note("b");
  notes.note("");
  notes.note(std::string_view("a\0c", 3));
  notes.note(KeyRange{"k", "m"});
  notes.note(KeyRange{"z", "z"});  // empty
  const Told told = told_by(notes);
  EXPECT_EQ(told.keys, (std::vector<std::string>{"b", "", std::string("a\0c", 3)}));
  EXPECT_EQ(told.ranges, (std::vector<KeyRange>{{"k", "m"}}));
}

TEST(ChangeNotes, CollapseToTheRangeFromTheLeastToTheGreatest) {
  ChangeNotes notes;
  notes.collapse();
  EXPECT_TRUE(told_by(notes).ranges.empty());
  notes.note("d");
  notes.note("b");
  notes.note("c");
  notes.collapse();
  EXPECT_TRUE(told_by(notes).keys.empty());
  EXPECT_EQ(told_by(notes).ranges, (std::vector<KeyRange>{{"b", successor("d")}}));
  notes.note(KeyRange{"c", "f"});
  notes.note("a");
  notes.collapse();
  EXPECT_EQ(told_by(notes).ranges, (std::vector<KeyRange>{{"a", "f"}}));
  notes.note(KeyRange{"x", std::nullopt});
  notes.collapse();
  EXPECT_EQ(told_by(notes).ranges, (std::vector<KeyRange>{{"a", std::nullopt}}));
}

TEST(ChangeNotes, GiveMemoryBackWhenTheyCollapse) {
  ChangeNotes notes;
  for (int n = 0; n < 10'000; ++n) notes.note(std::to_string(n));
  EXPECT_GT(notes.bytes(), 10'000 * sizeof(std::size_t));
  notes.collapse();
  EXPECT_LT(notes.bytes(), 200U);
}

TEST(ChangeNotes, NoteEverythingWhenMemoryRunsOut) {
  const std::string key(1000, 'k');
  const KeyRange range{key, key + key};
  for (const bool by_key : {true, false}) {
    ChangeNotes notes;
    notes.note("before");
    {
      const FailingAllocation failing(0);
      by_key ? notes.note(key) : notes.note(range);
    }
    notes.note("after");
    const Told told = told_by(notes);
    EXPECT_TRUE(told.keys.empty());
    EXPECT_EQ(told.ranges, std::vector<KeyRange>{KeyRange::all()});
  }
}

}  // namespace
}  // namespace semel::index_internal
