// SequenceSet: a set of 64-bit numbers that mostly follow each other.
//
// Contract  The set is exact for any numbers in any order. Equal sets have equal pieces and take
//           equal memory.
// Layout    Pieces of 16 bytes, ascending. A chunk of 64 numbers is a bitmap; full chunks next to
//           each other are one run.
//
//             numbers 0 to 199, and 1000   run 0, 3 chunks | bitmap 192: 8 bits | bitmap 960: 1 bit
//
// Cost      contains: a binary search. insert: the same. A new piece in the middle also moves up to
//           2048 pieces, and one of each 2048 behind them (tiered_vector.h). Nothing moves if
//           numbers ascend.
// Memory    16 bytes for each piece: 16 to 48 for consecutive numbers, however many, and 16 for a
//           number that stands alone. While there are few pieces, they take up to a quarter more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/core/internal/arithmetic.h"
#include "semel/window/internal/tiered_vector.h"

namespace semel::window_internal {

class SequenceSet {
 public:
  static constexpr std::uint64_t kChunk = 64;
  static constexpr std::uint64_t kFull = ~std::uint64_t{0};

  // A chunk has its first number, and a bit for each. A run has its first number plus 1, and its
  // number of chunks.
  struct Piece {
    std::uint64_t head;
    std::uint64_t body;

    bool run() const { return head % kChunk == 1; }
    std::uint64_t chunk() const { return head / kChunk; }
    std::uint64_t chunks() const { return run() ? body : 1; }
    std::uint64_t end() const { return chunk() + chunks(); }  // the chunk after it
    bool operator==(const Piece&) const = default;
  };

  using Pieces = TieredVector<Piece, 2048>;

  bool contains(std::uint64_t number) const;
  void insert(std::uint64_t number);
  void insert(const SequenceSet& other);

  // These return the bytes of memory, now and with this number added.
  std::uint64_t bytes() const { return Pieces::bytes_for(pieces_.size()); }
  std::uint64_t bytes_with(std::uint64_t number) const;
  // Returns how many numbers there are, but at most 2^64 - 1.
  std::uint64_t size() const;
  // REQUIRES: the set is not empty.
  std::uint64_t highest() const;

  const Pieces& pieces() const { return pieces_; }
  // Appends a piece. Returns false if the piece is invalid, or does not follow the last one.
  [[nodiscard]] bool append(Piece piece);
  // Allocates the memory of a few appended pieces at once. REQUIRES: the set is empty.
  void reserve(std::uint64_t pieces) { pieces_.reserve(pieces); }

  bool operator==(const SequenceSet& other) const { return pieces_ == other.pieces_; }

 private:
  static constexpr std::uint64_t kChunks = std::uint64_t{1} << 58;  // of all numbers

  std::size_t at_or_before(std::uint64_t chunk) const;
  void join_runs(std::size_t at);

  Pieces pieces_;
};

}  // namespace semel::window_internal
