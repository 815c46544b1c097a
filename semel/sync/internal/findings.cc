#include "semel/sync/internal/findings.h"

#include <utility>

#include "semel/sync/internal/key_tally.h"

namespace semel::sync_internal {

void Findings::begin(const Aggregate& here, const Aggregate& there) {
  *this = Findings(keep_);
  here_ = here;
  there_ = there;
  unexplained_ = here.digest;
  unexplained_ ^= there.digest;
}

void Findings::add_ours(std::string_view key, const Digest& digest) {
  ours_.push_back({std::string(key), digest});
  unexplained_ ^= digest;
}

void Findings::add_theirs(std::string_view key, std::optional<std::string_view> value,
                          const Digest& digest) {
  add_theirs(1, digest);
  their_keys_.push_back(KeyTally::hash(key));
  if (keep_ == Keep::nothing) return;
  Theirs theirs{std::nullopt, digest};
  if (value && keep_ == Keep::records) theirs.value = std::string(*value);
  theirs_.insert_or_assign(std::string(key), std::move(theirs));
}

void Findings::add_theirs(std::uint64_t count, const Digest& together) {
  theirs_count_ += count;
  unexplained_ ^= together;
}

bool Findings::explained() const {
  return unexplained_ == Digest{0, 0} && here_.count + theirs_count_ == there_.count + ours_.size();
}

}  // namespace semel::sync_internal
