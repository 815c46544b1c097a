// A program that knows only the installed headers of Semel, and no header of RocksDB.
#include <cstdio>

#include "semel/store/rocksdb_store.h"

int main(int, char** argv) {
  const std::string directory = std::string(argv[0]) + ".db";
  const auto store = semel::RocksStore::open(directory, {.create = true});
  const semel::RecordWrite write{"key", "value"};
  if (!store || !(*store)->write({&write, 1}) || **(*store)->get("key") != "value") return 1;
  std::puts("semel works outside with RocksDB");
}
