// IndexedStore: a store and the index that follows it, through writes of any origin and crashes.
//
// Contract  view() returns a trie that equals one rebuilt from scratch at that moment. A record
//           that another thread writes meanwhile is in this view or in a later one.
//           A store that was killed at any point opens with a correct index. It loads the last
//           checkpoint and marks everything that may have changed since. If the store cannot tell
//           what has changed, it rebuilds the index.
//           Writes go to the store itself. The index hears of them as its observer, and only notes
//           the key. Nothing is read before it is written.
//           The index ignores records outside Settings::range: they are neither noted nor read, and
//           sums and florets over any range cover only the records within it.
//           The index keeps a floret for each slab of the records. A write makes the floret of its
//           slab stale. view() makes it fresh again if it reads the whole slab anyway; floret()
//           does so on demand, and reports how many writes the florets do not include.
// Threads   Any number of threads may call at once, and write to the store. One thread at a time
//           holds a view. Until it drops the view, view(), scrub() and checkpoint() of other
//           threads wait. Writers never wait.
// Memory    That of the trie (nye_trie.h), 1.2 KB for each slab, and of the notes: 1 MiB,
//           or up to 32 MiB while a view is held. Beyond that one range replaces all noted keys.
// Format    docs/formats/index_checkpoint_v1.md.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/result.h"
#include "semel/hash/keyed_digest.h"
#include "semel/index/floret.h"
#include "semel/index/nye_trie.h"
#include "semel/store/ordered_store.h"

namespace semel {

class SEMEL_API IndexedStore {
 public:
  struct Settings {
    std::uint32_t burst_bytes = 4096;
    std::uint64_t slab_bytes = std::uint64_t{4} << 20;  // bytes of records per floret
    KeyRange range = {};                                // the indexed keys
    // A checkpoint records that there are measures, but not the function that made them. The caller
    // must not change it.
    RecordMeasure measure = nullptr;
  };
  enum class Opened : std::uint8_t {
    rebuilt,   // no usable checkpoint, or the store cannot tell all changes
    followed,  // from a checkpoint, with marks for the changes since
  };

  // Opens the index and observes the store from now on. Errc::invalid if the settings describe no
  // index. REQUIRES: the store outlives the index and has no observer.
  static Result<std::unique_ptr<IndexedStore>> open(OrderedStore& store, const Secret& secret,
                                                    const Settings& settings);
  ~IndexedStore();
  IndexedStore(const IndexedStore&) = delete;
  IndexedStore& operator=(const IndexedStore&) = delete;

  OrderedStore& store() const;
  Opened opened() const;

 private:
  // A mutex that its own holder may try to lock, and that another thread may release. It is needed
  // because the thread that holds a view may write to the store and may hand the view on.
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
  // The index and the records of its range at one instant. It holds the index until it is
  // destroyed.
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
  // REQUIRES for view(), scrub() and checkpoint(): this thread holds no view. It would wait for
  // itself for ever.
  Result<View> view();

  using RangeFloret = semel::RangeFloret;
  enum class Fresh : std::uint8_t {
    as_kept,   // reads no kept slab
    not_worn,  // reads a stale slab if that costs no more than the writes that made it stale
    exact,     // reads all stale slabs
  };
  // Returns the floret of the records of a range. It adds the kept slabs within the range and reads
  // the two ends. REQUIRES: `view` belongs to this index.
  Result<RangeFloret> floret(const View& view, const KeyRange& range, Fresh fresh);

  // The result of comparing the index with every record.
  struct Scrubbed {
    bool compared = false;          // false if there was no index and this reading built it
    std::uint64_t records = 0;      // records read
    std::uint64_t stretches = 0;    // runs of keys in which the index was wrong
    std::uint64_t in_question = 0;  // records now in these runs
    std::vector<KeyRange> first;    // the first of these runs, at most kMostTold
  };
  static constexpr std::size_t kMostTold = 5;
  // Reads every record, even those that the store believes unchanged, and builds the index anew.
  // Reports where the index was wrong. There the disk has changed, or the index came from another
  // directory. After an error the index is as it was.
  Result<Scrubbed> scrub();

  // Saves the index; it is durable when this returns. Nothing calls this automatically. Call it
  // after a flush of the store.
  Result<void> checkpoint();

  std::size_t bytes() const;  // memory of trie, florets and notes
  const Secret& secret() const;

 private:
  class SEMEL_LOCAL Body;
  explicit IndexedStore(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace semel
