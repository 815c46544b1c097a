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
#include "semel/tally/internal/recogniser.h"
#include "semel/tally/store/counter_merger.h"

namespace semel::tally {

namespace {

// Most of the time of a write is the search for its place in RocksDB's memory table, which is twice
// as fast while that table fits the caches. 4 MiB: 230,000 increments/s. 64 MiB: 130,000.
constexpr std::uint64_t kWriteBufferBytes = std::uint64_t{4} << 20;

// Returns true if the directory exists and may be a table. The directory of another program must
// not get our merger, because its owner could not open it any more. A directory with our merger
// cannot be opened without it, and is ours.
Result<bool> exists(const std::string& directory) {
  RocksStore::Settings as_found;
  as_found.mode = RocksStore::Mode::read_only;
  const Result<std::unique_ptr<RocksStore>> found = RocksStore::open(directory, as_found);
  if (!found) return found.error().code != Errc::invalid;
  const std::unique_ptr<Cursor> cursor = SEMEL_TRY((*found)->cursor());
  cursor->seek({});
  SEMEL_TRY(cursor->status());
  if (cursor->valid()) return Error{Errc::corrupt, "the store is not that of a table"};
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

  ~Body() { (void)close(); }  // the error is lost here: call close() to get it

  Result<void> close() {
    if (store_ == nullptr) return {};
    stop_ticking();
    Result<void> synced;
    if (!settings_.read_only) {
      if (settings_.durability != Durability::none) synced = table_->sync();
      (void)table_->checkpoint();  // it only saves time at the next opening
    }
    table_.reset();
    const Result<void> closed = store_->close();
    store_.reset();
    return synced ? closed : synced;
  }

  TallyStore& table() { return *table_; }
  RocksStore& store() { return *store_; }
  TimeMs now_ms() const { return settings_.clock->now_ms(); }

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
    // This is often enough that a period is never exceeded by more than a quarter.
    const TimeMs pause_ms = std::clamp<TimeMs>(settings_.period_ms / 4, 1, 1000);
    std::unique_lock lock(mutex_);
    while (
        !closed_.wait_for(lock, std::chrono::milliseconds(pause_ms), [this] { return closing_; })) {
      lock.unlock();
      // If it cannot write, the next caller that writes gets the error.
      const bool ticked = table_->tick(now_ms()).has_value();
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
                                                             const TallyStore::Settings& asked) {
  static const SystemClock system_clock;
  TallyStore::Settings settings = asked;
  if (settings.clock == nullptr) settings.clock = &system_clock;
  RocksStore::Settings below;
  if (!settings.read_only) {
    if (!SEMEL_TRY(exists(directory))) {
      below.write_buffer_bytes = kWriteBufferBytes;
      // A table with an invalid goal must not leave a directory behind.
      if (settings.recognition) SEMEL_TRY(internal::Recogniser::make(*settings.recognition, 0));
    }
  }
  below.mode = settings.read_only ? RocksStore::Mode::read_only : RocksStore::Mode::read_write;
  below.create = settings.recognition.has_value() && !settings.read_only;
  below.merger = &counter_merger();
  std::unique_ptr<RocksStore> store = SEMEL_TRY(RocksStore::open(directory, below));
  std::unique_ptr<TallyStore> table =
      SEMEL_TRY(TallyStore::open(*store, settings, settings.clock->now_ms()));
  return std::unique_ptr<TallyDirectory>(
      new TallyDirectory(std::make_unique<Body>(std::move(store), std::move(table), settings)));
}

Result<void> TallyDirectory::close() { return body_->close(); }
TallyStore& TallyDirectory::table() { return body_->table(); }
RocksStore& TallyDirectory::store() { return body_->store(); }
TimeMs TallyDirectory::now_ms() const { return body_->now_ms(); }

}  // namespace semel::tally
