// Repair: takes the differences that were found, and makes both ends agree.
//
// Contract  Records of this end are collected and sent in frames. Records of the other end are
//           fetched and stored here. The resolver decides. settle() makes the decisions that need
//           both sides of every difference.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "semel/sync/internal/region.h"
#include "semel/sync/internal/session.h"

namespace semel::sync_internal {

class Repair {
 public:
  // REQUIRES: the session outlives this.
  explicit Repair(Session& session) : s_(session) {}

  void begin_pass();
  // Takes a record of this end that the other end does not have.
  void take_ours(std::string_view key, std::string_view value, const Digest& digest);
  // Sends the waiting records. Call it at the end of a round.
  void flush_ours();

  // These ask for records of the other end.
  void ask_copy(std::span<const BitPath> tops);  // all below these nodes
  void ask_fetch(FetchAsk fetch);
  void ask_items(std::vector<frame::Fetch::Item> items);

  Result<void> store_answered(const StoreAsk& ask, Reader in);
  Result<void> fetch_answered(FetchAsk ask, Reader in);
  Result<void> settle();

  std::uint64_t repaired() const { return repaired_; }  // records, in this pass
  // Returns the hashes of our keys that met another value there.
  const std::vector<std::uint64_t>& met_there() const { return met_there_; }

 private:
  class ExactChanges;
  void ask_store(frame::Manner manner, ByteView records, const StoreAsk& ask);
  Result<void> take_fetched(const FetchAsk& ask, std::size_t end_item, std::string_view end_key,
                            std::span<const frame::Record> records);
  Result<void> compare_copy(const FetchAsk& ask, std::size_t end_item, std::string_view end_key,
                            std::span<const frame::Record> records);
  Result<void> apply_here(std::span<const frame::Record> records);
  Result<void> settle_removals();
  Result<void> settle_by_callback();

  Session& s_;
  std::vector<std::uint64_t> met_there_;
  std::uint64_t repaired_ = 0;

  // Records that are to be sent to the other end.
  Bytes our_records_;
  std::optional<frame::RecordWriter> our_writer_;
  std::string our_last_;       // the key that it wrote last
  std::size_t our_first_ = 0;  // the first of findings.ours() that it wrote
  std::size_t our_count_ = 0;  // how many it wrote
};

}  // namespace semel::sync_internal
