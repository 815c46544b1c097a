#include "semel/store/internal/rocksdb_plan.h"

#include <rocksdb/comparator.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/table_properties.h>
#include <rocksdb/utilities/options_util.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "semel/store/internal/rocksdb_log_contents.h"
#include "semel/store/internal/rocksdb_merge.h"
#include "semel/store/internal/rocksdb_stand_in.h"
#include "semel/store/internal/rocksdb_status.h"

namespace semel::store_internal {
namespace {

namespace fs = std::filesystem;
using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

// Without this, RocksDB moves its log of messages aside before it checks whether the directory is
// in use. The owner would lose its log.
class NoLog final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

Error refusal(std::string words, Errc code = Errc::unsupported) { return {code, std::move(words)}; }

// RocksDB would open many damaged databases without an error, with only part of the records.
Result<void> sound_unless(const std::string& damage) {
  if (damage.empty()) return {};
  return Error{Errc::io, damage};
}

// Returns the name in a value of an OPTIONS file: NAME, or {id=NAME;option=value}.
std::string name_in(const std::string& value) {
  constexpr std::string_view kDescribed = "{id=";
  if (!value.starts_with(kDescribed)) return value;
  const std::size_t end = value.find_first_of(";}", kDescribed.size());
  return value.substr(kDescribed.size(), end - kDescribed.size());
}

bool has_log(const std::string& directory) {
  const std::vector<std::string> logs = logs_of(directory);
  std::error_code ignored;
  return std::any_of(logs.begin(), logs.end(),
                     [&](const std::string& log) { return fs::file_size(log, ignored) > 0; });
}

// Returns true if tables hold merges, or may do so.
Result<bool> has_merged_tables(rocksdb::DB& db, ColumnFamilyHandle* handle) {
  rocksdb::TablePropertiesCollection tables;
  const Status status = db.GetPropertiesOfAllTables(handle, &tables);
  if (!status.ok()) return error_of(status);
  return std::any_of(tables.begin(), tables.end(), [](const auto& table) {
    bool counted = false;
    return rocksdb::GetMergeOperands(table.second->user_collected_properties, &counted) > 0 ||
           !counted;
  });
}

bool has_unflushed_records(rocksdb::DB& db, ColumnFamilyHandle* handle) {
  std::uint64_t active = 0;
  std::uint64_t waiting = 0;
  const bool known =
      db.GetIntProperty(handle, rocksdb::DB::Properties::kNumEntriesActiveMemTable, &active) &&
      db.GetIntProperty(handle, rocksdb::DB::Properties::kNumEntriesImmMemTables, &waiting);
  return !known || active + waiting > 0;
}

}  // namespace

RocksPlan::RocksPlan(std::string directory, const RocksStore::Settings& settings)
    : directory_(std::move(directory)), settings_(settings), log_directory_(directory_) {}
RocksPlan::~RocksPlan() = default;

const std::string& RocksPlan::log_directory() const { return log_directory_; }

ColumnFamilyDescriptor& RocksPlan::asked() {
  return *std::find_if(families.begin(), families.end(),
                       [&](const ColumnFamilyDescriptor& one) { return is_asked(one.name); });
}

Result<void> RocksPlan::make() {
  existed_ = fs::exists(directory_ + "/CURRENT");
  SEMEL_TRY(existed_ ? read_directory() : make_new());
  SEMEL_TRY(find_asked());
  SEMEL_TRY(refuse_values());
  for (ColumnFamilyDescriptor& one : families) {
    SEMEL_TRY(settle_order(one));
    SEMEL_TRY(settle_merger(one));
  }
  settle_the_rest();
  if (!writable()) return {};
  SEMEL_TRY(refuse_prepared());
  return look();
}

Result<void> RocksPlan::make_new() {
  if (!(settings_.create && writable())) {
    return Error{Errc::invalid, "the directory holds no RocksDB database"};
  }
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  SEMEL_TRY(sound_unless(check_empty(directory_)));
  return settle_places();
}

Result<void> RocksPlan::read_directory() {
  const DirectoryCheck checked = check_directory(directory_);
  SEMEL_TRY(sound_unless(checked.damage));
  own_ = RocksOptionsText::of_directory(directory_);
  const Status status = read_options();
  if (!status.ok()) return open_error(status);
  SEMEL_TRY(settle_places());
  return check_logs_of(checked);
}

Status RocksPlan::read_options() {
  std::vector<std::string> names;
  Status status = rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), directory_, &names);
  if (!status.ok()) return status;
  rocksdb::ConfigOptions lenient;
  lenient.ignore_unknown_options = true;
  lenient.ignore_unsupported_options = true;
  Families described;
  status = rocksdb::LoadLatestOptions(lenient, directory_, &db, &described);
  if (!status.ok() && !status.IsNotFound()) return status;
  for (const ColumnFamilyDescriptor& one : described) {
    // RocksDB skips unknown options, and would then follow pointers that it has not set.
    if (one.options.table_factory == nullptr || one.options.memtable_factory == nullptr ||
        one.options.comparator == nullptr) {
      return Status::Corruption("the OPTIONS file lacks parts of the column family " + one.name +
                                "; restore it from a copy");
    }
  }
  for (const std::string& name : names) {
    const auto found = std::find_if(described.begin(), described.end(),
                                    [&](const auto& family) { return family.name == name; });
    families.push_back(found == described.end() ? ColumnFamilyDescriptor(name, {}) : *found);
  }
  return Status::OK();
}

Result<void> RocksPlan::settle_places() {
  if (writable()) files.allow(directory_);
  db.db_log_dir.clear();  // we write no messages, and RocksDB would remove the owner's old ones
  SEMEL_TRY(settle_log());
  return settle_tables();
}

// A copy of a directory has the OPTIONS file too, which then names the log of the original. Until
// RocksDB 6.23 it always named the directory of the log.
Result<void> RocksPlan::settle_log() {
  const std::string named = std::exchange(db.wal_dir, {});
  const std::string chosen = settings_.wal_dir ? *settings_.wal_dir : named;
  if (chosen.empty() || same_place(directory_, chosen)) {
    if (!writable() || file_in_use(directory_, {".log"}, OpenFor::writing).empty()) return {};
    return Error{Errc::busy, "the database is in use by another process"};
  }
  log_directory_ = db.wal_dir = chosen;
  if (within(directory_, chosen)) return {};
  if (!settings_.wal_dir) {
    return refusal("its OPTIONS file names " + shown(named) +
                       " as the place of its write-ahead log, which is outside of the directory; "
                       "that of a copy is the log of the original",
                   Errc::outside);
  }
  if (has_log(directory_)) {
    return refusal("there is a write-ahead log in the directory itself, so that in " +
                       shown(chosen) + " cannot be its own",
                   Errc::outside);
  }
  if (settings_.mode != RocksStore::Mode::secondary &&  // its owner writes the log
      !file_in_use(chosen, {".log"}, OpenFor::writing).empty()) {
    return refusal("another process writes to the write-ahead log in " + shown(chosen),
                   Errc::outside);
  }
  return use_place(chosen, "write-ahead log");
}

Result<void> RocksPlan::settle_tables() {
  const auto named_paths = [&] {
    if (!own_.db_option("db_paths").empty()) return true;
    return std::any_of(families.begin(), families.end(), [&](const ColumnFamilyDescriptor& one) {
      return !own_.family_option(one.name, "cf_paths").empty();
    });
  };
  db.db_paths.clear();
  for (ColumnFamilyDescriptor& one : families) one.options.cf_paths.clear();
  if (settings_.db_paths.empty() && named_paths()) {
    return refusal("its OPTIONS file names paths for its table files (db_paths or cf_paths)",
                   Errc::outside);
  }
  for (const RocksStore::Path& one : settings_.db_paths) {
    db.db_paths.emplace_back(one.path, one.target_bytes);
    if (within(directory_, one.path)) continue;
    const std::string busy =
        writable() ? file_in_use(one.path, {".sst", ".blob"}, OpenFor::anything) : "";
    if (!busy.empty()) {
      return refusal("another process has " + shown(one.path + "/" + busy) + " open",
                     Errc::outside);
    }
    SEMEL_TRY(use_place(one.path, "table files"));
  }
  return {};
}

Result<void> RocksPlan::use_place(const std::string& path, const std::string& what) {
  if (!fs::is_directory(path)) {
    return refusal("the place of its " + what + ", " + shown(path) + ", is not a directory",
                   Errc::outside);
  }
  if (const std::string file = database_file_in(path); !file.empty()) {
    return refusal(
        shown(path) + " has the file " + file + ", so it is the directory of another database",
        Errc::outside);
  }
  if (settings_.mode == RocksStore::Mode::secondary) return {};  // its owner holds the lock
  std::optional<PlaceLock> lock = writable() ? PlaceLock::take(path) : PlaceLock::share(path);
  if (!lock) {
    return refusal(shown(path) + " is in use, or its " + PlaceLock::kName + " cannot be opened",
                   Errc::outside);
  }
  locks_.push_back(std::move(*lock));
  if (writable()) files.allow(path);
  return {};
}

Result<void> RocksPlan::check_logs_of(const DirectoryCheck& checked) {
  if (db.allow_mmap_writes) return {};  // zeros follow the end of the log
  const LogsCheck logs = check_logs(log_directory_, checked);
  // The log is sound up to its end. A reader of a growing log may see another end.
  db.wal_recovery_mode = writable() && !logs.torn ? rocksdb::WALRecoveryMode::kAbsoluteConsistency
                                                  : rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  return sound_unless(logs.damage);
}

Result<void> RocksPlan::find_asked() {
  if (!std::any_of(families.begin(), families.end(),
                   [&](const ColumnFamilyDescriptor& one) { return is_asked(one.name); })) {
    if (!(settings_.create && writable())) {
      return Error{Errc::invalid, "the database has no such column family"};
    }
    families.emplace_back(settings_.column_family, rocksdb::ColumnFamilyOptions());
    db.create_missing_column_families = asked_is_new_ = true;
  }
  if (writable()) return {};
  std::erase_if(families, [&](const ColumnFamilyDescriptor& one) {
    return one.name != rocksdb::kDefaultColumnFamilyName && !is_asked(one.name);
  });
  return {};
}

Result<void> RocksPlan::refuse_values() {
  const auto& options = asked().options;
  const std::string filter =
      name_in(own_.family_option(settings_.column_family, "compaction_filter_factory"));
  if (filter == "TtlCompactionFilterFactory") {
    return refusal("DBWithTTL has written it, which ends every value in a time of its own");
  }
  if (options.table_factory->IsInstanceOf("PlainTable") && options.prefix_extractor != nullptr) {
    return refusal(
        "its tables are of the kind PlainTable with prefixes, which cannot be read in "
        "the order of keys");
  }
  if (options.table_factory->IsInstanceOf("CuckooTable")) {
    return refusal("its tables are of the kind CuckooTable, which holds keys of one length alone");
  }
  return {};
}

Result<void> RocksPlan::settle_order(ColumnFamilyDescriptor& one) {
  const std::string known = one.options.comparator->Name();
  const std::string named = name_in(own_.family_option(one.name, "comparator"));
  const std::string& name = named.empty() ? known : named;
  if (is_asked(one.name)) {
    if (name == rocksdb::BytewiseComparator()->Name()) return {};
    return refusal("its keys are in the order of " + shown(name) +
                   ", which is another one than that of their bytes");
  }
  if (name == known) return {};
  orders_.push_back(stand_in_comparator(name));
  one.options.comparator = orders_.back().get();
  stand_ins_.push_back({one.name, name, true});
  return {};
}

// A column family keeps its merge operator. If the requested family has none, it gets the merger.
Result<void> RocksPlan::settle_merger(ColumnFamilyDescriptor& one) {
  constexpr std::string_view kOurs = "semel.";
  std::shared_ptr<rocksdb::MergeOperator>& present = one.options.merge_operator;
  const bool asked = is_asked(one.name);
  const std::string name = present != nullptr
                               ? present->Name()
                               : name_in(own_.family_option(one.name, "merge_operator"));
  const Merger* const merger = settings_.merger;
  if (merger != nullptr && (name.empty() ? asked : name == merger->name())) {
    merger_is_new_ = merger_is_new_ || name.empty();
    present = merge_operator_of(*merger);
    return {};
  }
  if (merger != nullptr && asked) {
    return refusal("its merge operator is " + shown(name));
  }
  if (present != nullptr || name.empty()) return {};
  // Records of our own mergers mean more than their bytes, even if there is nothing left to merge.
  if (asked && name.starts_with(kOurs)) {
    return refusal("its records are of " + shown(name));
  }
  present = stand_in_merge_operator(name);
  stand_ins_.push_back({one.name, name, false});
  return {};
}

// Sets the memory tables, which are ours alone. Keys are found in them without prefixes.
void RocksPlan::settle_memory(ColumnFamilyDescriptor& one) {
  auto& options = one.options;
  const bool hashed = options.memtable_factory->IsInstanceOf("HashSkipListRepFactory") ||
                      options.memtable_factory->IsInstanceOf("HashLinkListRepFactory");
  if (hashed && is_asked(one.name)) prefix_ = options.prefix_extractor;
  options.memtable_factory = std::make_shared<rocksdb::SkipListFactory>();
  // Blocks larger than their buffer end the process. Their size may come from our settings, or from
  // an OPTIONS file.
  constexpr std::size_t kLeastBlocks = 8;
  if (options.arena_block_size > options.write_buffer_size / kLeastBlocks) {
    options.arena_block_size = 0;  // to follow from the buffer
  }
}

void RocksPlan::settle_the_rest() {
  auto& options = asked().options;
  if (settings_.write_buffer_bytes) options.write_buffer_size = *settings_.write_buffer_bytes;
  for (ColumnFamilyDescriptor& one : families) {
    settle_memory(one);
    if (!is_asked(one.name)) one.options.disable_auto_compactions = true;
  }
  db.env = files.env();
  if (existed_) {
    files.keep_options(
        directory_, own_,
        merger_is_new_ ? std::set<std::string>{settings_.column_family} : std::set<std::string>());
  }
  db.create_if_missing = settings_.create;
  db.info_log = std::make_shared<NoLog>();
  db.paranoid_checks = true;
  db.skip_checking_sst_file_sizes_on_db_open = false;
  db.track_and_verify_wals_in_manifest = settings_.mode != RocksStore::Mode::secondary;
  db.persist_stats_to_disk = false;
  db.recycle_log_file_num = 0;  // a log may be a hard link to the log of another directory
  if (writable() && db.WAL_ttl_seconds == 0 && db.WAL_size_limit_MB == 0) {
    db.WAL_size_limit_MB = (settings_.log_archive_bytes + (1U << 20) - 1) >> 20;
  }
}

// Refuses prepared transactions. An opening would replay them, but only a TransactionDB can end
// them.
Result<void> RocksPlan::refuse_prepared() const {
  if (!existed_ || !(db.allow_2pc || own_.empty())) return {};
  const LogContents contents = LogContents::of(logs_of(log_directory_));
  if (!contents.prepared.empty()) {
    return refusal("its write-ahead log has a transaction that is prepared, " +
                   shown(*contents.prepared.begin()) +
                   "; its owner has to commit it or to roll it back");
  }
  if (contents.complete || !db.allow_2pc) return {};
  return refusal(
      "its write-ahead log is compressed or recycled, and may have a transaction that is "
      "prepared; its owner has to flush it");
}

Result<void> RocksPlan::look() const {
  if (stand_ins_.empty()) return {};
  Families present = families;
  if (asked_is_new_) {
    std::erase_if(present, [&](const auto& one) { return is_asked(one.name); });
  }
  std::vector<ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const Status status = rocksdb::DB::OpenForReadOnly(db, directory_, present, &handles, &opened);
  if (!status.ok()) return open_error(status);
  const std::unique_ptr<rocksdb::DB> closed_again(opened);
  const Result<void> judged = judge_stand_ins(*opened, handles);
  for (ColumnFamilyHandle* const handle : handles) {
    opened->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  return judged;
}

Result<void> RocksPlan::judge_stand_ins(rocksdb::DB& opened,
                                        const std::vector<ColumnFamilyHandle*>& handles) const {
  for (const StandIn& one : stand_ins_) {
    for (ColumnFamilyHandle* const handle : handles) {
      if (handle->GetName() != one.family) continue;
      SEMEL_TRY(judge(one, opened, handle));
    }
  }
  return {};
}

Result<void> RocksPlan::judge(const StandIn& one, rocksdb::DB& opened,
                              ColumnFamilyHandle* handle) const {
  const bool asked = is_asked(one.family);
  if (!asked && !writable()) return {};  // nobody reads it
  bool waits = has_unflushed_records(opened, handle);
  if (waits && !one.order) {
    const LogContents contents = LogContents::of(logs_of(log_directory_));
    waits = !contents.complete || contents.merged.contains(handle->GetID());
  }
  if (waits) {
    return refusal("its write-ahead log has records of the column family " + shown(one.family) +
                   ", whose " + (one.order ? "order " : "merge operator ") + shown(one.name) +
                   " only its owner has; its owner has to flush them");
  }
  if (!asked) return {};
  if (!SEMEL_TRY(has_merged_tables(opened, handle))) return {};
  return refusal("its column family " + shown(one.family) + " has merges of " + shown(one.name) +
                 ", a merge operator that only its owner has");
}

}  // namespace semel::store_internal
