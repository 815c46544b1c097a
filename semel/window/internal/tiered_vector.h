// TieredVector: a vector with cheap inserts into its middle.
//
// Contract  A sequence like std::vector. If memory runs out, insert() changes nothing.
// Layout    Up to kBlock things lie in one vector. More things lie in blocks of kBlock, and a last
//           block of 1 to kBlock. Every block but the last is a ring that may begin anywhere, so
//           one thing goes in at its front and another out at its back in one step.
//
//             a to j in blocks of 4      [c d|a b]  [e f g h]  [i j]
//
// Cost      insert and erase move one block, and one thing in each block behind it. At the end they
//           take O(1).
// Memory    Memory depends on the size alone, not on the order of inserts: bytes_for(). The last
//           block grows in steps (size_class).
// Source    Goodrich & Kloss, 'Tiered vectors', 1999, with two tiers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "semel/core/assert.h"
#include "semel/window/internal/generation_time.h"

namespace semel::window_internal {

template <class T, std::size_t kBlock>
class TieredVector {
  static_assert(std::has_single_bit(kBlock) && std::is_trivially_copyable_v<T>);

 public:
  TieredVector() = default;
  TieredVector(const TieredVector& other) {
    reserve(other.size());
    for (std::size_t i = 0; i < other.size(); ++i) push_back(other[i]);
  }
  TieredVector(TieredVector&&) noexcept = default;
  TieredVector& operator=(TieredVector other) noexcept {
    last_ = std::move(other.last_);
    rings_ = std::move(other.rings_);
    return *this;
  }
  ~TieredVector() = default;

  bool empty() const { return last_.empty(); }
  std::size_t size() const { return before_last() + last_.size(); }
  // REQUIRES: index < size().
  const T& operator[](std::size_t index) const {
    const std::size_t block = index / kBlock;
    return block < rings() ? (*rings_)[block][index % kBlock] : last_[index - before_last()];
  }
  T& operator[](std::size_t index) {
    return const_cast<T&>(std::as_const(*this)[index]);  // NOLINT: *this is not const
  }
  // REQUIRES: not empty().
  const T& back() const { return last_.back(); }
  T& back() { return last_.back(); }

  void push_back(const T& thing) {
    make_room();
    last_.push_back(thing);
  }
  // REQUIRES: index <= size().
  void insert(std::size_t index, T thing);
  // REQUIRES: index < size().
  void erase(std::size_t index);
  void pop_back() { erase(size() - 1); }
  // Allocates the first block for this many things at once. REQUIRES: empty().
  void reserve(std::size_t things) {
    SEMEL_ASSERT(empty());
    last_.reserve(size_class(std::min(things, kBlock)));
  }

  // Returns the bytes of memory that this many things take.
  static constexpr std::uint64_t bytes_for(std::uint64_t things) {
    if (things == 0) return 0;
    const std::uint64_t rings = (things - 1) / kBlock;
    return rings * (sizeof(Ring) + kBlock * sizeof(T)) +
           size_class(things - rings * kBlock) * sizeof(T);
  }

  class Iterator {
   public:
    Iterator(const TieredVector& vector, std::size_t index) : vector_(vector), index_(index) {}
    const T& operator*() const { return vector_[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    const TieredVector& vector_;
    std::size_t index_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  bool operator==(const TieredVector& other) const {
    if (size() != other.size()) return false;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!((*this)[i] == other[i])) return false;
    }
    return true;
  }

 private:
  // A block that is full.
  class Ring {
   public:
    // REQUIRES: kBlock things.
    explicit Ring(std::vector<T> things) : things_(std::move(things)) {}

    const T& operator[](std::size_t index) const { return things_[place(index)]; }
    // These two insert one thing, and return the one that no longer fits.
    T insert(std::size_t index, const T& thing);
    T push_front(const T& thing) {
      first_ = place(kBlock - 1);
      return std::exchange(things_[first_], thing);
    }
    // These two remove the first thing, or that at `index`, and add `thing` at the end.
    T pop_front(const T& thing) {
      const T out = std::exchange(things_[first_], thing);
      first_ = place(1);
      return out;
    }
    void erase(std::size_t index, const T& thing) {
      for (std::size_t i = index; i + 1 < kBlock; ++i) things_[place(i)] = things_[place(i + 1)];
      things_[place(kBlock - 1)] = thing;
    }
    // Returns all things in order.
    std::vector<T> take() {
      std::rotate(things_.begin(), things_.begin() + static_cast<std::ptrdiff_t>(first_),
                  things_.end());
      return std::move(things_);
    }

   private:
    std::size_t place(std::size_t index) const { return (first_ + index) % kBlock; }

    std::vector<T> things_;
    std::size_t first_ = 0;
  };

  std::size_t rings() const { return rings_ == nullptr ? 0 : rings_->size(); }
  std::size_t before_last() const { return rings() * kBlock; }
  // Makes room for one more thing in the last block.
  void make_room();
  // Makes the last block as large as it should be, and not empty unless nothing is left.
  void fit();

  std::vector<T> last_;                       // capacity: size_class of its size
  std::unique_ptr<std::vector<Ring>> rings_;  // null if there are none
};

template <class T, std::size_t kBlock>
void TieredVector<T, kBlock>::make_room() {
  if (last_.size() == kBlock) {
    if (rings_ == nullptr) rings_ = std::make_unique<std::vector<Ring>>();
    std::vector<T> next;
    next.reserve(1);
    rings_->reserve(std::bit_ceil(rings_->size() + 1));
    rings_->emplace_back(std::exchange(last_, std::move(next)));
  }
  last_.reserve(size_class(last_.size() + 1));
}

template <class T, std::size_t kBlock>
void TieredVector<T, kBlock>::fit() {
  if (last_.empty() && rings() > 0) {
    last_ = rings_->back().take();
    rings_->pop_back();
    if (rings_->empty()) rings_.reset();
  }
  if (last_.capacity() == size_class(last_.size())) return;
  std::vector<T> fitting;
  fitting.reserve(size_class(last_.size()));
  fitting.assign(last_.begin(), last_.end());
  last_ = std::move(fitting);
}

template <class T, std::size_t kBlock>
void TieredVector<T, kBlock>::insert(std::size_t index, T thing) {
  SEMEL_ASSERT(index <= size());
  make_room();
  std::size_t block = index / kBlock;
  if (block < rings()) {
    thing = (*rings_)[block].insert(index % kBlock, thing);
    while (++block < rings()) thing = (*rings_)[block].push_front(thing);
    index = before_last();
  }
  last_.insert(last_.begin() + static_cast<std::ptrdiff_t>(index - before_last()), thing);
}

template <class T, std::size_t kBlock>
void TieredVector<T, kBlock>::erase(std::size_t index) {
  SEMEL_ASSERT(index < size());
  const std::size_t block = index / kBlock;
  if (block < rings()) {
    // Each block, from the end on, gives its first thing to the one before it.
    T thing = last_.front();
    for (std::size_t i = rings(); --i > block;) thing = (*rings_)[i].pop_front(thing);
    (*rings_)[block].erase(index % kBlock, thing);
    index = before_last();
  }
  last_.erase(last_.begin() + static_cast<std::ptrdiff_t>(index - before_last()));
  fit();
}

// First moves the things between the front of the memory and the start of the ring.
template <class T, std::size_t kBlock>
T TieredVector<T, kBlock>::Ring::insert(std::size_t index, const T& thing) {
  T* const all = things_.data();
  const T out = all[place(kBlock - 1)];
  const std::size_t at = first_ + index;
  if (at < kBlock) {
    if (first_ > 0) {
      std::move_backward(all, all + first_ - 1, all + first_);
      all[0] = all[kBlock - 1];
    }
    std::move_backward(all + at, all + kBlock - 1, all + kBlock);
  } else {
    std::move_backward(all + at - kBlock, all + first_ - 1, all + first_);
  }
  all[at % kBlock] = thing;
  return out;
}

}  // namespace semel::window_internal
