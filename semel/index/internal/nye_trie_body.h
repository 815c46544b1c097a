// The state of a NyeTrie: its containers, and what is marked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "semel/index/internal/container_blocks.h"
#include "semel/index/internal/key_buffer.h"
#include "semel/index/nye_trie.h"

namespace semel {
namespace index_internal {

// Gaps between containers hold no record. A key that is written there marks the gap. Gap i lies
// before container i; one more gap follows the last container.
class Marks {
 public:
  struct OfBlock {
    std::uint64_t containers = 0;
    std::uint64_t gaps = 0;
  };
  bool any() const { return !blocks_.empty() || last_gap_; }
  void mark_container(const ContainerBlocks& blocks, const ContainerBlocks::Walk& at);
  void mark_gap_before(const ContainerBlocks& blocks, const ContainerBlocks::Walk& at);
  OfBlock of(std::size_t block) const { return blocks_.empty() ? OfBlock{} : blocks_[block]; }
  bool container(const ContainerBlocks::Walk& at) const {
    return (of(at.block()).containers >> at.index() & 1) != 0;
  }
  bool gap_before(const ContainerBlocks::Walk& at) const {
    return (of(at.block()).gaps >> at.index() & 1) != 0;
  }
  bool last_gap() const { return last_gap_; }
  std::size_t bytes() const { return blocks_.capacity() * sizeof(OfBlock); }

 private:
  std::vector<OfBlock> blocks_;  // empty if nothing is marked
  bool last_gap_ = false;
};

}  // namespace index_internal

struct NyeTrie::Body {
  using Marks = index_internal::Marks;
  class Rebuild;
  using Walk = index_internal::ContainerBlocks::Walk;
  // The bytes of a block's containers before its first mark and after its last.
  struct Margins {
    std::uint64_t before = 0;
    std::uint64_t after = 0;
  };

  Body(std::uint32_t burst, const EntryDigest& entry_digest, RecordMeasure measure_of)
      : burst_bytes(burst),
        digest(entry_digest),
        measure(measure_of),
        blocks(measure == nullptr ? index_internal::Measured::no : index_internal::Measured::yes) {}

  // Returns the first container that has keys from this one on, or the end if there is no key.
  Walk at_or_after(const std::optional<std::string>& key) const;
  void settle();
  void mark_pending(Marks& to) const;
  Margins margins(std::size_t block) const;
  std::vector<bool> blocks_to_rebuild() const;
  // `with` is not const. Const calls, which may run in parallel, each pass a copy of `digest`.
  Aggregate of_record(std::string_view key, std::string_view value, EntryDigest& with) const;
  Result<Aggregate> read(const KeyRange& range, Cursor& cursor) const;

  std::uint32_t burst_bytes;
  EntryDigest digest;
  RecordMeasure measure;
  index_internal::ContainerBlocks blocks;
  Marks marks;
  index_internal::KeyBuffer pending;  // marked keys that are not looked up yet
};

}  // namespace semel
