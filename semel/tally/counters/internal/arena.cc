#include "semel/tally/counters/internal/arena.h"

#include <algorithm>
#include <bit>
#include <new>
#include <numeric>

#include "semel/bits/internal/huge_pages.h"

namespace semel::tally::internal {
namespace {

constexpr std::size_t kLeastPiece = std::size_t{16} << 10, kMostPiece = std::size_t{64} << 20;

constexpr std::align_val_t kOnALine{64};

// Returns the next size below. There are four for each power of two, which general allocators have
// too.
std::size_t usual_size(std::size_t size) {
  const std::size_t step = std::bit_floor(size) / 4;
  return size / step * step;
}

}  // namespace

Arena::~Arena() {
  for (void* const piece : pieces_) ::operator delete(piece, kOnALine);
}

std::uint64_t Arena::least_piece(std::size_t bytes) {
  return std::max(kLeastPiece, (bytes + kLine - 1) / kLine * kLine);
}

std::uint64_t Arena::next_piece(std::size_t bytes) const {
  const auto usual = std::clamp<std::size_t>(bytes_ / 8, kLeastPiece, kMostPiece);
  return std::max<std::uint64_t>(usual_size(usual) / kLine * kLine, least_piece(bytes));
}

std::size_t Arena::cut_for(std::size_t size) const {
  size = rounded(size);
  return unused_[size / kStep] != nullptr ? 0 : std::lcm(size, kLine);
}

// The piece has at most `most` bytes, unless the least piece with room for `least` has more.
void Arena::take_piece(std::size_t least, std::uint64_t most) {
  const auto size = static_cast<std::size_t>(
      std::max(least_piece(least), std::min(next_piece(least), most / kLine * kLine)));
  pieces_.reserve(pieces_.size() + 1);
  void* const memory = ::operator new(size, kOnALine);
  advise_huge_pages(memory, size);
  pieces_.push_back(memory);
  rest_ = static_cast<std::byte*>(memory);
  rest_size_ = size;
  bytes_ += size;
}

void* Arena::allocate(std::size_t size) {
  if (size > kLargest) {
    void* const memory = ::operator new(size);
    bytes_ += allocated(size);
    used_ += allocated(size);
    return memory;
  }
  size = rounded(size);
  Unused*& unused = unused_[size / kStep];
  if (unused == nullptr) {
    const std::size_t cut = std::lcm(size, kLine);
    if (rest_size_ < cut) take_piece(cut, most_piece_);
    for (std::size_t at = cut; at > 0;) {
      at -= size;
      unused = new (rest_ + at) Unused{unused};
    }
    rest_ += cut;
    rest_size_ -= cut;
  }
  void* const memory = unused;
  unused = unused->next;
  used_ += size;
  return memory;
}

void Arena::release(void* memory, std::size_t size) noexcept {
  if (size > kLargest) {
    ::operator delete(memory);
    bytes_ -= allocated(size);
    used_ -= allocated(size);
    return;
  }
  size = rounded(size);
  used_ -= size;
  Unused*& unused = unused_[size / kStep];
  unused = new (memory) Unused{unused};
}

}  // namespace semel::tally::internal
