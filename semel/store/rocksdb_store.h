// RocksStore: one column family of a RocksDB directory as an OrderedStore.
//
// Contract  As in ordered_store.h. A directory is opened with the options that its OPTIONS file
//           names, and the file stays as it is, so that its owner finds it as it was. RocksDB's own
//           log is not written. A new OPTIONS file is made for a new directory, a new column family
//           or a merger that is new. raw().SetOptions() lasts until the store is closed.
// Places    No file outside of the directory is changed, whatever OPTIONS say: a copy has those of
//           its original. Settings::wal_dir and db_paths are the exceptions.
// Modes     read_write: for one process at a time. read_only: the state at opening, even of a
//           directory in use, as long as its owner does not delete files. secondary: follows a
//           directory in use, a step with each catch_up().
// Changes   beyond write, update and remove_range: files taken in (by ingest() or past us), records
//           dropped by a compaction filter or by FIFO compaction are told as the ranges of their
//           files. Writes to raw() are told by changes_since() after the next opening, not before.
// Position  position() flushes, and holds up writers meanwhile: it is for checkpoints.
//           changes_since() tells single keys as far as the write-ahead log goes back, of which
//           `log_archive_bytes` are kept; beyond, the ranges of files that came or went. It answers
//           Errc::gap for another database or column family, or an older state of this one.
// Merges    A column family that was once opened with a merger is opened with one of that name.
//           Merges are made by whoever reads, and by RocksDB when it flushes, compacts or opens;
//           damage comes to light then, as Errc::corrupt. Once RocksDB has met it, the store takes
//           no more writes, and the directory may open in read_only alone.
// Damage    A directory that is damaged is an error, at opening or when the damaged records are
//           read. RocksDB would open many of them with a part of the records (rocksdb_damage.h).
//           One limit is left: if a process was killed, records at the end of its log that were cut
//           off later are not missed.
// Cost      A write through us costs what it costs RocksDB, and a shared lock.
// Threads   As in ordered_store.h. Changes past us are told by threads of RocksDB.
// Format    docs/formats/rocksdb_position_v1.md; the checkpoint is the file SEMEL-INDEX. Writers
//           leave docs/formats/rocksdb_seal_v1.md in the directory.
// Error     at opening: Errc::io if it is damaged; Errc::busy if another process has the directory
//           open; Errc::invalid if it is no database, or has no such column family;
//           Errc::outside if its log or tables are outside of the directory, and that was not said
//           or cannot be so; Errc::unsupported if keys are in another order than that of their bytes,
//           if records wait for a merge operator that is neither RocksDB's own nor of the merger's
//           name, if a transaction is prepared (read_write), or if values are those of DBWithTTL.
//           when reading: Errc::unsupported for a record with wide columns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "semel/store/ordered_store.h"

namespace rocksdb {
class DB;
}

namespace semel {

class RocksStore final : public OrderedStore {
 public:
  enum class Mode : std::uint8_t { read_write, read_only, secondary };
  struct Path {
    std::string path;
    std::uint64_t target_bytes = UINT64_MAX;  // how much of the tables it is to take
  };
  struct Settings {
    Mode mode = Mode::read_write;
    bool create = false;  // the directory or the column family, if there is none; read_write only
    bool sync = false;    // every write is on disk when it returns; otherwise a loss of power (not
                          // of the process) may cost the last ones
    std::string column_family = "default";
    std::optional<std::uint64_t> write_buffer_bytes = {};  // nullopt: as the directory has it
    std::uint64_t log_archive_bytes = std::uint64_t{64} << 20;
    const Merger* merger = nullptr;  // outlives the store; its name has letters, digits and dots
    // Places outside of the directory, which are used only if they are given here. They are locked
    // meanwhile.
    std::optional<std::string> wal_dir = {};  // of the log; may be the directory itself
    std::vector<Path> db_paths = {};          // of the tables, as the owner gives them to RocksDB
  };

  // `why`, if given, takes in case of an error RocksDB's own words, or which file is damaged and
  // what to do.
  static Result<std::unique_ptr<RocksStore>> open(const std::string& directory,
                                                  const Settings& settings,
                                                  std::string* why = nullptr);
  // Errc::invalid if there is no database.
  static Result<std::vector<std::string>> column_families(const std::string& directory);
  // Returns the name of the merge operator that the OPTIONS file has for a column family; empty if
  // it has none.
  static std::string merge_operator(const std::string& directory, const std::string& column_family);
  ~RocksStore() override;

  Result<std::optional<std::string>> get(std::string_view key) const override;
  Result<void> write(std::span<const Write> writes) override;
  Result<void> remove_range(const KeyRange& range) override;
  Result<void> sync() override;
  Result<std::unique_ptr<Cursor>> cursor() const override;
  Result<void> update(std::span<const std::string_view> keys, const Become& become) override;
  void observe(ChangeObserver* observer) override;
  // Errc::unsupported but in read_write.
  Result<Bytes> position() const override;
  // Errc::gap in secondary.
  Result<void> changes_since(ByteView position, ChangeObserver& told) const override;
  Result<void> save_checkpoint(ByteView bytes) override;
  Result<std::optional<Bytes>> load_checkpoint() const override;

  // Closes the directory, with all that was written on disk and nothing in the log. The destructor
  // does the same, and keeps errors to itself. REQUIRES: no other call comes after it.
  Result<void> close();
  // What RocksDB said of the last error, which may name the file, and what to do; empty before the
  // first.
  std::string problem() const;
  // Takes in table files that SstFileWriter wrote. They are copied.
  Result<void> ingest(const std::vector<std::string>& files);
  // Secondary only: brings this up to what its owner has written.
  Result<void> catch_up();
  // True if RocksDB has flushed or compacted since the last checkpoint, or since the opening: from
  // now on an old checkpoint costs more to follow, and a new one costs little.
  bool flushed_since_checkpoint() const;

  rocksdb::DB& raw() const;

 private:
  struct Body;
  class IteratorCursor;
  explicit RocksStore(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace semel
