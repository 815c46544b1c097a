// BloomValue: the filter behind a key of BF.*.
//
// Contract  A series of grow-only Bloom filters. A key that was added is always found, through
//           copies, dumps, merges and restarts. The error is at most goal().error for each chain,
//           whatever the number of keys.
// Merge     Chunk by chunk: a dump of one filter is loaded into another, in any order, any number
//           of times.
// Growth    A link is opened at a certain number of keys, which the value keeps beside the series.
//           So a copy that was encoded and decoded continues in the same way.
// Format    docs/formats/module_bloom_v1.md: the value, and the chunks of a dump.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "module/types/filter_value.h"

namespace semel::module {

class BloomValue final : public FilterValue<GrowBloomSeries> {
 public:
  static const host::TypeSpec kType;

  struct Goal {
    double error;
    std::uint64_t capacity;
    std::uint32_t expansion;  // 0: the filter does not grow

    bool operator==(const Goal&) const = default;
  };

  // Makes a value without chains. Errors are those of GrowBloomSeries::make.
  static Result<std::unique_ptr<BloomValue>> make(const Secret& secret, const Goal& goal);
  static Result<std::unique_ptr<host::Value>> decode(ByteView in);

  // Adds a key to the value's own chain. Returns true if the key was certainly not there.
  // Errc::full if a further link would take more memory than `max_bytes` allows (0: no limit);
  // Errc::limit if no further link is possible. REQUIRES: the value has a chain of its own;
  // hasher() made the digest.
  Result<bool> add(Digest key, std::uint64_t max_bytes);
  // Adds keys in order, up to the first new one that is refused. `done` counts the keys before that
  // one, also if memory runs out.
  Result<void> add(std::span<const Digest> keys, std::span<bool> added, std::uint64_t max_bytes,
                   std::size_t& done);

  Result<void> begin_chain(std::uint64_t tag) { return chains_.begin(tag); }
  void disown() { chains_.disown(); }

  // A part of a link, for a dump or a merge. It views the words of the value, and is valid until
  // the value changes. `next` is the position of the piece after it.
  struct Piece {
    std::uint64_t next;
    std::uint64_t chain;  // a tag
    std::uint8_t link;
    BloomPart part;

    // Takes as much out of the piece as one step of a merge can do: all.
    Piece cut() { return {next, chain, link, std::exchange(part, {})}; }
    bool empty() const { return part.words.empty(); }
  };
  // Returns the piece at a position of a dump, or nothing at the end. REQUIRES: position > 0.
  std::optional<Piece> piece(std::uint64_t position) const;
  Bytes encoded(const Piece& piece) const;
  // A key that is added during a dump may be in it or not.
  Chunk dump(std::uint64_t position) const;
  // Returns true if the bytes begin like a chunk of a dump.
  static bool is_chunk(ByteView bytes);
  // Makes an empty value without a chain of its own from the header of a dump.
  static Result<std::unique_ptr<BloomValue>> load_header(ByteView chunk);
  // Returns true if it changed anything. It fails without a change: Errc::mismatch if the goals
  // differ; Errc::invalid if there can be no such link; Errc::full if the value would take more
  // than `max_bytes` allows; Errc::limit if there are too many chains; Errc::corrupt.
  Result<bool> load(ByteView chunk, std::uint64_t max_bytes);
  // Does the same with a piece of another filter. REQUIRES: both match; the piece views no words of
  // this value.
  Result<bool> take(const Piece& piece, std::uint64_t max_bytes);

  Goal goal() const {
    return {series_.goal().fpr, series_.goal().first_keys, series_.goal().growth};
  }
  std::uint64_t items() const;     // added to all chains
  std::uint64_t capacity() const;  // of all links; at least that of the first
  // Returns how many items the filter can hold after growth: links are added until there is room
  // for `items`, or until the next link would take more than `max_bytes` allows (0: no limit) or is
  // impossible.
  std::uint64_t reach(std::uint64_t items, std::uint64_t max_bytes) const;
  // Returns a line for each link, and for the first one that does not exist yet: its bytes, bits,
  // probes, capacity, items, and its error when it is full.
  std::vector<std::string> describe_links() const;
  // Estimates the probability that a key that was never added is found now, to within a tenth.
  double error_now() const;
  std::uint64_t first_bytes() const override { return series_.shape_of(1)->bytes(); }

  void encode(Sink out) const override;
  std::unique_ptr<host::Value> clone() const override;
  std::unique_ptr<host::Value> copy() const override;
  host::Figures figures() const override { return {.items = items(), .capacity = capacity()}; }
  host::ErrorRate error_rate() const override { return {error_now(), goal().error}; }

  BloomValue(const Secret& secret, const Hasher& hasher, GrowBloomSeries series)
      : FilterValue(secret, hasher, std::move(series)) {}

 private:
  std::unique_ptr<BloomValue> twin() const;
  bool may_extend(std::uint64_t max_bytes) const;
};

}  // namespace semel::module
