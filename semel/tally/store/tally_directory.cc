#include "semel/tally/store/tally_directory.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "semel/core/clock.h"
#include "semel/store/rocksdb_store.h"

namespace semel::tally {

namespace {

// Most of a write is the search for its place in RocksDB's table in memory, which is twice as fast
// while the table stays in the caches: 230,000 increments a second with 4 MiB, 130,000 with 64.
constexpr std::uint64_t kWriteBufferBytes = std::uint64_t{4} << 20;

// Whether there is a directory that may be a table. One of somebody else must not get our merger: its
// owner could not open it any more. One that has it already cannot be opened without it, and is ours.
Result<bool> exists(const std::string& directory) {
  RocksStore::Settings as_found;
  as_found.mode = RocksStore::Mode::read_only;
  const Result<std::unique_ptr<RocksStore>> found = RocksStore::open(directory, as_found);
  if (!found) return found.error().code != Errc::invalid;
  const Result<std::unique_ptr<Cursor>> cursor = (*found)->cursor();
  if (!cursor) return cursor.error();
  (*cursor)->seek({});
  if (const Result<void> status = (*cursor)->status(); !status) return status.error();
  if ((*cursor)->valid()) return Error{Errc::corrupt, "the store is not that of a table"};
  return true;
}

}  // namespace

class TallyDirectory::Body {
 public:
  Body(std::unique_ptr<RocksStore> store, std::unique_ptr<TallyStore> table,
       const TallyStore::Settings& settings)
      : store_(std::move(store)), table_(std::move(table)), settings_(settings) {
    if (!settings_.read_only) ticking_ = std::thread([this] { tick(); });
  }

  ~Body() { (void)close(); }  // an error here has nobody to hear it: who has to know calls close()

  Result<void> close() {
    if (store_ == nullptr) return {};
    stop_ticking();
    Result<void> synced;
    if (!settings_.read_only) {
      if (settings_.durability != Durability::none) synced = table_->sync();
      (void)table_->checkpoint();  // which saves time at the next opening, and no more
    }
    table_.reset();
    const Result<void> closed = store_->close();
    store_.reset();
    return synced ? closed : synced;
  }

  TallyStore& table() { return *table_; }
  RocksStore& store() { return *store_; }

 private:
  void stop_ticking() {
    if (!ticking_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    closed_.notify_all();
    ticking_.join();
  }

  void tick() {
    // Often enough that a period is never exceeded by more than a quarter.
    const TimeMs pause_ms = std::clamp<TimeMs>(settings_.period_ms / 4, 1, 1000);
    std::unique_lock lock(mutex_);
    while (
        !closed_.wait_for(lock, std::chrono::milliseconds(pause_ms), [this] { return closing_; })) {
      lock.unlock();
      // A table that cannot write says so to whoever writes next.
      const bool ticked = table_->tick(SystemClock().now_ms()).has_value();
      if (ticked && store_->flushed_since_checkpoint()) (void)table_->checkpoint();
      lock.lock();
    }
  }

  std::unique_ptr<RocksStore> store_;
  std::unique_ptr<TallyStore> table_;
  TallyStore::Settings settings_;
  std::mutex mutex_;
  std::condition_variable closed_;
  bool closing_ = false;
  std::thread ticking_;
};

TallyDirectory::TallyDirectory(std::unique_ptr<Body> body) : body_(std::move(body)) {}
TallyDirectory::~TallyDirectory() = default;

Result<std::unique_ptr<TallyDirectory>> TallyDirectory::open(const std::string& directory,
                                                             const TallyStore::Settings& settings,
                                                             std::string* why) {
  RocksStore::Settings below;
  if (!settings.read_only) {
    const Result<bool> there = exists(directory);
    if (!there) return there.error();
    if (!*there) {
      below.write_buffer_bytes = kWriteBufferBytes;
      // A table that cannot be must not leave a directory.
      if (settings.recogniser) {
        const Result<Recogniser> possible = Recogniser::make(*settings.recogniser, 0);
        if (!possible) return possible.error();
      }
    }
  }
  below.mode = settings.read_only ? RocksStore::Mode::read_only : RocksStore::Mode::read_write;
  below.create = settings.recogniser.has_value() && !settings.read_only;
  below.merger = &TallyStore::merger();
  Result<std::unique_ptr<RocksStore>> store = RocksStore::open(directory, below, why);
  if (!store) return store.error();
  static const SystemClock clock;
  TallyStore::Settings timed = settings;
  timed.clock = &clock;
  Result<std::unique_ptr<TallyStore>> table = TallyStore::open(**store, timed, clock.now_ms());
  if (!table) {
    if (why != nullptr) *why = (*store)->problem();
    return table.error();
  }
  return std::unique_ptr<TallyDirectory>(
      new TallyDirectory(std::make_unique<Body>(std::move(*store), std::move(*table), settings)));
}

Result<void> TallyDirectory::close() { return body_->close(); }
TallyStore& TallyDirectory::table() { return body_->table(); }
RocksStore& TallyDirectory::store() { return body_->store(); }
TimeMs TallyDirectory::now_ms() const { return SystemClock().now_ms(); }

}  // namespace semel::tally
