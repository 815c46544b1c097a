#include "semel/sync/findings.h"

#include <algorithm>
#include <iterator>

namespace semel {
namespace {

std::uint64_t key_hash(std::string_view key) { return digest(key, 0).lo; }

}  // namespace

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
  their_keys_.push_back(key_hash(key));
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

std::uint64_t Findings::changed() const {
  std::vector<std::uint64_t> ours;
  ours.reserve(ours_.size());
  for (const Ours& one : ours_) ours.push_back(key_hash(one.key));
  std::vector<std::uint64_t> theirs = their_keys_;
  std::ranges::sort(ours);
  std::ranges::sort(theirs);
  std::vector<std::uint64_t> both;
  std::ranges::set_intersection(ours, theirs, std::back_inserter(both));
  return both.size();
}

}  // namespace semel
