// crash_child MODE DIRECTORY SEED: works on a store until it is killed.
//
// Prints a byte when the store is open, and one after each operation that has returned.
//   write  the operations of the seed (operations.h), one after the other
//   sync   on two stores, DIRECTORY/a and DIRECTORY/b: joins with the records of the seed, in turn,
//          and now and then a sync, which counts as an operation
#include <rocksdb/db.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "semel/core/assert.h"
#include "tests/crash/operations.h"
#include "tests/crash/setup.h"
#include "tests/crash/sync_pair.h"

namespace semel::crash {
namespace {

void acknowledge() { SEMEL_ASSERT(::write(STDOUT_FILENO, ".", 1) == 1); }

template <class T>
void require(const Result<T>& result, const char* what) {
  if (result) return;
  std::fprintf(stderr, "crash_child: %s: %s\n", what, result.error().message().c_str());
  std::exit(1);
}

struct Site {
  explicit Site(const std::string& directory) {
    auto opened_store = RocksStore::open(directory, kStore);
    require(opened_store, "store");
    store = *std::move(opened_store);
    auto opened_index = IndexedStore::open(*store, secret(), kIndex);
    require(opened_index, "index");
    index = *std::move(opened_index);
  }
  std::unique_ptr<RocksStore> store;
  std::unique_ptr<IndexedStore> index;
};

void perform(const Operation& operation, Site& site) {
  rocksdb::DB& raw = site.store->raw();
  switch (operation.kind) {
    case Operation::Kind::write:
    case Operation::Kind::remove_range:
      return require(carry_out(operation, *site.store), "write");
    case Operation::Kind::view:
      return require(site.index->view(), "view");
    case Operation::Kind::checkpoint:
      return require(site.index->checkpoint(), "checkpoint");
    case Operation::Kind::flush:
      return SEMEL_ASSERT(raw.Flush({}).ok());
    case Operation::Kind::compact:
      return SEMEL_ASSERT(raw.CompactRange({}, nullptr, nullptr).ok());
  }
}

[[noreturn]] void write_for_ever(const std::string& directory, std::uint64_t seed) {
  Site site(directory);
  acknowledge();
  for (std::uint64_t number = 0;; ++number) {
    perform(operation(seed, number), site);
    acknowledge();
  }
}

[[noreturn]] void sync_for_ever(const std::string& directory, std::uint64_t seed) {
  std::array<Site, 2> sites = {Site(directory + "/a"), Site(directory + "/b")};
  acknowledge();
  for (std::uint64_t number = 0;; ++number) {
    if (is_sync(number)) {
      require(synced(*sites[0].index, *sites[1].index, number), "sync");
    } else {
      const Operation some = operation(seed, number);
      Site& site = sites[number % 2];
      if (some.kind == Operation::Kind::write) {
        require(join_in(some, *site.store), "join");
      } else if (some.kind != Operation::Kind::remove_range) {
        perform(some, site);
      }
    }
    acknowledge();
  }
}

}  // namespace
}  // namespace semel::crash

int main(int argc, char** argv) {
  const std::string_view mode = argc == 4 ? argv[1] : "";
  const std::uint64_t seed = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0;
  if (mode == "write") semel::crash::write_for_ever(argv[2], seed);
  if (mode == "sync") semel::crash::sync_for_ever(argv[2], seed);
  std::fputs("crash_child: needs a mode (write, sync), a directory and a seed\n", stderr);
  return 2;
}
