// RocksStore: one column family of a RocksDB directory as an OrderedStore.
//
//   auto store = RocksStore::open("/data/records", {.create = true});
//   auto value = (*store)->get("key");
//
// Contract  As in ordered_store.h. A directory is opened with the options of its OPTIONS file. The
//           file is not changed, so that the owner finds it as it was. RocksDB's own log is not
//           written. A new OPTIONS file is made for a new directory, a new column family or a new
//           merger. raw().SetOptions() lasts until the store is closed.
//           Places: no file outside of the directory is changed, whatever OPTIONS say, because a
//           copy has those of its original. Settings::wal_dir and db_paths are the exceptions.
//           Modes: read_write is for one process at a time. read_only shows the state at opening,
//           even of a directory in use, as long as its owner does not delete files. secondary
//           follows a directory in use, a step with each catch_up().
//           Changes: ingested files (by ingest() or by others), and records dropped by a compaction
//           filter or by FIFO compaction, are reported as the ranges of their files. Writes to
//           raw() are reported by changes_since() after the next opening, not before.
//           Positions: position() flushes, and delays writers meanwhile. It is for checkpoints.
//           changes_since() reports single keys as far as the write-ahead log goes back, of which
//           `log_archive_bytes` are kept. Before that it reports the ranges of files that came or
//           went. It answers Errc::gap for another database or column family, or for an older state
//           of this one.
// Merge     A column family that was once opened with a merger is opened with one of that name.
//           Merges are made by readers, and by RocksDB when it flushes, compacts or opens. Damage
//           shows then, as Errc::corrupt. After RocksDB has found damage, the store takes no more
//           writes, and the directory may open only in read_only.
// Damage    A damaged directory is an error, at opening or when the damaged records are read.
//           RocksDB would open many of them with part of the records. One limit:
//           if a process was killed, nobody notices when records at the end of its log are cut off
//           later.
// Cost      The cost of a RocksDB write, and a shared lock.
// Threads   As in ordered_store.h. Threads of RocksDB report changes that did not come through us.
// Format    docs/formats/rocksdb_position_v1.md. The checkpoint is the file SEMEL-INDEX. A writer
//           leaves docs/formats/rocksdb_seal_v1.md in the directory.
// Error     Errors have the message of RocksDB, which may name a file, and say what to do about it.
//           At opening:
//           io           the directory is damaged, or RocksDB failed
//           busy         another process has the directory open
//           invalid      it is no database, or has no such column family
//           outside      its log or tables are outside of the directory, and Settings do not allow
//                        that, or it cannot be
//           unsupported  keys are not in the order of their bytes; records wait for a merge
//                        operator that is neither RocksDB's own nor of the merger's name; a
//                        transaction is prepared (read_write); values are those of DBWithTTL
//           When reading: Errc::unsupported for a record with wide columns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "semel/core/api.h"
#include "semel/store/ordered_store.h"

namespace rocksdb {
class DB;
}

namespace semel {

class SEMEL_API RocksStore final : public OrderedStore {
 public:
  enum class Mode : std::uint8_t { read_write, read_only, secondary };
  struct Path {
    std::string path;
    std::uint64_t target_bytes = UINT64_MAX;  // bytes of tables that fit here
  };
  struct Settings {
    Mode mode = Mode::read_write;
    // Creates the directory or the column family if it does not exist. Only in read_write.
    bool create = false;
    // Makes every write durable before it returns. Otherwise a power failure may lose the last
    // writes; a crash of the process loses none.
    bool sync = false;
    std::string column_family = "default";
    std::optional<std::uint64_t> write_buffer_bytes = {};  // nullopt: as the directory has it
    std::uint64_t log_archive_bytes = std::uint64_t{64} << 20;
    const Merger* merger = nullptr;  // outlives the store; its name has letters, digits and dots
    // Places outside of the directory are used only if they are given here. They are locked while
    // the store is open.
    std::optional<std::string> wal_dir = {};  // of the log; may be the directory itself
    std::vector<Path> db_paths = {};          // of the tables, as the owner gives them to RocksDB
  };

  static Result<std::unique_ptr<RocksStore>> open(const std::string& directory,
                                                  const Settings& settings);
  // Returns the names of the column families. Errors: Errc::invalid if there is no database.
  static Result<std::vector<std::string>> column_families(const std::string& directory);
  // Returns the merge operator's name in the OPTIONS file for a column family; empty if it has
  // none.
  static std::string merge_operator(const std::string& directory, const std::string& column_family);
  ~RocksStore() override;

  Result<std::optional<std::string>> get(std::string_view key) const override;
  Result<void> write(std::span<const RecordWrite> writes) override;
  Result<void> remove_range(const KeyRange& range) override;
  Result<void> sync() override;
  Result<std::unique_ptr<Cursor>> cursor() const override;
  Result<void> update(std::span<const std::string_view> keys, const Become& become) override;
  void observe(ChangeObserver* observer) override;
  // Errors: Errc::unsupported except in read_write.
  Result<Bytes> position() const override;
  // Errors: Errc::gap in secondary.
  Result<void> changes_since(ByteView position, ChangeObserver& told) const override;
  Result<void> save_checkpoint(ByteView bytes) override;
  Result<std::optional<Bytes>> load_checkpoint() const override;

  // Closes the directory. Everything written is on disk then, and nothing is in the log. The
  // destructor does the same and ignores errors. REQUIRES: no other call comes after it.
  Result<void> close();
  // Returns the last error of RocksDB, if there was one.
  Result<void> health() const;
  // Copies table files that SstFileWriter wrote into the store.
  Result<void> ingest(const std::vector<std::string>& files);
  // Catches up with the writes of the owner. Secondary only.
  Result<void> catch_up();
  // Returns true if RocksDB has flushed or compacted since the last checkpoint or, without one,
  // since the opening. From then on, following an old checkpoint costs more, and a new one costs
  // little.
  bool flushed_since_checkpoint() const;

  rocksdb::DB& raw() const;

 private:
  struct SEMEL_LOCAL Body;
  class SEMEL_LOCAL IteratorCursor;
  explicit RocksStore(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace semel
