// ContainerBlocks: the containers of a trie in order, in a few bytes more than their digests.
//
// Contract  A Splice builds a new sequence from blocks of the old one and new containers. The old
//           sequence stays as it is until take() replaces it by the new one.
// Layout    A block has 32 to 64 containers, or fewer if it is the only one. Within a block each
//           path is written as its difference from the path before it. The first path is written in
//           full, so that a binary search finds a block. Each block has the sum of all blocks
//           before it.
// Memory    For each container: 16 bytes of digest; 5 to 8 of path, count and volume; and 1.2 to
//           2.4 for the block (bytes()). Measures add their own bytes, and 0.25 to 0.5 for the
//           block.
// Cost      find: O(log blocks), then a walk over at most 64 containers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "semel/core/codec.h"
#include "semel/index/internal/container.h"

namespace semel::index_internal {

// The position of a container relative to a node, or to a key with all its bits.
enum class Side : std::uint8_t {
  before,
  related,  // at, below or above the node
  after,
};
Side side_of(PackedBits container, const BitPath& node);

class ContainerBlocks {
 public:
  static constexpr std::uint32_t kMost = 64;
  static constexpr std::uint32_t kLeast = 32;

  explicit ContainerBlocks(Measured measured = Measured::no);

  Measured measured() const { return measured_; }
  std::size_t blocks() const { return blocks_.size(); }
  std::size_t count(std::size_t block) const { return blocks_[block].count; }
  std::size_t containers() const { return containers_; }
  // Returns the sum of all blocks before this one. REQUIRES: block <= blocks().
  Aggregate sum_before(std::size_t block) const {
    const Sum& sum = sums_[block];
    return {sum.count, sum.volume, sum.digest, measures_.empty() ? 0 : measures_[block]};
  }
  Aggregate total() const { return sum_before(blocks()); }
  std::size_t bytes() const;  // memory in use, with the overhead of glibc's malloc

  // Walks over the containers from a given one to the last.
  class Walk {
   public:
    bool valid() const { return block_ < blocks_->blocks(); }
    // REQUIRES for these: valid().
    const BitPath& path() const { return now_.path; }
    const Aggregate& sum() const { return now_.sum; }
    const Container& container() const { return now_; }
    void next();

    std::size_t block() const { return block_; }
    std::size_t index() const { return index_; }  // in its block
    const Aggregate& sum_before() const { return before_; }
    bool same_place(const Walk& other) const {
      return block_ == other.block_ && index_ == other.index_;
    }

   private:
    friend class ContainerBlocks;
    Walk(const ContainerBlocks& blocks, std::size_t block) : blocks_(&blocks) { enter(block); }
    void enter(std::size_t block);
    void read(bool first);

    const ContainerBlocks* blocks_;
    std::size_t block_ = 0;
    std::size_t index_ = 0;
    ByteView rest_;
    Container now_;
    Aggregate before_;
  };
  // Returns a walk at the first container of a block, or past the end if there is no such block.
  Walk at(std::size_t block) const { return {*this, block}; }
  // Returns a walk at the first container that lies on this side of the node, or beyond it.
  Walk find(const BitPath& node, Side side) const;
  // Returns the last block that begins before that container, or 0 if none does.
  std::size_t find_block(const BitPath& node, Side side) const;
  // Returns true if the block exists and its first container does not lie after the node.
  bool begins_by(std::size_t block, const BitPath& node) const;
  BitPath last_of(std::size_t block) const;  // the path of its last container

  class Splice;
  void take(Splice&& splice);

 private:
  struct Block {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::uint32_t size;
    std::uint32_t count;
  };
  // An Aggregate without its measure, so that tries without measures do not pay for it.
  struct Sum {
    std::uint64_t count = 0;
    std::uint64_t volume = 0;
    Digest digest = {0, 0};
  };

  ByteView bytes_of(const Block& block) const { return {block.bytes.get(), block.size}; }
  PackedBits first_path(const Block& block) const;

  Measured measured_;
  std::vector<Block> blocks_;
  std::vector<Sum> sums_ = {Sum{}};  // one more than blocks_
  std::vector<int128> measures_;     // empty, or as many as sums_
  std::size_t containers_ = 0;
};

// REQUIRES: containers are added and blocks are kept in order, and an old block is kept at most
// once.
class ContainerBlocks::Splice {
 public:
  explicit Splice(const ContainerBlocks& old) : old_(old) {}

  void add(Container container);
  void keep(std::size_t block);
  void finish();

 private:
  friend class ContainerBlocks;
  struct Part {
    Block made;
    std::size_t kept;  // if `made` has no bytes
    Aggregate sum;
  };

  void flush();
  void write(std::size_t containers);
  std::vector<Container> unpack(const Block& block) const;
  const Block& block_of(const Part& part) const {
    return part.made.bytes ? part.made : old_.blocks_[part.kept];
  }

  const ContainerBlocks& old_;
  std::vector<Part> parts_;
  std::vector<Container> open_;  // not in a block yet
  Bytes buffer_;
};

}  // namespace semel::index_internal
