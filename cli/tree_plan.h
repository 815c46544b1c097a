// TreePlan: a tree of filters, as a small file describes it.
//
//   # From the root down. A node below the root is named by a field of the record.
//   kind dense            # or sparse (default)
//   confirm 2             # hits above this level are confirmed from below; 0: never (default)
//   level world slices 4  # an overloaded node may be sliced
//   level region key 2
//   level site key 3
//
// The upper levels, from the root down to some level, may be at servers. Each node is a key there,
// and the line of the level ends in `at redis://host:port`. Hits there are not confirmed from
// below: the leaf that knows the id may belong to another producer, and then this tree lacks it.
//
// Words are separated by blanks. A # begins a remark.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/records.h"
#include "semel/core/result.h"
#include "semel/slices/bloom_tree.h"

namespace semel::cli {

struct TreePlan {
  struct Level {
    std::string name;
    Field key;  // names the node that a record comes through; unused at the root
    std::uint32_t slices = 1;
    std::string at = {};  // the URL; empty: in this process
  };

  TreeKind kind = TreeKind::sparse;
  std::size_t confirm_at = 0;
  std::vector<Level> levels;  // from the root down, two or more

  // Returns the plan as text. Equal plans give equal text.
  std::string text() const;
  bool remote() const { return !levels.empty() && !levels.front().at.empty(); }
};

// Errors name the line of the first fault.
Result<TreePlan> parse_tree(std::string_view text, const RecordSyntax& syntax);

}  // namespace semel::cli
