// SeriesDelta: the changes of a series, link by link.
//
// Contract  Deltas merge in any order, any number of times. Only deltas with equal goals merge.
// Cost      merge: merges and copies the deltas of the links that are in both.
// Format    docs/formats/series_delta_v1.md.
#pragma once

#include <cstdint>
#include <map>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series_goal.h"

namespace semel {

template <class Filter>
class SeriesDelta {
 public:
  using Part = typename Filter::Delta;

  // Makes an empty delta. REQUIRES: goal.check().
  explicit SeriesDelta(const SeriesGoal& goal);

  // Errc::mismatch if the goals differ or the two contradict each other about a link. Errc::limit
  // if both together come from more sites than the goal allows. Nothing changes then.
  Result<void> merge(const SeriesDelta& other);

  const SeriesGoal& goal() const { return goal_; }
  bool empty() const { return parts_.empty(); }
  std::uint64_t bytes() const;
  const std::map<LinkId, Part>& parts() const { return parts_; }

  void encode(Sink out) const;  // equal deltas give equal bytes
  // Reads one delta that fills `in` exactly. `in` is untrusted. Errc::mismatch if a part does not
  // have the shape that the goal gives it here. Errc::limit for too many sites.
  static Result<SeriesDelta> decode(ByteView in);

  bool operator==(const SeriesDelta&) const = default;

 private:
  template <class>
  friend class SeriesBase;

  // Lets `update` add to the part of this link.
  template <class Update>
  auto change(LinkId id, const typename Filter::Shape& shape, Update update) {
    const auto part = parts_.try_emplace(id, shape).first;
    auto result = update(part->second);
    if (part->second.empty()) parts_.erase(part);
    return result;
  }

  SeriesGoal goal_;
  std::map<LinkId, Part> parts_;  // none is empty
};

extern template class SeriesDelta<GrowBloom>;
extern template class SeriesDelta<GrowCuckoo>;
extern template class SeriesDelta<ObservedCuckoo>;

}  // namespace semel
