#include "semel/index/indexed_store.h"

#include <atomic>
#include <new>

#include "semel/core/assert.h"
#include "semel/index/internal/change_notes.h"
#include "semel/index/internal/index_checkpoint.h"
#include "semel/index/internal/range_cursor.h"

namespace semel {

using namespace index_internal;

namespace {

constexpr std::size_t kManyNotes = std::size_t{1} << 20;   // bytes: time to mark them
constexpr std::size_t kMostNotes = std::size_t{32} << 20;  // bytes: time to be less exact

}  // namespace

void IndexedStore::Gate::lock() {
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [this] { return !closed_; });
  closed_ = true;
}

bool IndexedStore::Gate::try_lock() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(closed_, true);
}

void IndexedStore::Gate::unlock() {
  // Notifies inside the mutex, because the next holder may destroy the gate.
  const std::lock_guard lock(mutex_);
  closed_ = false;
  opened_.notify_one();
}

// No change is missed, for this reason. The store reports a change once it is visible. So a note
// that is taken out to be marked names a change that every later cursor sees, and the marks are
// read with a later cursor. A change reported after the notes were taken out stays noted for the
// next time, whether this cursor already sees it or not. If memory runs out and a mark is lost, the
// note says that everything has changed.
class IndexedStore::Body final : public ChangeObserver {
 public:
  Body(OrderedStore& store, const Secret& secret, const Settings& settings)
      : store_(store),
        secret_(secret),
        settings_(settings),
        digest_(secret),
        floret_key_(secret, KeyPurpose::floret),
        trie_(new_trie()),
        slabs_(settings.slab_bytes) {}
  ~Body() override = default;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  void changed(std::string_view key) override {
    if (settings_.range.contains(key)) note(key);
  }
  void changed(const KeyRange& range) override {
    // The part outside the indexed range is never read. Cutting it off would take memory.
    const KeyRange& indexed = settings_.range;
    const bool before = range.end && *range.end <= indexed.first;
    const bool after = indexed.end && range.first >= *indexed.end;
    if (!before && !after) note(range);
  }

  void open() {
    const Result<Bytes> position = load();
    store_.observe(this);
    if (!position) return;
    const Result<void> told = store_.changes_since(*position, *this);
    const std::lock_guard lock(gate_);
    if (told) {
      opened_ = Opened::followed;
    } else {
      trie_ = new_trie();
      slabs_ = FloretSlabs(settings_.slab_bytes);
      bulk_ = true;
    }
  }

  Result<View> view() {
    View view;
    view.held_ = std::unique_lock(gate_);
    mark_notes();
    view.cursor_ = SEMEL_TRY(new_cursor());
    const Result<void> refreshed = refresh(*view.cursor_);
    count_bytes();
    SEMEL_TRY(refreshed);
    view.trie_ = &trie_;
    return view;
  }

  // REQUIRES for both: the caller holds a view.
  bool is_mine(const View& view) const { return view.trie_ == &trie_ && view.held_; }
  Result<RangeFloret> floret(Cursor& cursor, const KeyRange& range, Fresh fresh) {
    const FloretSlabs::Source source{trie_, cursor, floret_key_};
    if (fresh != Fresh::as_kept) {
      const Result<void> read = fresh == Fresh::exact ? slabs_.read_stale(range, source)
                                                      : slabs_.read_worn(range, source);
      count_bytes();
      SEMEL_TRY(read);
    }
    return slabs_.sum(range, source);
  }

  Result<Scrubbed> scrub() {
    const std::lock_guard lock(gate_);
    mark_notes();
    const std::unique_ptr<Cursor> cursor = SEMEL_TRY(new_cursor());
    Scrubbed scrubbed;
    scrubbed.compared = !bulk_;
    SEMEL_TRY(refresh(*cursor));
    if (scrubbed.compared) SEMEL_TRY(rebuild(*cursor, scrubbed));
    scrubbed.records = trie_.total().count;
    count_bytes();
    return scrubbed;
  }

  Result<void> checkpoint() {
    const std::lock_guard one(checkpointing_);
    Bytes bytes;
    {
      const std::lock_guard lock(gate_);
      // The position is taken first. Changes before it have been reported and are marked now.
      // Changes after it may be marked or not: opening the checkpoint reports them again.
      Bytes position = SEMEL_TRY(store_.position());
      mark_notes();
      IndexCheckpoint state{std::move(position), {}, slabs_, settings_.range};
      trie_.encode(state.trie);
      state.encode(bytes);
    }
    return store_.save_checkpoint(bytes);
  }

  std::size_t bytes() const {
    const std::lock_guard lock(notes_mutex_);
    return sizeof *this + index_bytes_ + notes_.bytes();
  }

  OrderedStore& store() const { return store_; }
  Opened opened() const { return opened_; }
  const Secret& secret() const { return secret_; }

 private:
  // Marks changes in the trie and counts them in the slabs.
  class Marker final : public ChangeObserver {
   public:
    explicit Marker(Body& body) : body_(body) {}
    void changed(std::string_view key) override { mark(key); }
    void changed(const KeyRange& range) override { mark(range); }

   private:
    template <class Change>
    void mark(const Change& change) {
      body_.trie_.mark(change);
      body_.slabs_.note(change);
    }
    Body& body_;
  };

  NyeTrie new_trie() const { return {settings_.burst_bytes, digest_, settings_.measure}; }

  Result<std::unique_ptr<Cursor>> new_cursor() const {
    Result<std::unique_ptr<Cursor>> cursor = store_.cursor();
    if (!cursor || settings_.range == KeyRange::all()) return cursor;
    return std::unique_ptr<Cursor>(
        std::make_unique<RangeCursor>(*std::move(cursor), settings_.range));
  }

  template <class Change>
  void note(const Change& change) {
    {
      const std::lock_guard lock(notes_mutex_);
      notes_.note(change);
      if (notes_.bytes() < kManyNotes) return;
      if (notes_.bytes() >= kMostNotes) notes_.collapse();
    }
    // A writer does not wait: while a view is held, the notes grow.
    const std::unique_lock held(gate_, std::try_to_lock);
    if (!held) return;
    try {
      mark_notes();
    } catch (const std::bad_alloc&) {  // everything is noted then; the write succeeded
    }
  }

  // REQUIRES for everything below: the caller holds the gate.

  void mark_notes() {
    ChangeNotes taken;
    {
      const std::lock_guard lock(notes_mutex_);
      std::swap(taken, notes_);
    }
    try {
      Marker marker(*this);
      taken.tell(marker);
    } catch (...) {
      const std::lock_guard lock(notes_mutex_);
      notes_.note_everything();
      throw;
    }
    count_bytes();
  }

  // The florets take the records that the trie reads. A new trie reads all records. Otherwise it
  // reads the marked containers, which may include whole slabs.
  Result<void> refresh(Cursor& cursor) {
    if (!std::exchange(bulk_, false)) {
      FloretSlabs::Gathering gathering(slabs_, floret_key_);
      Result<void> read = trie_.refresh(cursor, told_to(gathering));
      return read ? gathering.finish({trie_, cursor, floret_key_}) : read;
    }
    FloretSlabs::Reading reading(settings_.slab_bytes, "", floret_key_);
    Result<void> read = trie_.refresh(cursor, told_to(reading));
    if (read) slabs_ = FloretSlabs(settings_.slab_bytes, reading.finish());
    return read;
  }

  // REQUIRES: nothing is marked.
  Result<void> rebuild(Cursor& cursor, Scrubbed& scrubbed) {
    NyeTrie fresh = new_trie();
    FloretSlabs::Reading reading(settings_.slab_bytes, "", floret_key_);
    Result<void> read = fresh.refresh(cursor, told_to(reading));
    if (!read) return read;
    FloretSlabs slabs(settings_.slab_bytes, reading.finish());
    for (NyeTrie::Unlike& one : trie_.unlike(fresh)) {
      ++scrubbed.stretches;
      scrubbed.in_question += one.records;
      if (scrubbed.first.size() < kMostTold) scrubbed.first.push_back(std::move(one.keys));
    }
    trie_ = std::move(fresh);
    slabs_ = std::move(slabs);
    return {};
  }

  template <class Records>
  static NyeTrie::Seen told_to(Records& records) {
    return [&records](std::string_view key, std::string_view value, const Digest& entry) {
      records.add(key, value, entry);
    };
  }

  // Loads the index of the checkpoint and returns its position, or the reason why it cannot be
  // trusted.
  Result<Bytes> load() {
    const std::optional<Bytes> saved = SEMEL_TRY(store_.load_checkpoint());
    if (!saved) return Error{Errc::gap, "checkpoint: there is none"};
    IndexCheckpoint state = SEMEL_TRY(IndexCheckpoint::decode(*saved));
    NyeTrie trie = SEMEL_TRY(NyeTrie::decode(state.trie, digest_, settings_.measure));
    if (trie.burst_bytes() != settings_.burst_bytes ||
        state.slabs.slab_bytes() != settings_.slab_bytes || state.range != settings_.range) {
      return Error{Errc::mismatch, "checkpoint: of another shape or range"};
    }
    trie_ = std::move(trie);
    slabs_ = std::move(state.slabs);
    bulk_ = false;
    return std::move(state.position);
  }

  void count_bytes() { index_bytes_ = trie_.bytes() + slabs_.bytes(); }

  OrderedStore& store_;
  const Secret secret_;
  const Settings settings_;
  const EntryDigest digest_;
  const DigestKey floret_key_;
  Opened opened_ = Opened::rebuilt;
  std::mutex checkpointing_;

  mutable std::mutex notes_mutex_;  // held briefly; locked after the gate, or alone
  ChangeNotes notes_;

  Gate gate_;  // the members below belong to its holder
  NyeTrie trie_;
  FloretSlabs slabs_;
  bool bulk_ = true;  // nothing was read yet

  std::atomic<std::size_t> index_bytes_ = 0;  // trie and slabs, for threads without the gate
};

IndexedStore::IndexedStore(std::unique_ptr<Body> body) : body_(std::move(body)) {}

IndexedStore::~IndexedStore() { body_->store().observe(nullptr); }

Result<std::unique_ptr<IndexedStore>> IndexedStore::open(OrderedStore& store, const Secret& secret,
                                                         const Settings& settings) {
  if (settings.burst_bytes < NyeTrie::kLeastBurst || settings.burst_bytes > NyeTrie::kMostBurst) {
    return Error{Errc::invalid, "burst_bytes must be from 256 to 2^26"};
  }
  if (settings.slab_bytes == 0) return Error{Errc::invalid, "slab_bytes must not be 0"};
  if (settings.range.empty()) return Error{Errc::invalid, "the range of an index must have keys"};
  std::unique_ptr<IndexedStore> index(
      new IndexedStore(std::make_unique<Body>(store, secret, settings)));
  index->body_->open();
  return index;
}

OrderedStore& IndexedStore::store() const { return body_->store(); }
IndexedStore::Opened IndexedStore::opened() const { return body_->opened(); }
Result<IndexedStore::View> IndexedStore::view() { return body_->view(); }
Result<IndexedStore::Scrubbed> IndexedStore::scrub() { return body_->scrub(); }
Result<void> IndexedStore::checkpoint() { return body_->checkpoint(); }
std::size_t IndexedStore::bytes() const { return sizeof *this + body_->bytes(); }
const Secret& IndexedStore::secret() const { return body_->secret(); }

Result<RangeFloret> IndexedStore::floret(const View& view, const KeyRange& range, Fresh fresh) {
  SEMEL_ASSERT(body_->is_mine(view));
  return body_->floret(view.cursor(), range, fresh);
}

}  // namespace semel
