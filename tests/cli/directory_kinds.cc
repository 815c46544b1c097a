#include "tests/cli/directory_kinds.h"

#include <gtest/gtest.h>
#include <rocksdb/comparator.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env_encryption.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/backup_engine.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/db_ttl.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/options_util.h>
#include <rocksdb/utilities/transaction_db.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>

namespace rocksdb {
// Exported by the library, but not declared in the headers of this version.
const Comparator* BytewiseComparatorWithU64Ts();
}  // namespace rocksdb

namespace semel {
namespace {

namespace fs = std::filesystem;
using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyOptions;
using rocksdb::DB;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::TransactionDB;
using rocksdb::TransactionDBOptions;

std::string key(int number) { return "key-" + std::to_string(1000 + number); }

Status put_all(DB& db, OwnerOptions::Handle family, const Records& records) {
  rocksdb::WriteBatch batch;
  for (const auto& [one, value] : records) {
    if (Status status = batch.Put(family, one, value); !status.ok()) return status;
  }
  return db.Write({}, &batch);
}

std::string plain_value(const rocksdb::Iterator& at) { return at.value().ToString(); }

std::string value_with_columns(const rocksdb::Iterator& at) {
  std::string value = plain_value(at);
  for (const rocksdb::WideColumn& column : at.columns()) {
    if (column.name().empty()) continue;
    value += " " + column.name().ToString() + "=" + column.value().ToString();
  }
  return value;
}

Records read_all(DB& db, OwnerOptions::Handle family, const rocksdb::ReadOptions& options,
                 std::string (*value)(const rocksdb::Iterator&)) {
  Records records;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options, family));
  for (at->SeekToFirst(); at->Valid(); at->Next()) records[at->key().ToString()] = value(*at);
  expect_ok(at->status());
  return records;
}

Records read_in_order(DB& db, OwnerOptions::Handle family) {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  return read_all(db, family, options, value_with_columns);
}

// --- operators and orders that only their owner knows

class Longest final : public rocksdb::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "owner.longest"; }
  bool Merge(const Slice& /*key*/, const Slice* now, const Slice& operand, std::string* merged,
             rocksdb::Logger* /*log*/) const override {
    *merged = (now != nullptr && now->size() > operand.size() ? *now : operand).ToString();
    return true;
  }
};

// Compares the last byte first: neither the order of bytes nor its reverse.
class ByEnd final : public rocksdb::Comparator {
 public:
  const char* Name() const override { return "owner.by-end"; }
  int Compare(const Slice& a, const Slice& b) const override {
    const std::string x = turned(a);
    const std::string y = turned(b);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  void FindShortestSeparator(std::string* /*start*/, const Slice& /*limit*/) const override {}
  void FindShortSuccessor(std::string* /*key*/) const override {}

 private:
  static std::string turned(const Slice& text) {
    std::string out = text.ToString();
    std::reverse(out.begin(), out.end());
    return out;
  }
};

// Encrypts without security: the bytes are just not readable as they are.
class Flipped final : public rocksdb::BlockCipher {
 public:
  const char* Name() const override { return "owner.flipped"; }
  std::size_t BlockSize() override { return 16; }
  Status Encrypt(char* data) override {
    for (std::size_t i = 0; i < BlockSize(); ++i) data[i] = static_cast<char>(~data[i]);
    return Status::OK();
  }
  Status Decrypt(char* data) override { return Encrypt(data); }
};

const rocksdb::Comparator* by_end() {
  static const ByEnd order;
  return &order;
}

ColumnFamilyOptions ordered_by(const rocksdb::Comparator* order) {
  ColumnFamilyOptions options;
  options.comparator = order;
  return options;
}

ColumnFamilyOptions merged_by_longest() {
  ColumnFamilyOptions options;
  options.merge_operator = std::make_shared<Longest>();
  return options;
}

// --- transactions

// Finishes a transaction whose records are written. A transaction with a name is prepared already.
using End = Status (*)(std::unique_ptr<rocksdb::Transaction> one);

Status in_transaction(DB& db, OwnerOptions::Handle family, const Records& records, bool prepare,
                      End end) {
  static int number = 0;
  auto& transactions = dynamic_cast<TransactionDB&>(db);
  std::unique_ptr<rocksdb::Transaction> one(transactions.BeginTransaction({}));
  Status status;
  if (prepare) status = one->SetName("transaction-" + std::to_string(++number));
  for (const auto& [each, value] : records) {
    if (status.ok()) status = one->Put(family, each, value);
  }
  if (status.ok() && prepare) status = one->Prepare();
  return status.ok() ? end(std::move(one)) : status;
}

Status commit(std::unique_ptr<rocksdb::Transaction> one) { return one->Commit(); }

// The database has it until it is closed, and finds it again in its log.
Status leave(std::unique_ptr<rocksdb::Transaction> one) {
  (void)one.release();
  return Status::OK();
}

Status roll_back(std::unique_ptr<rocksdb::Transaction> one) { return one->Rollback(); }

Records prepared_in(DB& db) {
  std::vector<rocksdb::Transaction*> prepared;
  dynamic_cast<TransactionDB&>(db).GetAllPreparedTransactions(&prepared);
  Records records;
  for (const rocksdb::Transaction* const one : prepared) records[one->GetName()] = "prepared";
  return records;
}

void transactional(OwnerOptions& how, rocksdb::TxnDBWritePolicy policy, bool prepare) {
  how.open = [policy](const OwnerOptions& own, const std::string& path, const auto& families,
                      auto* handles, DB** db) {
    TransactionDBOptions transactions;
    transactions.write_policy = policy;
    TransactionDB* opened = nullptr;
    const Status status =
        TransactionDB::Open(own.db, transactions, path, families, handles, &opened);
    *db = opened;
    return status;
  };
  how.write = [prepare](DB& db, OwnerOptions::Handle family, const Records& records) {
    return in_transaction(db, family, records, prepare, commit);
  };
  how.pending = prepared_in;
}

Kind transactions(const std::string& name, rocksdb::TxnDBWritePolicy policy, bool prepare) {
  return {.name = name,
          .set_up = [=](const Place&, OwnerOptions& how) { transactional(how, policy, prepare); }};
}

Kind two_phases(const std::string& name,
                rocksdb::TxnDBWritePolicy policy = rocksdb::WRITE_COMMITTED) {
  return transactions(name, policy, true);
}

// Leaves one that is prepared, and neither committed nor rolled back.
Kind with_pending(Kind kind) {
  kind.also = [](Owner& owner, const Place&) {
    expect_ok(in_transaction(owner.db(), owner.records(), {{"pending", "1"}}, true, leave));
  };
  return kind;
}

// --- files beside the log

std::string table_of(const Place& place, const Records& records) {
  rocksdb::SstFileWriter writer({}, {});
  std::string file = place.beside("ingested.sst");
  expect_ok(writer.Open(file));
  for (const auto& [one, value] : records) expect_ok(writer.Put(one, value));
  expect_ok(writer.Finish());
  return file;
}

// `over`: over records that are there, so that the file gets a number of its own in the sequence.
Kind ingested(const std::string& name, bool over, bool written) {
  return {.name = name, .also = [=](Owner& owner, const Place& place) {
            const std::string file =
                table_of(place, over ? Records{{key(1), "ingested"}, {key(2), "ingested"}}
                                     : Records{{"zz-1", "ingested"}});
            rocksdb::IngestExternalFileOptions how;
            how.write_global_seqno = written;
            expect_ok(owner.db().IngestExternalFile(owner.records(), {file}, how));
            fs::remove(file);
          }};
}

std::string newest_options(const std::string& directory) {
  std::string name;
  expect_ok(rocksdb::GetLatestOptionsFileName(directory, rocksdb::Env::Default(), &name));
  return directory + "/" + name;
}

void rewrite_options(const std::string& directory,
                     const std::function<std::string(std::string)>& change) {
  const std::string file = newest_options(directory);
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::ofstream(file) << change(text);
}

// Writes the file as RocksDB 6 did: it always names the log's directory, and fewer options.
std::string as_of_6(std::string text, const std::string& wal_dir) {
  text = std::regex_replace(text, std::regex("rocksdb_version=[0-9.]+"), "rocksdb_version=6.11.4");
  text = std::regex_replace(text, std::regex("\n  wal_dir=[^\n]*"), "");
  text = std::regex_replace(text, std::regex("\\[DBOptions\\]\n"),
                            "[DBOptions]\n  wal_dir=" + wal_dir + "\n");
  return std::regex_replace(text,
                            std::regex("\n  (wal_compression|lowest_used_cache_tier|"
                                       "compaction_filter_factory|blob_[a-z_]+|"
                                       "preclude_[a-z_]+)=[^\n]*"),
                            "");
}

void remove_options(const Place& place) {
  for (const auto& file : fs::directory_iterator(place.directory())) {
    if (file.path().filename().string().starts_with("OPTIONS")) fs::remove(file);
  }
}

// Turns the directory into a checkpoint of itself, whose original is at `original`, gone or not.
void become_checkpoint(const Place& place, OwnerOptions& how) {
  const std::string original = place.beside("original");
  fs::rename(place.directory(), original);
  {
    Owner owner(original, how);
    rocksdb::Checkpoint* made = nullptr;
    expect_ok(rocksdb::Checkpoint::Create(&owner.db(), &made));
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    expect_ok(checkpoint->CreateCheckpoint(place.directory()));
  }
  how.db.wal_dir.clear();  // a checkpoint has its log in itself
}

void become_restored_backup(const Place& place, OwnerOptions& how) {
  rocksdb::BackupEngine* made = nullptr;
  expect_ok(rocksdb::BackupEngine::Open(
      rocksdb::Env::Default(), rocksdb::BackupEngineOptions(place.beside("backup")), &made));
  const std::unique_ptr<rocksdb::BackupEngine> backup(made);
  {
    Owner owner(place.directory(), how);
    expect_ok(backup->CreateNewBackup(&owner.db()));
  }
  fs::remove_all(place.directory());
  expect_ok(backup->RestoreDBFromLatestBackup(place.directory(), place.directory()));
}

// --- tables

void block_based(OwnerOptions& how,
                 const std::function<void(rocksdb::BlockBasedTableOptions&)>& change) {
  rocksdb::BlockBasedTableOptions table;
  change(table);
  how.records.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
}

Kind blocks(const std::string& name,
            const std::function<void(rocksdb::BlockBasedTableOptions&)>& change) {
  return {.name = name,
          .set_up = [change](const Place&, OwnerOptions& how) { block_based(how, change); }};
}

Kind options(const std::string& name, const std::function<void(OwnerOptions&)>& change) {
  return {.name = name, .set_up = [change](const Place&, OwnerOptions& how) { change(how); }};
}

void by_prefix(OwnerOptions& how) {
  how.records.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(4));
}

void flush(Owner& owner, const Place& /*place*/) { owner.flush(); }

// Returns the same kind, with everything from the log moved to tables.
Kind flushed(Kind kind) {
  kind.also = flush;
  return kind;
}

Kind refused(Kind kind, const std::string& reason) {
  kind.reading_refused = kind.writing_refused = kind.following_refused = reason;
  return kind;
}

Kind refused_to_write(Kind kind, const std::string& reason) {
  kind.writing_refused = reason;
  return kind;
}

void add_transactions(std::vector<Kind>& kinds) {
  kinds.push_back(transactions("TransactionDB", rocksdb::WRITE_COMMITTED, false));
  kinds.push_back(two_phases("two phases"));
  kinds.push_back(flushed(two_phases("two phases, flushed")));
  kinds.push_back(refused_to_write(with_pending(two_phases("two phases, one pending")),
                                   "a transaction that is prepared"));
  Kind rolled_back = two_phases("two phases, one rolled back");
  rolled_back.also = [](Owner& owner, const Place&) {
    expect_ok(in_transaction(owner.db(), owner.records(), {{key(1), "undone"}}, true, roll_back));
  };
  kinds.push_back(rolled_back);
  kinds.push_back(refused(two_phases("write-prepared", rocksdb::WRITE_PREPARED), "WritePrepared"));
  kinds.push_back(
      refused(two_phases("write-unprepared", rocksdb::WRITE_UNPREPARED), "WriteUnprepared"));
  kinds.push_back(
      {.name = "OptimisticTransactionDB", .set_up = [](const Place&, OwnerOptions& how) {
         how.open = [](const OwnerOptions& own, const std::string& path, const auto& families,
                       auto* handles, DB** db) {
           rocksdb::OptimisticTransactionDB* opened = nullptr;
           const Status status =
               rocksdb::OptimisticTransactionDB::Open(own.db, path, families, handles, &opened);
           *db = opened;
           return status;
         };
       }});
  kinds.push_back(options("allow_2pc alone", [](OwnerOptions& how) { how.db.allow_2pc = true; }));
}

void add_values(std::vector<Kind>& kinds) {
  Kind blobs = options("blob files", [](OwnerOptions& how) {
    how.records.enable_blob_files = true;
    how.records.min_blob_size = 0;
  });
  blobs.following_refused = "blob files";
  kinds.push_back(blobs);
  Kind with_ttl = options("DBWithTTL", [](OwnerOptions& how) {
    how.open = [](const OwnerOptions& own, const std::string& path, const auto& families,
                  auto* handles, DB** db) {
      rocksdb::DBWithTTL* opened = nullptr;
      const Status status =
          rocksdb::DBWithTTL::Open(own.db, path, families, handles, &opened, {1'000'000}, false);
      *db = opened;
      return status;
    };
    how.read = [](DB& db, OwnerOptions::Handle family) {
      return read_all(db, family, {}, plain_value);
    };
  });
  kinds.push_back(refused(with_ttl, "DBWithTTL"));
  Kind wide{.name = "wide columns", .also = [](Owner& owner, const Place&) {
              expect_ok(owner.db().PutEntity({}, owner.records(), "wide",
                                             {{"", "plain"}, {"a", "1"}, {"b", "2"}}));
            }};
  wide.found_when_read = true;
  kinds.push_back(refused(wide, "wide columns"));
  wide.name = "wide columns, flushed";
  const auto put_wide = wide.also;
  wide.also = [put_wide](Owner& owner, const Place& place) {
    put_wide(owner, place);
    owner.flush();
  };
  kinds.push_back(refused(wide, "wide columns"));
  Kind timestamps = options("timestamps of the user", [](OwnerOptions& how) {
    how.records.comparator = rocksdb::BytewiseComparatorWithU64Ts();
    static const std::string time("\x01\0\0\0\0\0\0\0", 8);
    static const Slice time_slice = time;
    how.write = [](DB& db, OwnerOptions::Handle family, const Records& records) {
      Status status;
      for (const auto& [one, value] : records) {
        if (status.ok()) status = db.Put({}, family, one, time, value);
      }
      return status;
    };
    how.read = [](DB& db, OwnerOptions::Handle family) {
      rocksdb::ReadOptions reading;
      reading.timestamp = &time_slice;
      return read_all(db, family, reading, plain_value);
    };
  });
  kinds.push_back(refused(timestamps, "leveldb.BytewiseComparator.u64ts"));
  kinds.push_back({.name = "ranges deleted", .also = [](Owner& owner, const Place&) {
                     expect_ok(owner.db().DeleteRange({}, owner.records(), key(3), key(9)));
                   }});
  kinds.push_back({.name = "single deletions", .also = [](Owner& owner, const Place&) {
                     expect_ok(owner.db().SingleDelete({}, owner.records(), key(4)));
                   }});
}

void add_families(std::vector<Kind>& kinds) {
  kinds.push_back(options("several column families", [](OwnerOptions& how) {
    how.others = {{"one", {}}, {"two", {}}};
  }));
  kinds.push_back(
      {.name = "a column family that was dropped", .also = [](Owner& owner, const Place&) {
         OwnerOptions::Handle dropped = nullptr;
         expect_ok(owner.db().CreateColumnFamily({}, "dropped", &dropped));
         expect_ok(owner.db().Put({}, dropped, "a", "1"));
         expect_ok(owner.db().DropColumnFamily(dropped));
         expect_ok(owner.db().DestroyColumnFamilyHandle(dropped));
       }});
  const auto beside = [](const std::string& name, const ColumnFamilyOptions& other, bool merges) {
    Kind kind = options(name, [other](OwnerOptions& how) { how.others = {{"other", other}}; });
    kind.also = [merges](Owner& owner, const Place&) {
      const OwnerOptions::Handle family = owner.family("other");
      expect_ok(owner.db().Put({}, family, "x", "long value"));
      if (merges) expect_ok(owner.db().Merge({}, family, "x", "short"));
      expect_ok(owner.db().Flush({}, family));
    };
    return kind;
  };
  kinds.push_back(beside("beside another order", ordered_by(by_end()), false));
  kinds.push_back(
      beside("beside the reverse order", ordered_by(rocksdb::ReverseBytewiseComparator()), false));
  kinds.push_back(beside("beside merges of an unknown operator", merged_by_longest(), true));
  Kind in_log = beside("beside such merges in the log", merged_by_longest(), true);
  const auto with_merges = in_log.also;
  in_log.also = [with_merges](Owner& owner, const Place& place) {
    with_merges(owner, place);
    expect_ok(owner.db().Merge({}, owner.family("other"), "x", "in the log"));
  };
  kinds.push_back(refused_to_write(in_log, "owner.longest"));
  Kind order_in_log = beside("beside another order in the log", ordered_by(by_end()), false);
  order_in_log.also = [](Owner& owner, const Place&) {
    expect_ok(owner.db().Put({}, owner.family("other"), "ab", "1"));
    expect_ok(owner.db().Put({}, owner.family("other"), "ba", "2"));
  };
  kinds.push_back(refused_to_write(order_in_log, "owner.by-end"));
  Kind asked{.name = "one of several column families, beside an unknown order of the default",
             .set_up = [](const Place&, OwnerOptions& how) {
               how.family = "asked";
               how.others = {{rocksdb::kDefaultColumnFamilyName, ordered_by(by_end())}};
             }};
  asked.options = [](const Place&) { return std::vector<std::string>{"-F", "asked"}; };
  kinds.push_back(asked);
}

void add_operators(std::vector<Kind>& kinds) {
  const auto ordered = [](const std::string& name, const rocksdb::Comparator* order) {
    return options(name, [order](OwnerOptions& how) { how.records.comparator = order; });
  };
  kinds.push_back(refused(ordered("reverse order", rocksdb::ReverseBytewiseComparator()),
                          "rocksdb.ReverseBytewiseComparator"));
  kinds.push_back(refused(ordered("another order", by_end()), "owner.by-end"));
  Kind no_options = ordered("another order, without OPTIONS", by_end());
  no_options.afterwards = [](const Place& place, OwnerOptions&) { remove_options(place); };
  kinds.push_back(refused(no_options, "owner.by-end"));
  Kind unused = options("an unknown merge operator without merges", [](OwnerOptions& how) {
    how.records.merge_operator = std::make_shared<Longest>();
  });
  unused.also = flush;
  kinds.push_back(unused);
  Kind used = unused;
  used.name = "an unknown merge operator with merges";
  used.also = [](Owner& owner, const Place&) {
    expect_ok(owner.db().Merge({}, owner.records(), key(1), "a merged value of some length"));
    owner.flush();
  };
  kinds.push_back(refused(used, "owner.longest"));
  used.name = "an unknown merge operator with merges in the log";
  used.also = [](Owner& owner, const Place&) {
    owner.flush();
    expect_ok(owner.db().Merge({}, owner.records(), key(1), "a merged value of some length"));
  };
  kinds.push_back(refused(used, "owner.longest"));
  Kind known = options("a merge operator of RocksDB", [](OwnerOptions& how) {
    expect_ok(
        rocksdb::MergeOperator::CreateFromString({}, "stringappend", &how.records.merge_operator));
  });
  known.also = [](Owner& owner, const Place&) {
    expect_ok(owner.db().Merge({}, owner.records(), key(1), "more"));
  };
  kinds.push_back(known);
  known.name = "a merge operator of RocksDB, in tables";
  const auto merge = known.also;
  known.also = [merge](Owner& owner, const Place& place) {
    merge(owner, place);
    owner.flush();
    merge(owner, place);
  };
  kinds.push_back(known);
}

void add_tables(std::vector<Kind>& kinds) {
  kinds.push_back(ingested("a file taken in", false, false));
  kinds.push_back(ingested("a file taken in over records", true, false));
  kinds.push_back(ingested("a file taken in over records, numbered in the file", true, true));
  kinds.push_back(options("a prefix extractor", [](OwnerOptions& how) {
    by_prefix(how);
    how.records.memtable_prefix_bloom_size_ratio = 0.1;
    block_based(how,
                [](auto& table) { table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10)); });
  }));
  kinds.push_back(options("a hash index", [](OwnerOptions& how) {
    by_prefix(how);
    block_based(
        how, [](auto& table) { table.index_type = rocksdb::BlockBasedTableOptions::kHashSearch; });
  }));
  kinds.push_back(options("a hash of prefixes in memory", [](OwnerOptions& how) {
    by_prefix(how);
    how.db.allow_concurrent_memtable_write = false;
    how.records.memtable_factory.reset(rocksdb::NewHashSkipListRepFactory(100));
  }));
  kinds.push_back(refused(options("plain tables",
                                  [](OwnerOptions& how) {
                                    by_prefix(how);
                                    how.db.allow_mmap_reads = true;
                                    how.records.table_factory.reset(
                                        rocksdb::NewPlainTableFactory());
                                  }),
                          "PlainTable"));
  kinds.push_back(options("plain tables in order", [](OwnerOptions& how) {
    how.db.allow_mmap_reads = true;
    rocksdb::PlainTableOptions table;
    table.hash_table_ratio = 0;
    how.records.table_factory.reset(rocksdb::NewPlainTableFactory(table));
  }));
  kinds.push_back(refused(options("cuckoo tables",
                                  [](OwnerOptions& how) {
                                    how.db.allow_mmap_reads = true;
                                    how.records.table_factory.reset(
                                        rocksdb::NewCuckooTableFactory());
                                  }),
                          "CuckooTable"));
  kinds.push_back(blocks("a partitioned index", [](auto& table) {
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    table.partition_filters = true;
    table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10));
  }));
  kinds.push_back(blocks("a hash in data blocks", [](auto& table) {
    table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  }));
  for (const std::uint32_t version : {0U, 2U, 3U, 4U, 5U}) {
    kinds.push_back(blocks("tables of format " + std::to_string(version),
                           [version](auto& table) { table.format_version = version; }));
  }
  for (const auto sum : {rocksdb::kNoChecksum, rocksdb::kxxHash64, rocksdb::kXXH3}) {
    kinds.push_back(blocks("tables with checksums of kind " + std::to_string(sum),
                           [sum](auto& table) { table.checksum = sum; }));
  }
  for (const rocksdb::CompressionType type : rocksdb::GetSupportedCompressions()) {
    kinds.push_back(options("compression " + std::to_string(type),
                            [type](OwnerOptions& how) { how.records.compression = type; }));
  }
  kinds.push_back(options("universal compaction", [](OwnerOptions& how) {
    how.records.compaction_style = rocksdb::kCompactionStyleUniversal;
  }));
  kinds.push_back(options("FIFO compaction", [](OwnerOptions& how) {
    how.records.compaction_style = rocksdb::kCompactionStyleFIFO;
    how.db.max_open_files = -1;
  }));
}

void add_logs(std::vector<Kind>& kinds) {
  kinds.push_back({.name = "writes past the log", .also = [](Owner& owner, const Place&) {
                     rocksdb::WriteOptions past;
                     past.disableWAL = true;
                     expect_ok(owner.db().Put(past, owner.records(), key(5), "past the log"));
                     owner.flush();
                   }});
  kinds.push_back(options("atomic flush", [](OwnerOptions& how) {
    how.db.atomic_flush = true;
    how.others = {{"one", {}}};
  }));
  kinds.push_back(options("manual flushes of the log",
                          [](OwnerOptions& how) { how.db.manual_wal_flush = true; }));
  kinds.push_back(options("a compressed log",
                          [](OwnerOptions& how) { how.db.wal_compression = rocksdb::kZSTD; }));
  kinds.push_back(options("recycled logs", [](OwnerOptions& how) {
    how.db.recycle_log_file_num = 4;
    how.db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  }));
  kinds.push_back(options("an archive of logs", [](OwnerOptions& how) {
    how.db.WAL_ttl_seconds = 3600;
    how.db.WAL_size_limit_MB = 10;
  }));
  kinds.push_back(options(
      "tracked logs", [](OwnerOptions& how) { how.db.track_and_verify_wals_in_manifest = true; }));
  kinds.push_back(
      options("pipelined writes", [](OwnerOptions& how) { how.db.enable_pipelined_write = true; }));
  kinds.push_back(
      options("unordered writes", [](OwnerOptions& how) { how.db.unordered_write = true; }));
  kinds.push_back(
      options("two queues of writes", [](OwnerOptions& how) { how.db.two_write_queues = true; }));
  kinds.push_back(options("no flush in recovery",
                          [](OwnerOptions& how) { how.db.avoid_flush_during_recovery = true; }));
}

void add_paths(std::vector<Kind>& kinds) {
  const auto log_beside = [](const Place& place, OwnerOptions& how) {
    how.db.wal_dir = place.beside("wal");
  };
  Kind outside{.name = "a log outside", .set_up = log_beside, .closed_paths = false};
  kinds.push_back(refused(outside, "--wal-dir"));
  outside.name = "a log outside that is given";
  outside.options = [](const Place& place) {
    return std::vector<std::string>{"--wal-dir", place.beside("wal")};
  };
  kinds.push_back(outside);
  kinds.push_back({.name = "a log in a folder of its own within",
                   .set_up = [](const Place& place,
                                OwnerOptions& how) { how.db.wal_dir = place.directory() + "/wal"; },
                   .closed_paths = false});
  Kind checkpoint{.name = "a checkpoint", .afterwards = become_checkpoint};
  kinds.push_back(checkpoint);
  checkpoint.name = "a checkpoint with its original's log in OPTIONS";
  checkpoint.set_up = log_beside;
  // Its owner has seen to it that the log is in the checkpoint.
  checkpoint.closed_paths = false;
  kinds.push_back(refused(checkpoint, "--wal-dir"));
  checkpoint.name = "a checkpoint that is said to have its own log";
  checkpoint.options = [](const Place& place) {
    return std::vector<std::string>{"--wal-dir", place.directory()};
  };
  kinds.push_back(checkpoint);
  kinds.push_back({.name = "a backup that was restored", .afterwards = become_restored_backup});
  Kind split{.name = "tables in several paths",
             .set_up =
                 [](const Place& place, OwnerOptions& how) {
                   how.db.db_paths = {{place.beside("fast"), 1}, {place.beside("slow"), 1U << 30}};
                 },
             .also = flush,
             .closed_paths = false};
  kinds.push_back(refused(split, "--db-path"));
  split.name = "tables in several paths that are given";
  split.options = [](const Place& place) {
    return std::vector<std::string>{"--db-path", place.beside("fast") + ":1", "--db-path",
                                    place.beside("slow") + ":1G"};
  };
  kinds.push_back(split);
  Kind family_paths{.name = "a column family with a path of its own",
                    .set_up =
                        [](const Place& place, OwnerOptions& how) {
                          how.records.cf_paths = {{place.beside("family"), 1U << 30}};
                        },
                    .also = flush,
                    .closed_paths = false};
  kinds.push_back(refused(family_paths, "cf_paths"));
  kinds.push_back({.name = "messages outside", .set_up = [](const Place& place, OwnerOptions& how) {
                     how.db.db_log_dir = place.beside("messages");
                   }});
}

void add_surroundings(std::vector<Kind>& kinds) {
  kinds.push_back({.name = "no OPTIONS",
                   .afterwards = [](const Place& place, OwnerOptions&) { remove_options(place); }});
  kinds.push_back({.name = "OPTIONS of RocksDB 6",
                   .afterwards =
                       [](const Place& place, OwnerOptions&) {
                         rewrite_options(place.directory(), [&](std::string text) {
                           return as_of_6(std::move(text), place.directory() + "/");
                         });
                       },
                   .closed_paths = false});
  Kind copy_of_6{.name = "OPTIONS of RocksDB 6 that were copied",
                 .afterwards = [](const Place& place, OwnerOptions&) {
                   fs::copy(place.directory(), place.beside("original"));
                   rewrite_options(place.directory(), [&](std::string text) {
                     return as_of_6(std::move(text), place.beside("original"));
                   });
                 }};
  kinds.push_back(refused(copy_of_6, "--wal-dir"));
  kinds.push_back(
      {.name = "OPTIONS of a later RocksDB", .afterwards = [](const Place& place, OwnerOptions&) {
         rewrite_options(place.directory(), [](const std::string& text) {
           return std::regex_replace(std::regex_replace(text, std::regex("rocksdb_version=[0-9.]+"),
                                                        "rocksdb_version=99.1.0"),
                                     std::regex("\\[DBOptions\\]\n"),
                                     "[DBOptions]\n  not_known_yet=17\n");
         });
       }});
  kinds.push_back({.name = "a symbolic link",
                   .afterwards =
                       [](const Place& place, OwnerOptions&) {
                         fs::rename(place.directory(), place.beside("elsewhere"));
                         fs::create_directory_symlink(place.beside("elsewhere"), place.directory());
                       },
                   .closed_paths = false});
  kinds.push_back(
      {.name = "files that nobody may write", .afterwards = [](const Place& place, OwnerOptions&) {
         for (const auto& file : fs::directory_iterator(place.directory())) {
           if (file.path().extension() != ".sst") continue;
           fs::permissions(file, fs::perms::owner_read);
         }
       }});
  kinds.push_back(options("few open files", [](OwnerOptions& how) { how.db.max_open_files = 20; }));
  kinds.push_back(options("statistics in the directory",
                          [](OwnerOptions& how) { how.db.persist_stats_to_disk = true; }));
  kinds.push_back(
      options("files read by mmap", [](OwnerOptions& how) { how.db.allow_mmap_reads = true; }));
  kinds.push_back(
      options("files written by mmap", [](OwnerOptions& how) { how.db.allow_mmap_writes = true; }));
  kinds.push_back(options("direct reads and writes", [](OwnerOptions& how) {
    how.db.use_direct_reads = true;
    how.db.use_direct_io_for_flush_and_compaction = true;
  }));
  kinds.push_back(options("an identity in the MANIFEST",
                          [](OwnerOptions& how) { how.db.write_dbid_to_manifest = true; }));
  Kind encrypted = options("encryption", [](OwnerOptions& how) {
    std::shared_ptr<rocksdb::Env> env(rocksdb::NewEncryptedEnv(
        rocksdb::Env::Default(),
        rocksdb::EncryptionProvider::NewCTRProvider(std::make_shared<Flipped>())));
    how.db.env = env.get();
    how.kept.push_back(env);
  });
  kinds.push_back(refused(encrypted, "encrypted"));
}

}  // namespace

void expect_ok(const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); }

Records first_records() {
  Records records;
  for (int n = 0; n < 40; ++n) records[key(n)] = "value " + std::to_string(n);
  return records;
}

Records later_records() {
  return {{key(7), "written later"}, {key(100), "written later"}, {"zzzz", "written later"}};
}

OwnerOptions::OwnerOptions()
    : open([](const OwnerOptions& own, const std::string& path, const Descriptors& families,
              Handles* handles,
              DB** opened) { return DB::Open(own.db, path, families, handles, opened); }),
      write(put_all),
      read(read_in_order) {
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.avoid_flush_during_shutdown = true;  // so that something stays in the log
  // RocksDB reserves space for as much as it may write: little here, of which there are many.
  db.manifest_preallocation_size = 4096;
  records.write_buffer_size = std::size_t{256} << 10;
}

Owner::Owner(const std::string& directory, OwnerOptions owner) : owner_(std::move(owner)) {
  OwnerOptions::Descriptors families = {{owner_.family, owner_.records}};
  for (const auto& [name, options] : owner_.others) families.emplace_back(name, options);
  DB* opened = nullptr;
  const Status status = owner_.open(owner_, directory, families, &handles_, &opened);
  EXPECT_TRUE(status.ok()) << status.ToString();
  db_.reset(opened);
}

Owner::~Owner() {
  for (const OwnerOptions::Handle handle : handles_)
    expect_ok(db_->DestroyColumnFamilyHandle(handle));
}

OwnerOptions::Handle Owner::family(const std::string& name) {
  return *std::find_if(handles_.begin(), handles_.end(),
                       [&](const OwnerOptions::Handle each) { return each->GetName() == name; });
}

void Owner::write(const Records& records) {
  expect_ok(owner_.write(*db_, this->records(), records));
  if (owner_.db.manual_wal_flush) expect_ok(db_->FlushWAL(false));
}

void Owner::flush() {
  for (const OwnerOptions::Handle handle : handles_) expect_ok(db_->Flush({}, handle));
}

Families Owner::read() {
  Families families;
  for (const OwnerOptions::Handle handle : handles_) {
    families[handle->GetName()] =
        handle == records() ? owner_.read(*db_, handle) : read_in_order(*db_, handle);
  }
  if (owner_.pending) families["(prepared transactions)"] = owner_.pending(*db_);
  return families;
}

const std::vector<Kind>& directory_kinds() {
  static const std::vector<Kind> kinds = [] {
    std::vector<Kind> all = {{.name = "plain"}, flushed({.name = "plain, flushed"})};
    add_transactions(all);
    add_values(all);
    add_families(all);
    add_operators(all);
    add_tables(all);
    add_logs(all);
    add_paths(all);
    add_surroundings(all);
    return all;
  }();
  return kinds;
}

}  // namespace semel
