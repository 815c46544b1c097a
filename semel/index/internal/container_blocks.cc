#include "semel/index/internal/container_blocks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "semel/core/assert.h"

namespace semel::index_internal {

Side side_of(PackedBits container, const BitPath& node) {
  const std::size_t common = common_bits(container, PackedBits{node.bytes(), node.size()});
  if (common == container.size || common == node.size()) return Side::related;
  return node.bit(common) ? Side::before : Side::after;
}

ContainerBlocks::ContainerBlocks(Measured measured) : measured_(measured) {
  if (measured == Measured::yes) measures_.push_back(0);
}

void ContainerBlocks::Walk::enter(std::size_t block) {
  block_ = std::min(block, blocks_->blocks());
  index_ = 0;
  before_ = blocks_->sum_before(block_);
  if (!valid()) return;
  rest_ = blocks_->bytes_of(blocks_->blocks_[block_]);
  read(true);
}

void ContainerBlocks::Walk::read(bool first) {
  const bool sound = read_container(rest_, first, now_, blocks_->measured_);
  SEMEL_ASSERT(sound);
}

void ContainerBlocks::Walk::next() {
  if (index_ + 1 == blocks_->count(block_)) {
    enter(block_ + 1);
    return;
  }
  before_ += now_.sum;
  ++index_;
  read(false);
}

PackedBits ContainerBlocks::first_path(const Block& block) const {
  Reader in(bytes_of(block));
  const std::uint64_t size = in.varint();
  const ByteView bits = in.view((size + 7) / 8);
  return {text_of(bits), size};
}

std::size_t ContainerBlocks::find_block(const BitPath& node, Side side) const {
  const auto beyond = std::partition_point(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return side_of(first_path(block), node) < side;
  });
  return beyond == blocks_.begin() ? 0 : static_cast<std::size_t>(beyond - blocks_.begin()) - 1;
}

ContainerBlocks::Walk ContainerBlocks::find(const BitPath& node, Side side) const {
  Walk walk = at(find_block(node, side));
  while (walk.valid() && side_of({walk.path().bytes(), walk.path().size()}, node) < side) {
    walk.next();
  }
  return walk;
}

bool ContainerBlocks::begins_by(std::size_t block, const BitPath& node) const {
  return block < blocks() && side_of(first_path(blocks_[block]), node) != Side::after;
}

BitPath ContainerBlocks::last_of(std::size_t block) const {
  Walk walk = at(block);
  while (walk.index() + 1 < count(block)) walk.next();
  return walk.path();
}

std::size_t ContainerBlocks::bytes() const {
  std::size_t sum = blocks_.capacity() * sizeof(Block) + sums_.capacity() * sizeof(Sum) +
                    measures_.capacity() * sizeof(int128);
  for (const Block& block : blocks_) sum += (std::size_t{block.size} + 8 + 15) / 16 * 16;
  return sum;
}

void ContainerBlocks::take(Splice&& splice) {
  SEMEL_ASSERT(&splice.old_ == this && splice.open_.empty());
  std::vector<Block> blocks;
  std::vector<Sum> sums;
  std::vector<int128> measures;
  blocks.reserve(splice.parts_.size());
  sums.reserve(splice.parts_.size() + 1);
  if (measured_ == Measured::yes) measures.reserve(splice.parts_.size() + 1);
  // Nothing fails from here on.
  Aggregate sum;
  const auto add_sum = [&] {
    sums.push_back({sum.count, sum.volume, sum.digest});
    if (measured_ == Measured::yes) measures.push_back(sum.measure);
  };
  containers_ = 0;
  add_sum();
  for (Splice::Part& part : splice.parts_) {
    blocks.push_back(std::move(part.made.bytes ? part.made : blocks_[part.kept]));
    containers_ += blocks.back().count;
    sum += part.sum;
    add_sum();
  }
  blocks_ = std::move(blocks);
  sums_ = std::move(sums);
  measures_ = std::move(measures);
}

void ContainerBlocks::Splice::add(Container container) {
  open_.push_back(std::move(container));
  // Enough containers are held back for the last two blocks to share them evenly.
  if (open_.size() == std::size_t{2} * kMost) write(kMost);
}

void ContainerBlocks::Splice::keep(std::size_t block) {
  if (!open_.empty() && open_.size() < kLeast && parts_.empty()) {
    for (Container& container : unpack(old_.blocks_[block])) open_.push_back(std::move(container));
    return;
  }
  flush();
  Aggregate sum = old_.sum_before(block + 1);
  sum -= old_.sum_before(block);
  parts_.push_back({{}, block, sum});
}

void ContainerBlocks::Splice::finish() { flush(); }

// Turns the open containers into blocks. If they are too few for a block, the block before joins
// them.
void ContainerBlocks::Splice::flush() {
  if (open_.empty()) return;
  if (open_.size() < kLeast && !parts_.empty()) {
    std::vector<Container> joined = unpack(block_of(parts_.back()));
    parts_.pop_back();
    for (Container& container : open_) joined.push_back(std::move(container));
    open_ = std::move(joined);
  }
  if (open_.size() > kMost) write(open_.size() / 2);
  write(open_.size());
}

// Makes a block of the first open containers.
void ContainerBlocks::Splice::write(std::size_t containers) {
  buffer_.clear();
  Writer out(buffer_);
  Part part{};
  const BitPath* before = nullptr;
  for (std::size_t i = 0; i < containers; ++i) {
    write_container(out, open_[i], before, old_.measured_);
    before = &open_[i].path;
    part.sum += open_[i].sum;
  }
  SEMEL_ASSERT(buffer_.size() <= std::numeric_limits<std::uint32_t>::max());
  part.made.bytes = std::make_unique<std::uint8_t[]>(buffer_.size());
  part.made.size = static_cast<std::uint32_t>(buffer_.size());
  part.made.count = static_cast<std::uint32_t>(containers);
  std::copy(buffer_.begin(), buffer_.end(), part.made.bytes.get());
  parts_.push_back(std::move(part));
  open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(containers));
}

std::vector<Container> ContainerBlocks::Splice::unpack(const Block& block) const {
  std::vector<Container> containers(block.count);
  ByteView in = old_.bytes_of(block);
  Container container;
  for (std::size_t i = 0; i < block.count; ++i) {
    const bool sound = read_container(in, i == 0, container, old_.measured_);
    SEMEL_ASSERT(sound);
    containers[i] = container;
  }
  return containers;
}

}  // namespace semel::index_internal
