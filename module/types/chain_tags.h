// ChainTags: the chains of a filter behind a key, and which of them the key adds to.
//
// A chain of a series (semel/crdt/series.h) has one writer. A tag of 64 random bits names the
// chain, and stays with it through copies, dumps and merges. The alias of a chain is its place in
// the key's list of tags; the series uses it as SiteId. So two filters merge chain by chain: chains
// of one tag are copies of one chain, and join.
//
// A key adds only to its own chain. A copy of a key has the same chains. None of them is its own
// until it takes a fresh tag: additions of two keys to one chain could not be told apart.
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
  // Gives up the key's own chain: the next addition needs a fresh one.
  void disown() { own_.reset(); }

  std::size_t size() const { return tags_.size(); }
  // REQUIRES: alias < size().
  std::uint64_t tag(SiteId alias) const { return tags_[alias]; }
  std::optional<SiteId> find(std::uint64_t tag) const;

  // Returns the alias of a tag, a new one if the tag is new. Errc::limit if there are too many.
  Result<SiteId> admit(std::uint64_t tag);
  // Begins a new chain with this tag and makes it the key's own. Errc::invalid, and no change, if
  // there is a chain with this tag.
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
