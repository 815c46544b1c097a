// ChangeNotes: the changes that an index was told of, until it has time for them.
//
// Contract  tell() reports every change that was noted, or a range that contains it. Nothing is
//           lost: if memory runs out, the note becomes 'everything may have changed'.
// Cost      note: some 10 ns.
// Memory    The keys, and eight bytes for each, until collapse() replaces them by one range.
// Threads   Every call needs the object to itself.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "semel/store/ordered_store.h"

namespace semel::index_internal {

class ChangeNotes {
 public:
  void note(std::string_view key) noexcept;
  void note(const KeyRange& range) noexcept;
  void note_everything() noexcept;

  // Replaces all notes by one range, from the least noted key to the greatest.
  void collapse() noexcept;
  void tell(ChangeObserver& told) const;

  std::size_t bytes() const;  // memory in use

 private:
  void clear() noexcept;
  KeyRange hull() const;

  std::string keys_;  // each key follows its size
  std::vector<KeyRange> ranges_;
  std::size_t range_bytes_ = 0;
  bool everything_ = false;
};

}  // namespace semel::index_internal
