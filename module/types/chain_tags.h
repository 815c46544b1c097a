// ChainTags: the chains of a filter behind a key, and which of them the key adds to.
//
// A chain of a series (semel/crdt/series.h) belongs to the one that adds to it. In a key it is
// named by a tag of 64 random bits, which it keeps through copies, dumps and merges. Its alias, the
// SiteId in the series, is its place in the list of tags of this key. So two filters merge chain by
// chain: chains of one tag are copies of one chain, and join.
//
// A key adds only to its own chain. A copy of a key has the same chains, and no own chain until it
// takes a fresh tag. Additions of two keys to one chain could not be told apart.
//
// The lives of a cuckoo filter (module/types/cuckoo_value.h) are named in the same way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"

namespace semel::module {

class ChainTags {
 public:
  static constexpr std::size_t kMost = 4096;         // chains
  static constexpr std::size_t kMostLives = 65'535;  // of a cuckoo filter

  explicit ChainTags(std::size_t most = kMost) : most_(most) {}

  std::optional<SiteId> own() const { return own_; }
  // Gives up the own chain: the next addition needs a fresh one.
  void disown() { own_.reset(); }

  std::size_t size() const { return tags_.size(); }
  // REQUIRES: alias < size().
  std::uint64_t tag(SiteId alias) const { return tags_[alias]; }
  std::optional<SiteId> find(std::uint64_t tag) const;

  // Returns the alias of a tag, a new one if the tag is new. Errc::limit if there are too many.
  Result<SiteId> admit(std::uint64_t tag);
  // Begins a new chain of this tag as the own one. Errc::invalid, and no change, if there is a
  // chain of this tag.
  Result<void> begin(std::uint64_t tag);

  void encode(Writer& w) const;  // docs/formats/module_values.md
  static Result<ChainTags> decode(Reader& in, std::size_t most = kMost);

  bool operator==(const ChainTags&) const = default;

 private:
  std::size_t most_;
  std::vector<std::uint64_t> tags_;  // by alias; all different
  std::optional<SiteId> own_;
};

}  // namespace semel::module
