// After any history of operations, a cuckoo filter agrees with a bag that keeps every entry
// exactly.
//
// The first three bytes choose the shape; each further one is an operation on one of 32 keys.
#include <cstdlib>
#include <map>

#include "semel/core/internal/arithmetic.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/filter/internal/cuckoo_bucket.h"

namespace {

void demand(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel;
  if (size < 3) return 0;
  const std::uint32_t payload_bits = data[1] % 65;
  CuckooFilter filter({data[0] % 2 == 0 ? 4u : 8u,
                       filter_internal::cuckoo_bucket::kWidths[data[0] / 2 % 16], payload_bits,
                       1 + data[2] % 8u, HashId{}});
  const std::uint64_t most = payload_bits == 64 ? ~0ull : (1ull << payload_bits) - 1;
  std::map<std::pair<unsigned, std::uint64_t>, int>
      twin;  // how often each (key, payload) is inside
  std::uint64_t entries = 0;

  for (std::size_t i = 3; i < size; ++i) {
    const unsigned number = data[i] % 32;
    const Digest key = {mix(number + 1), mix(number + 101)};
    const std::uint64_t payload = mix(data[i] / 32 % 2) & most;
    int& inside = twin[{number, payload}];
    if (data[i] < 128) {
      if (filter.insert(key, payload)) {
        ++inside;
        ++entries;
      }
    } else if (inside > 0) {  // removing what is not inside is outside the contract
      demand(filter.remove(key, payload));
      --inside;
      --entries;
    }
    demand(filter.size() == entries);
  }

  for (const auto& [entry, inside] : twin) {
    const Digest key = {mix(entry.first + 1), mix(entry.first + 101)};
    int found = 0;
    for (const std::uint64_t payload : filter.payloads(key)) found += payload == entry.second;
    demand(found >= inside);
    demand(inside == 0 || filter.contains(key));
  }
  Bytes bytes;
  filter.encode(bytes);
  const Result<CuckooFilter> copy = CuckooFilter::decode(bytes);
  demand(copy && *copy == filter);
  return 0;
}
