#include "semel/window/sequence_set.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "semel/core/assert.h"
#include "semel/window/generation_time.h"

namespace semel {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

}  // namespace

SequenceSet::SequenceSet(const SequenceSet& other) {
  reserve(other.pieces_.size());
  pieces_ = other.pieces_;
}

SequenceSet& SequenceSet::operator=(SequenceSet other) noexcept {
  pieces_ = std::move(other.pieces_);
  return *this;
}

void SequenceSet::reserve(std::uint64_t pieces) {
  SEMEL_ASSERT(pieces_.empty());
  pieces_.reserve(size_class(pieces));
}

// The last piece that begins at this chunk or before; kNone if all begin after it.
std::size_t SequenceSet::at_or_before(std::uint64_t chunk) const {
  if (!pieces_.empty() && pieces_.back().chunk() <= chunk) return pieces_.size() - 1;
  const auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), chunk,
      [](std::uint64_t wanted, const Piece& piece) { return wanted < piece.chunk(); });
  return after == pieces_.begin() ? kNone : static_cast<std::size_t>(after - pieces_.begin()) - 1;
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
    add(at + 1, {chunk * kChunk, bit});
  } else if (Piece& piece = pieces_[at]; !piece.run()) {
    piece.body |= bit;
    if (piece.body == kFull) join_runs(at);
  }
}

std::uint64_t SequenceSet::bytes_with(std::uint64_t number) const {
  const std::size_t at = at_or_before(number / kChunk);
  if (at != kNone && number / kChunk < pieces_[at].end()) return bytes();
  return size_class(pieces_.size() + 1) * sizeof(Piece);
}

void SequenceSet::add(std::size_t at, Piece piece) {
  pieces_.reserve(size_class(pieces_.size() + 1));
  pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(at), piece);
}

// Makes the full chunk at `at` a run, of one piece with the runs that it touches.
void SequenceSet::join_runs(std::size_t at) {
  std::size_t first = at, last = at;
  pieces_[at] = {pieces_[at].head + 1, 1};
  if (at > 0 && pieces_[at - 1].run() && pieces_[at - 1].end() == pieces_[at].chunk()) --first;
  if (at + 1 < pieces_.size() && pieces_[at + 1].run() &&
      pieces_[at].end() == pieces_[at + 1].chunk()) {
    ++last;
  }
  pieces_[first].body = pieces_[last].end() - pieces_[first].chunk();
  pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                pieces_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  fit();
}

void SequenceSet::fit() {
  if (pieces_.capacity() == size_class(pieces_.size())) return;
  std::vector<Piece> fitting;
  fitting.reserve(size_class(pieces_.size()));
  fitting.assign(pieces_.begin(), pieces_.end());
  pieces_ = std::move(fitting);
}

// Pieces overlap only where a run covers others, or a chunk meets itself.
void SequenceSet::insert(const SequenceSet& other) {
  std::vector<Piece> all(pieces_.size() + other.pieces_.size());
  std::merge(pieces_.begin(), pieces_.end(), other.pieces_.begin(), other.pieces_.end(),
             all.begin(), [](const Piece& a, const Piece& b) { return a.chunk() < b.chunk(); });
  pieces_.clear();
  for (Piece piece : all) {
    if (!pieces_.empty() && piece.chunk() < pieces_.back().end()) {
      const Piece& last = pieces_.back();
      if (last.run()) {
        const std::uint64_t end = std::max(last.end(), piece.end());
        piece = {last.head, end - last.chunk()};
      } else if (!piece.run()) {
        piece.body |= last.body;
      }
      pieces_.pop_back();
    }
    if (!piece.run() && piece.body == kFull) piece = {piece.head + 1, 1};
    if (piece.run() && !pieces_.empty() && pieces_.back().run() &&
        pieces_.back().end() == piece.chunk()) {
      pieces_.back().body += piece.body;
    } else {
      pieces_.push_back(piece);
    }
  }
  fit();
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

}  // namespace semel
