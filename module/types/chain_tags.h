// ChainTags: the chains of a filter behind a key, and which of them the key adds to.
//
// A chain of a series (semel/crdt/series.h) belongs to whoever adds to it. In a key it is named by
// a tag of 64 random bits, which it keeps through copies, dumps and merges; its alias, the SiteId
// in the series, is its place in the list of tags of this key. So two filters merge chain by chain:
// chains of one tag are copies of one chain, and join.
//
// A key adds to its own chain alone. A copy of a key has the same chains, and none of its own until
// it takes a fresh tag: two keys that added to one chain could tell their additions no more apart.
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
#include "semel/crdt/series_goal.h"

namespace semel::module {

class ChainTags {
 public:
  static constexpr std::size_t kMost = 4096;         // chains
  static constexpr std::size_t kMostLives = 65'535;  // of a cuckoo filter

  explicit ChainTags(std::size_t most = kMost) : most_(most) {}

  std::optional<SiteId> own() const { return own_; }
  // The next addition needs a fresh chain.
  void disown() { own_.reset(); }

  std::size_t size() const { return tags_.size(); }
  // REQUIRES: alias < size().
  std::uint64_t tag(SiteId alias) const { return tags_[alias]; }
  std::optional<SiteId> find(std::uint64_t tag) const;

  // The alias of a tag, which is given one if it has none. Errc::limit if there are too many.
  Result<SiteId> admit(std::uint64_t tag);
  // Makes this the own chain. Errc::invalid, and no change, if the tag is of a chain that there is.
  Result<void> begin(std::uint64_t tag);

  void encode(Sink out) const;  // docs/formats/module_bloom_v1.md
  static Result<ChainTags> decode(Reader& in, std::size_t most = kMost);

  bool operator==(const ChainTags&) const = default;

 private:
  std::size_t most_;
  std::vector<std::uint64_t> tags_;  // by alias; all different
  std::optional<SiteId> own_;
};

// A number that names all that two filters must agree on to merge: goal and hash.
std::uint64_t name_of(const SeriesGoal& goal);

// Why an addition was refused.
enum class Refusal : std::uint8_t {
  none,
  full,     // the filter does not grow
  last,     // no further link is possible
  memory,   // a further link would take more bytes than allowed
  machine,  // or than there are
};

}  // namespace semel::module
