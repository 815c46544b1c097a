// IndexedStore: a store and the index that follows it, through writes, writes past it, and crashes.
//
// Contract  view() gives a trie that equals one rebuilt from scratch at that moment. A record that
//           is written meanwhile, by another thread, is in the view or in a later one.
//           A store that was killed at any point opens with an index that is right: from the last
//           checkpoint, with all marked that may have changed since; rebuilt where the store cannot
//           tell what has.
// Writes    go to the store itself: the index hears of them by its observer, and only notes the
//           key. Nothing is read before it is written.
// Range     Of records outside of Settings::range the index knows nothing: they are neither noted
//           nor read, and sums and florets over any range are of those within.
// Floret    A floret is kept for each slab of the records. A write makes that of its slab stale.
//           view() makes it fresh where it reads the whole slab anyway, floret() on demand: it says
//           of how many writes the florets do not know.
// Threads   Any number of threads may call at once, and write to the store. A view is held by one
//           thread at a time, and keeps other views and checkpoints waiting, never writers.
// Memory    Of the trie and the florets (nye_trie.h, floret_slabs.h), and of the notes: 1 MiB; while
//           a view is held up to 32 MiB, then one range instead of all keys that were noted.
// Format    docs/formats/index_checkpoint_v1.md.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "semel/core/result.h"
#include "semel/hash/keyed_digest.h"
#include "semel/index/internal/floret_slabs.h"
#include "semel/index/nye_trie.h"
#include "semel/store/ordered_store.h"

namespace semel {

class IndexedStore {
 public:
  struct Settings {
    std::uint32_t burst_bytes = 4096;
    std::uint64_t slab_bytes = std::uint64_t{4} << 20;  // of records for one floret
    KeyRange range = {};                                // of the records that are indexed
    // A checkpoint says that there are measures, not which function made them: it stays the same.
    Measure measure = nullptr;
  };
  enum class Opened : std::uint8_t {
    rebuilt,   // no checkpoint, or one of other settings, or a gap in what the store can tell
    followed,  // a checkpoint, and marks for what has changed since
  };

  // Observes the store from now on. REQUIRES: the store outlives the index, and has no observer.
  // Errc::invalid if the settings describe no index.
  static Result<std::unique_ptr<IndexedStore>> open(OrderedStore& store, const Secret& secret,
                                                    const Settings& settings);
  ~IndexedStore();
  IndexedStore(const IndexedStore&) = delete;
  IndexedStore& operator=(const IndexedStore&) = delete;

  OrderedStore& store() const;
  Opened opened() const;

 private:
  // A mutex that the thread which holds it may try, and which another may release: whoever holds a
  // view writes to the store like all others, and may hand the view on.
  class Gate {
   public:
    void lock();
    bool try_lock();
    void unlock();

   private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool closed_ = false;
  };

 public:
  // The index and the records of its range as of one instant. Holds the index until it goes.
  class View {
   public:
    const NyeTrie& trie() const { return *trie_; }
    Cursor& cursor() const { return *cursor_; }

   private:
    friend class IndexedStore;
    std::unique_lock<Gate> held_;
    const NyeTrie* trie_ = nullptr;
    std::unique_ptr<Cursor> cursor_;
  };
  Result<View> view();

  using RangeFloret = semel::RangeFloret;
  enum class Fresh : std::uint8_t {
    as_kept,   // reads no slab that is kept
    not_worn,  // reads slabs in which so much has changed that it costs no more than that did
    exact,     // reads all stale slabs
  };
  // Of the records of a range: kept slabs within it are added up, the ends are read.
  // REQUIRES: `view` is of this index.
  Result<RangeFloret> floret(const View& view, const KeyRange& range, Fresh fresh);

  // What a reading of every record has shown of the index.
  struct Scrubbed {
    bool compared = false;          // false: there was no index, it was built by this reading
    std::uint64_t records = 0;      // that were read
    std::uint64_t stretches = 0;    // of keys, in which the index was wrong
    std::uint64_t in_question = 0;  // records in these, as they are now
    std::vector<KeyRange> first;    // kMostTold of these stretches
  };
  static constexpr std::size_t kMostTold = 5;
  // Reads every record, also those that have not changed as far as the store knows, and makes the
  // index anew of them. Tells where it was wrong: there the disk has changed, or an index was left
  // in a directory that is not its own. After an error the index is as it was.
  Result<Scrubbed> scrub();

  // Durable when it returns. Taken by itself never; a good time is after a flush of the store.
  Result<void> checkpoint();

  std::size_t bytes() const;  // of memory: trie, florets, notes
  const Secret& secret() const;

 private:
  class Body;
  explicit IndexedStore(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace semel
