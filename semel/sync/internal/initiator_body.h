// The inner side of Initiator: its state, and what it does with each answer. In four files:
//   initiator.cc         stretches, passes and rounds;
//   initiator_probe.cc   how many records differ, where florets do not tell;
//   initiator_find.cc    which records differ;
//   initiator_repair.cc  fetching, storing and settling them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "semel/core/random.h"
#include "semel/sync/initiator.h"
#include "semel/sync/internal/exchange.h"
#include "semel/sync/internal/findings.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/internal/key_tally.h"
#include "semel/sync/internal/region.h"
#include "semel/sync/internal/short_digest.h"

namespace semel {

class Initiator::Body {
 public:
  Body(IndexedStore& index, SyncSettings settings);

  std::vector<ByteView> outstanding() const { return exchange_.outstanding(); }
  Result<void> receive(ByteView bytes);

  bool done() const { return state_ == State::done; }
  bool failed() const { return state_ == State::failed; }
  const Error& error() const { return error_; }
  const std::string& peer_words() const { return peer_words_; }
  void cancel();
  SyncReport report() const;
  SyncProgress progress() const;

 private:
  enum class State : std::uint8_t { working, done, failed };

  // Stretches, passes and rounds.
  Result<void> begin_stretch();
  Result<bool> cut_stretch();
  Result<void> begin_pass();
  Result<void> ask_hello();
  Result<void> begin_round() { return exchange_.begin_round({stretch_, salt_}); }
  Result<void> end_round();
  Result<void> end_pass();
  void count_stretch();
  std::uint64_t only_theirs_without_keys();
  void count(const KeyTally::Counts& counts);
  void tell_differences() const;
  bool is_last_pass() const { return pass_ >= settings_.limits.most_passes; }
  void finish();
  void fail(const Error& error);
  Result<void> answered(AskContext& context, Reader in);

  // Estimating.
  Result<void> hello_answered(Reader in);
  Result<void> compare_first(Reader in);
  Result<void> estimate_difference(const frame::HelloReply& reply);
  Result<void> estimated(const Estimated& total);
  Result<void> probe();
  Result<std::vector<BitPath>> sample(const RangeView& view, std::size_t nodes,
                                      std::uint64_t records);
  Result<void> ask_probe(std::uint64_t width);
  Result<void> probe_answered(const ProbeAsk& ask, Reader in);
  Result<void> lists_answered(const ProbeAsk& ask, std::span<const frame::SlotAnswer> answers);

  // Finding.
  Result<void> find();
  void predict(Known known);
  Result<void> find(const RangeView& view, std::span<const BitPath> tops);
  // How much is to be said of the slots of a walk.
  struct Walk {
    std::size_t slots;
    std::uint64_t detail;  // the most records of a slot that is read
    double expected;       // records that differ in all of them
    int repeats = 0;       // of the question, with more room each time
  };
  Result<void> ask_walk(const RangeView& view, std::span<const BitPath> tops, const Walk& walk) {
    return ask_compare(view, tops, false, walk);
  }
  Result<void> ask_lists(const RangeView& view, std::span<const BitPath> tops) {
    return ask_compare(view, tops, true, {SIZE_MAX, UINT64_MAX, looked_for_});
  }
  Result<void> ask_compare(const RangeView& view, std::span<const BitPath> tops, bool list,
                           const Walk& walk);
  Result<void> compare_answered(const CompareAsk& ask, Reader in);
  Result<void> ask_again(const RangeView& view, std::span<const BitPath> halves,
                         std::span<const BitPath> whole, std::uint32_t capacity, int repeats);
  void ask_scan(frame::Scan scan, int attempt);
  Result<void> scan_answered(const ScanAsk& ask, Reader in);
  void ask_placed(const frame::Scan& scan, std::unordered_set<std::uint64_t> wanted);
  void scan_again(const ScanAsk& ask, std::vector<std::uint32_t> failed);
  Result<void> take_region(const RangeView& view, const Region& region);
  Result<void> take_numbers(const RangeView& view, const Region& region,
                            std::span<const std::uint32_t> numbers);

  // Repairing.
  void take_ours(std::string_view key, std::string_view value, const Digest& digest);
  void flush_ours();
  void ask_store(frame::Manner manner, ByteView records, const StoreAsk& ask);
  Result<void> store_answered(const StoreAsk& ask, Reader in);
  void ask_copy(std::span<const BitPath> tops);
  void ask_fetch(FetchAsk fetch);
  void ask_items(std::vector<frame::Fetch::Item> items);
  Result<void> fetch_answered(FetchAsk ask, Reader in);
  Result<void> take_fetched(const FetchAsk& ask, std::size_t end_item, std::string_view end_key,
                            std::span<const frame::Record> records);
  Result<void> compare_copy(const FetchAsk& ask, std::size_t end_item, std::string_view end_key,
                            std::span<const frame::Record> records);
  Result<void> apply_here(std::span<const frame::Record> records);
  Result<void> settle();
  Result<void> settle_removals();
  Result<void> settle_by_callback();
  class ExactChanges;

  // What the settings come to.
  bool repairs() const { return settings_.purpose == Purpose::repair; }
  bool two_way() const {
    return settings_.resolver.rule == Rule::join || settings_.resolver.rule == Rule::newest;
  }
  bool here_is_source() const { return settings_.resolver.role == Role::initiator_is_source; }
  bool calls_back() const { return settings_.resolver.rule == Rule::callback; }
  bool removes() const {
    return settings_.resolver.rule == Rule::source && settings_.resolver.remove_extra;
  }
  bool gives() const { return two_way() || (here_is_source() && !calls_back()); }
  bool takes() const { return two_way() || (!here_is_source() && !calls_back()); }
  bool writes_there() const { return repairs() && gives(); }
  bool writes_here() const { return repairs() && takes(); }
  // What has to be known of a record that only the other end has; a plan is that of a repair.
  frame::Content content() const;
  Travels travels() const;
  Findings::Keep keep() const;

  ShortDigest shorten(ShortDigest::Of of) const { return {index_.secret(), of, salt_}; }
  std::size_t room() const;  // for the body of a part

  IndexedStore& index_;
  SyncSettings settings_;
  Random salts_;
  Exchange exchange_;
  Error error_{};
  std::string peer_words_;
  SyncReport report_;

  // Of the stretch.
  KeyRange stretch_;
  std::uint32_t pass_ = 0;
  bool last_stretch_ = false;
  bool all_proved_ = true;
  State state_ = State::working;  // of the sync
  KeyTally tally_;                // keys that differed, as storing their records has shown
  std::uint64_t records_done_ = 0;
  std::uint64_t range_records_ = 0;

  // Of the pass.
  Aggregate here_;
  Aggregate there_;
  // Where the two ends differ, as the first exchange shows it.
  struct Question {
    Known known;
    std::vector<BitPath> tops;              // both ends have records there
    std::vector<frame::Fetch::Item> items;  // this end has none there
    std::vector<Region> ours;               // the other end has none there
    std::uint64_t records = 0;              // of this end, below the tops
    std::uint64_t our_records = 0;          // in the regions that are ours alone
  };
  Question question_;
  Findings findings_;
  std::uint64_t unknown_ = 0;  // changes that this end's floret does not know of
  std::uint64_t probe_bytes_ = 0;
  std::uint16_t salt_ = 0;
  bool settled_ = false;
  bool escalate_ = false;  // sketches did not do: the next pass takes a list
  std::uint32_t probes_ = 0;
  Estimate estimate_;
  double looked_for_ = 0;
  Prediction predicted_;
  std::vector<std::uint64_t> met_there_;  // hashes of our keys that met another value there
  std::uint64_t repaired_ = 0;

  // Records that are on their way to the other end.
  Bytes our_records_;
  std::optional<frame::RecordWriter> our_writer_;
  std::string our_last_;       // the key that it wrote last
  std::size_t our_first_ = 0;  // of findings_.ours(): the first that it wrote
  std::size_t our_count_ = 0;  // how many it wrote
};

}  // namespace semel
