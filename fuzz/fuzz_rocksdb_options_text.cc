#include <string>

#include "semel/core/assert.h"
#include "semel/store/internal/rocksdb_options.h"

// An OPTIONS file of any text is searched without harm, and is not changed by sections of its own.
// The first byte cuts the rest in two: the text of the owner, and what RocksDB has written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = all.size() * data[0] / 255;
  const semel::store_internal::RocksOptionsText own(all.substr(0, cut));
  const semel::store_internal::RocksOptionsText written(all.substr(cut));
  (void)own.db_option("wal_dir");
  (void)own.family_option("default", "comparator");
  SEMEL_ASSERT(own.with_families_of(own, {}) == own);
  const semel::store_internal::RocksOptionsText both = own.with_families_of(written, {});
  SEMEL_ASSERT(both.text().starts_with(own.text()));
  (void)own.with_families_of(written, {"default"});
  return 0;
}
