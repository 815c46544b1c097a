#include "tests/laws/causality.h"

#include <cstdint>

#include "semel/core/assert.h"

namespace semel::laws {

bool causally_safe(std::span<const Operation> history, std::size_t which) {
  SEMEL_ASSERT(which < history.size() && history[which].removal);
  const Operation& removal = history[which];
  std::uint64_t adds = 0, rivals = 0;
  for (const Operation& other : history) {
    if (other.key != removal.key || other.at == removal.at) continue;
    if (other.removal) {
      rivals += !happened_before(removal, other);
    } else {
      adds += happened_before(other, removal);
    }
  }
  return rivals < adds;
}

}  // namespace semel::laws
