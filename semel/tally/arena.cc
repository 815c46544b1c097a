#include "semel/tally/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <numeric>

namespace semel::tally {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLeastPiece = std::size_t{16} << 10, kMostPiece = std::size_t{64} << 20;

std::align_val_t alignment_of(std::size_t piece) {
  return std::align_val_t{piece < kHugePage ? 64 : kHugePage};
}

}  // namespace

Arena::~Arena() {
  for (const Piece& piece : pieces_) ::operator delete(piece.memory, alignment_of(piece.size));
}

void Arena::take_piece(std::size_t least) {
  std::size_t size = std::clamp<std::size_t>(bytes_ / 8, kLeastPiece, kMostPiece);
  size = std::max(size, least) / kLine * kLine;
  if (size >= kHugePage) size = size / kHugePage * kHugePage;
  pieces_.reserve(pieces_.size() + 1);
  void* const memory = ::operator new(size, alignment_of(size));
  if (size >= kHugePage) ::madvise(memory, size, MADV_HUGEPAGE);  // advice: it may be declined
  pieces_.push_back({memory, size});
  rest_ = static_cast<std::byte*>(memory);
  rest_size_ = size;
  bytes_ += size;
}

void* Arena::allocate(std::size_t size) {
  if (size > kLargest) {
    void* const memory = ::operator new(size);
    bytes_ += allocated(size);
    return memory;
  }
  size = rounded(size);
  Unused*& unused = unused_[size / kStep];
  if (unused == nullptr) {
    const std::size_t cut = std::lcm(size, kLine);
    if (rest_size_ < cut) take_piece(cut);
    for (std::size_t at = cut; at > 0;) {
      at -= size;
      unused = new (rest_ + at) Unused{unused};
    }
    rest_ += cut;
    rest_size_ -= cut;
  }
  void* const memory = unused;
  unused = unused->next;
  return memory;
}

void Arena::release(void* memory, std::size_t size) noexcept {
  if (size > kLargest) {
    ::operator delete(memory);
    bytes_ -= allocated(size);
    return;
  }
  Unused*& unused = unused_[rounded(size) / kStep];
  unused = new (memory) Unused{unused};
}

}  // namespace semel::tally
