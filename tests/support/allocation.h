// LargestAllocation: the largest request of a piece of code to operator new and allocate_zeroed. It
// catches a decoder that believes a length before it has checked it.
// LiveAllocation: the memory that is allocated now, to check what an object says of its own.
// PeakAllocation: the most memory that was allocated at any time.
// FailingAllocation: memory that runs out, to see what an interrupted operation leaves behind.
#pragma once

#include <cstddef>

namespace semel {

class LargestAllocation {
 public:
  LargestAllocation();        // forgets what was before
  std::size_t bytes() const;  // the largest single request since
};

class LiveAllocation {
 public:
  LiveAllocation();           // from here on
  std::size_t bytes() const;  // with what the allocator adds to each

 private:
  std::size_t before_;
};

class PeakAllocation {
 public:
  PeakAllocation();           // from here on
  std::size_t bytes() const;  // above what there was then

 private:
  std::size_t before_;
};

// While one lives, one request fails: the one after `good` others. At most one lives at a time.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::size_t good);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
};

}  // namespace semel
