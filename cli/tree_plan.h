// TreePlan: a tree of filters, as a small file describes it.
//
//   # From the root down. A node below the root is named by a field of the record.
//   kind dense            # or sparse (default)
//   confirm 2             # hits above this level are confirmed from below; 0: never (default)
//   level world slices 4  # an overloaded node may be sliced
//   level region key 2
//   level site key 3
//
// The levels from the root down to some level may be at servers, each of their nodes a key there: the line
// ends in `at redis://host:port`. Hits there are not confirmed from below: other producers' leaves, which
// may be the ones that know, are not in this tree.
//
// Words are separated by blanks; what follows a # is a remark.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/records.h"
#include "semel/slices/tree_run.h"

namespace semel::cli {

struct TreePlan {
  struct Level {
    std::string name;
    Field key;  // which of its nodes a record comes through; of no use at the root
    std::uint32_t slices = 1;
    std::string at = {};  // the URL; empty: in this process
  };

  TreeKind kind = TreeKind::sparse;
  std::size_t confirm_at = 0;
  std::vector<Level> levels;  // from the root down, two or more

  // The same plan gives the same text.
  std::string text() const;
  bool remote() const { return !levels.empty() && !levels.front().at.empty(); }
};

// What is wrong, with its line; empty if nothing.
std::string parse_tree(std::string_view text, const RecordSyntax& syntax, TreePlan& plan);

}  // namespace semel::cli
