#include "module/types/chain_tags.h"

namespace semel::module {
namespace {

constexpr std::uint16_t kNone = 0xffff;

}  // namespace

std::optional<SiteId> ChainTags::find(std::uint64_t tag) const {
  const auto found = std::find(tags_.begin(), tags_.end(), tag);
  if (found == tags_.end()) return std::nullopt;
  return static_cast<SiteId>(found - tags_.begin());
}

Result<SiteId> ChainTags::admit(std::uint64_t tag) {
  if (const std::optional<SiteId> known = find(tag)) return *known;
  if (tags_.size() >= most_) return Error{Errc::limit, "a filter has too many chains or lives"};
  tags_.push_back(tag);
  return static_cast<SiteId>(tags_.size() - 1);
}

Result<void> ChainTags::begin(std::uint64_t tag) {
  if (find(tag)) return Error{Errc::invalid, "the filter has a chain of this tag"};
  own_ = SEMEL_TRY(admit(tag));
  return {};
}

void ChainTags::encode(Writer& w) const {
  w.u16(own_.value_or(kNone));
  w.u16(static_cast<std::uint16_t>(tags_.size()));
  for (const std::uint64_t tag : tags_) w.u64(tag);
}

Result<ChainTags> ChainTags::decode(Reader& in, std::size_t most) {
  const std::uint16_t own = in.u16();
  const std::uint16_t count = in.u16();
  if (!in.ok() || in.rest() / 8 < count) return Error{Errc::corrupt, "tags of chains: size"};
  if (count > most) return Error{Errc::limit, "a filter has too many chains or lives"};
  ChainTags chains(most);
  for (std::uint16_t i = 0; i < count; ++i) chains.tags_.push_back(in.u64());
  std::vector<std::uint64_t> sorted = chains.tags_;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return Error{Errc::corrupt, "tags of chains: two chains have one tag"};
  }
  if (own != kNone) {
    if (own >= count) return Error{Errc::corrupt, "tags of chains: own chain"};
    chains.own_ = own;
  }
  return chains;
}

}  // namespace semel::module
