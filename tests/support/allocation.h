// LargestAllocation: what one piece of code asked of operator new, to catch a decoder that believes
// a length before it has checked it.
#pragma once

#include <cstddef>

namespace semel {

class LargestAllocation {
 public:
  LargestAllocation();        // forgets what was before
  std::size_t bytes() const;  // the largest single request since
};

}  // namespace semel
