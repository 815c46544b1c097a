// A table from any bytes is refused, or encodes to the very same bytes; and it works: it counts,
// takes its own entries again without a change, and is read back as it was.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/decode.h"
#include "semel/hash/internal/checksum.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/operation_log.h"
#include "semel/tally/internal/recogniser.h"
#include "semel/tally/table.h"
#include "tests/support/table_probe.h"

namespace semel::tally {

using namespace internal;

namespace {

void require(bool so) {
  if (!so) std::abort();
}

Bytes encoded(const Table& table) {
  Bytes bytes;
  table.encode(bytes);
  return bytes;
}

void works(Table& table) {
  const TimeMs now_ms = TableProbe::recogniser(table).now();
  (void)table.add({"x", 1, OperationId::opaque({1, 2})}, now_ms);
  (void)table.reset("y", {}, now_ms);
  (void)table.sum({});
  std::vector<std::pair<std::string, Bytes>> entries;
  table.publish([&](std::string_view key, ByteView value) {
    entries.emplace_back(key, Bytes(value.begin(), value.end()));
  });
  const Bytes before = encoded(table);
  // A table that never admitted another site takes no views, not even its own.
  const bool shared = TableProbe::log(table).view().group != 0;
  for (const auto& [key, value] : entries) {
    const bool taken = table.receive(key, value, now_ms).has_value();
    require(taken == (shared || dot_of_key(key).has_value()));
  }
  require(encoded(table) == before);
  const Result<Table> again = Table::decode(before);
  require(again.has_value() && encoded(*again) == before);
}

}  // namespace
}  // namespace semel::tally

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using semel::tally::Table;
  semel::fuzz_decode<Table>(data, size);
  if (size < 8) return 0;
  semel::Bytes repaired(data, data + size);
  semel::store_u64(repaired.data() + size - 8,
                   semel::checksum(semel::ByteView(repaired).first(size - 8)));
  semel::Result<Table> table = Table::decode(repaired);
  if (table) semel::tally::works(*table);
  return 0;
}
