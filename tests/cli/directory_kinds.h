// Directories of RocksDB as other programs make them, one kind each, and the programs that own
// them.
//
// Contract  A kind says how its owner opens the directory, and what `semel` should say about it:
//           nothing if the records can be compared and written, otherwise the reason.
//           The owner is the oracle: it reads through RocksDB with options of its own.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace semel {

using Records = std::map<std::string, std::string>;
using Families = std::map<std::string, Records>;

// The place of a directory, and of its parts outside of it.
struct Place {
  std::filesystem::path root;
  std::string directory() const { return root / "db"; }
  std::string beside(const std::string& name) const { return root / name; }
};

// How an owner opens its directory, writes and reads.
struct OwnerOptions {
  using Handle = rocksdb::ColumnFamilyHandle*;
  using Handles = std::vector<Handle>;
  using Descriptors = std::vector<rocksdb::ColumnFamilyDescriptor>;

  rocksdb::DBOptions db;
  rocksdb::ColumnFamilyOptions records;  // of the column family that is asked for
  std::string family = rocksdb::kDefaultColumnFamilyName;
  std::map<std::string, rocksdb::ColumnFamilyOptions> others;
  std::function<rocksdb::Status(const OwnerOptions&, const std::string& path, const Descriptors&,
                                Handles*, rocksdb::DB**)>
      open;
  std::function<rocksdb::Status(rocksdb::DB&, Handle, const Records&)> write;
  std::function<Records(rocksdb::DB&, Handle)> read;
  std::function<Records(rocksdb::DB&)> pending;  // transactions that are prepared
  std::vector<std::shared_ptr<const void>> kept;

  OwnerOptions();
};

class Owner {
 public:
  Owner(const std::string& directory, OwnerOptions owner);
  ~Owner();
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  rocksdb::DB& db() { return *db_; }
  OwnerOptions::Handle records() { return family(owner_.family); }
  OwnerOptions::Handle family(const std::string& name);
  void write(const Records& records);
  void flush();
  Families read();

 private:
  OwnerOptions owner_;
  std::unique_ptr<rocksdb::DB> db_;
  OwnerOptions::Handles handles_;
};

struct Kind {
  std::string name;
  std::function<void(const Place&, OwnerOptions&)> set_up = [](const Place&, OwnerOptions&) {};
  std::function<void(Owner&, const Place&)> also = {};  // by the owner, once
  std::function<void(const Place&, OwnerOptions&)> afterwards =
      {};                              // after the owner has gone, once
  std::string reading_refused = {};    // a part of the reason; empty: reading is right
  std::string writing_refused = {};    // the same of writing
  std::string following_refused = {};  // the same of reading along with an owner
  bool found_when_read = false;        // the reason shows in the records, after the opening
  std::function<std::vector<std::string>(const Place&)> options = {};  // of every command
  bool closed_paths = true;  // all of the directory is in it, so that it may be copied
};

inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

// The records that every directory begins with, and those that its owner adds later.
Records first_records();
Records later_records();

const std::vector<Kind>& directory_kinds();

// Fails the test that runs unless it is fine.
void expect_ok(const rocksdb::Status& status);

}  // namespace semel
