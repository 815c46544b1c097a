#include "semel/window/internal/sequence_set.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "semel/core/assert.h"

namespace semel::window_internal {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

}  // namespace

// Returns the last piece that begins at this chunk or before; kNone if all begin after it.
std::size_t SequenceSet::at_or_before(std::uint64_t chunk) const {
  if (!pieces_.empty() && pieces_.back().chunk() <= chunk) return pieces_.size() - 1;
  std::size_t first = 0, after = pieces_.size();
  while (first < after) {
    const std::size_t middle = first + (after - first) / 2;
    if (pieces_[middle].chunk() <= chunk) {
      first = middle + 1;
    } else {
      after = middle;
    }
  }
  return first == 0 ? kNone : first - 1;
}

bool SequenceSet::contains(std::uint64_t number) const {
  const std::size_t at = at_or_before(number / kChunk);
  if (at == kNone || pieces_[at].end() <= number / kChunk) return false;
  return pieces_[at].run() || (pieces_[at].body >> (number % kChunk) & 1) != 0;
}

void SequenceSet::insert(std::uint64_t number) {
  const std::uint64_t chunk = number / kChunk, bit = std::uint64_t{1} << (number % kChunk);
  const std::size_t at = at_or_before(chunk);
  if (at == kNone || pieces_[at].end() <= chunk) {
    pieces_.insert(at + 1, {chunk * kChunk, bit});  // kNone + 1 is 0
  } else if (Piece& piece = pieces_[at]; !piece.run()) {
    piece.body |= bit;
    if (piece.body == kFull) join_runs(at);
  }
}

std::uint64_t SequenceSet::bytes_with(std::uint64_t number) const {
  const std::size_t at = at_or_before(number / kChunk);
  if (at != kNone && number / kChunk < pieces_[at].end()) return bytes();
  return Pieces::bytes_for(pieces_.size() + 1);
}

// Turns the full chunk at `at` into a run, joined with the runs that it touches.
void SequenceSet::join_runs(std::size_t at) {
  std::size_t first = at, last = at;
  pieces_[at] = {pieces_[at].head + 1, 1};
  if (at > 0 && pieces_[at - 1].run() && pieces_[at - 1].end() == pieces_[at].chunk()) --first;
  if (at + 1 < pieces_.size() && pieces_[at + 1].run() &&
      pieces_[at].end() == pieces_[at + 1].chunk()) {
    ++last;
  }
  pieces_[first].body = pieces_[last].end() - pieces_[first].chunk();
  for (; last > first; --last) pieces_.erase(last);
}

// Pieces overlap only where a run covers others, or a chunk meets itself.
void SequenceSet::insert(const SequenceSet& other) {
  Pieces both;
  const auto put = [&](Piece piece) {
    if (!both.empty() && piece.chunk() < both.back().end()) {
      const Piece& last = both.back();
      if (last.run()) {
        const std::uint64_t end = std::max(last.end(), piece.end());
        piece = {last.head, end - last.chunk()};
      } else if (!piece.run()) {
        piece.body |= last.body;
      }
      both.pop_back();
    }
    if (!piece.run() && piece.body == kFull) piece = {piece.head + 1, 1};
    if (piece.run() && !both.empty() && both.back().run() && both.back().end() == piece.chunk()) {
      both.back().body += piece.body;
    } else {
      both.push_back(piece);
    }
  };
  std::size_t mine = 0, theirs = 0;
  while (mine < pieces_.size() || theirs < other.pieces_.size()) {
    const bool ours =
        theirs == other.pieces_.size() ||
        (mine < pieces_.size() && pieces_[mine].chunk() <= other.pieces_[theirs].chunk());
    put(ours ? pieces_[mine++] : other.pieces_[theirs++]);
  }
  pieces_ = std::move(both);
}

std::uint64_t SequenceSet::size() const {
  uint128 sum = 0;
  for (const Piece& piece : pieces_) {
    sum += piece.run() ? uint128{piece.body} * kChunk
                       : static_cast<unsigned>(std::popcount(piece.body));
  }
  return static_cast<std::uint64_t>(std::min(sum, uint128{kFull}));
}

std::uint64_t SequenceSet::highest() const {
  SEMEL_ASSERT(!pieces_.empty());
  const Piece& last = pieces_.back();
  const auto bits = last.run() ? kChunk : static_cast<std::uint64_t>(std::bit_width(last.body));
  return (last.end() - 1) * kChunk + bits - 1;
}

bool SequenceSet::append(Piece piece) {
  const std::uint64_t kind = piece.head % kChunk;
  if (kind > 1) return false;
  if (kind == 1 && (piece.body == 0 || piece.body > kChunks - piece.chunk())) return false;
  if (kind == 0 && (piece.body == 0 || piece.body == kFull)) return false;
  if (!pieces_.empty()) {
    const Piece& last = pieces_.back();
    if (piece.chunk() < last.end()) return false;
    if (piece.run() && last.run() && piece.chunk() == last.end()) return false;
  }
  pieces_.push_back(piece);
  return true;
}

}  // namespace semel::window_internal
