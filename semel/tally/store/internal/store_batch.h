// StoreBatch: the counters of a store as the base of a ledger, and the next write to the store.
//
// It collects the changes of the ledger and writes them as a whole. Each counter is one merge,
// which reads nothing. Operations of other sites are entries. Ids, and operations of this site that
// are not yet shared, are one record of the journal.
//
// The merges of a counter are a list until the store joins them, and each reader of the counter
// goes through that list. take_heavy() returns the counters whose list has become long.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/core/codec.h"
#include "semel/store/ordered_store.h"
#include "semel/tally/internal/ledger.h"

namespace semel::tally::internal {

class StoreBatch final : public Ledger::Base {
 public:
  // REQUIRES: the store outlives this.
  StoreBatch(OrderedStore& store, bool with_content) : store_(store), with_content_(with_content) {}

  std::optional<int128> fold(std::string_view counter, const Shard& shard) override;
  void clear(std::string_view counter) override;
  void hold(const Operation& operation) override;
  void keep(const Operation& operation) override;
  void drop(Dot dot) override;
  Result<void> sums_of(std::span<const std::string_view> counters,
                       std::span<std::optional<int128>> sums) const override;
  void fold_all(std::span<const NamedShard> shards, std::span<int128> sums) override;
  bool knows_sums() const override { return false; }
  void prefetch(std::string_view /*counter*/) const override {}
  void reserve(std::span<const Addition> /*additions*/) override {}  // all blocks are small
  void remember(const Recogniser::Query& query) override;

  void put(std::string_view key, ByteView value);
  void remove(std::string_view key);

  // The site whose operations go to the journal until they are shared.
  void set_site(SiteId site) { site_ = site; }

  bool empty() const { return writes_.empty() && folds_.empty() && !has_journal(); }
  bool has_journal() const { return ids_ != 0 || operations_ != 0; }
  bool has_operations() const { return operations_ != 0; }  // in the journal
  bool folded() const { return folded_; }                   // true if a counter has changed
  // Adds the record of the journal under this key, if it would not be empty.
  void close_journal(std::string_view key);
  // Writes everything at once. The batch is empty afterwards, whatever happens.
  Result<void> write();
  // Returns the counters that have had kHeavy merges, as far as is known, and counts them anew.
  std::vector<std::string> take_heavy() { return std::exchange(heavy_, {}); }
  static constexpr std::uint8_t kHeavy = 128;

 private:
  struct Piece {
    std::size_t key, key_size;
    std::size_t value, value_size;
    bool removes, merges;
  };
  // Many counters share a place. The one that is merged most often keeps it: each merge of another
  // counter takes one from its count, and takes the place when the count is 0 (the majority vote of
  // Boyer and Moore). A counter that never gets a place has few merges before the store flushes.
  struct Merges {
    std::uint32_t tag = 0;
    std::uint8_t count = 0;
  };
  static constexpr std::size_t kPlaces = 4096;

  void count_merge(const std::string& counter);
  void append(std::string_view prefix, std::string_view key, ByteView value, bool removes,
              bool merges);

  OrderedStore& store_;
  bool with_content_;
  SiteId site_ = 0;
  std::string text_;  // keys and values, one after the other
  std::vector<Piece> writes_;
  std::vector<RecordWrite> views_;
  std::map<std::string, CounterState, std::less<>> folds_;     // written after everything else
  std::vector<Merges> merges_ = std::vector<Merges>(kPlaces);  // by a hash of the name
  std::vector<std::string> heavy_;
  Bytes value_;
  Bytes journal_ids_;
  Bytes journal_operations_;
  std::uint64_t ids_ = 0;
  std::uint64_t operations_ = 0;
  bool folded_ = false;
};

// One record of the journal.
struct JournalRecord {
  std::vector<Recogniser::Query> ids;
  std::vector<Operation> operations;

  static Result<JournalRecord> decode(ByteView in, bool with_content);
};

}  // namespace semel::tally::internal
