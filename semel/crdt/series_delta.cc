#include "semel/crdt/series_delta.h"

#include <utility>

#include "semel/core/assert.h"
#include "semel/crdt/internal/series_codec.h"
#include "semel/crdt/series_links.h"

namespace semel {

template <class Filter>
SeriesDelta<Filter>::SeriesDelta(const SeriesGoal& goal) : goal_(goal) {
  SEMEL_ASSERT(goal.check());
}

template <class Filter>
Result<void> SeriesDelta<Filter>::merge(const SeriesDelta& other) {
  if (goal_ != other.goal_) return Error{Errc::mismatch, "deltas of series of different goals"};
  if (!series_links::within_sites(goal_, parts_, other.parts_)) {
    return Error{Errc::limit, "more sites than the goal allows"};
  }
  std::map<LinkId, Part> merged;
  for (const auto& [id, part] : other.parts_) {
    const auto mine = parts_.find(id);
    if (mine == parts_.end()) {
      merged.emplace(id, part);
      continue;
    }
    Part& both = merged.emplace(*mine).first->second;
    if (const Result<void> done = both.merge(part); !done) return done.error();
  }
  parts_.swap(merged);
  parts_.merge(merged);  // adds those that only this one has
  return {};
}

template <class Filter>
std::uint64_t SeriesDelta<Filter>::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [id, part] : parts_) sum += sizeof id + part.bytes();
  return sum;
}

template <class Filter>
void SeriesDelta<Filter>::encode(Sink out) const {
  series_codec::FrameWriter frame(
      out, {series_codec::kDeltaMagic, series_codec::kKindOf<Filter>, goal_}, parts_.size());
  for (const auto& [id, part] : parts_) frame.link(id, part);
  frame.finish();
}

template <class Filter>
Result<SeriesDelta<Filter>> SeriesDelta<Filter>::decode(ByteView in) {
  const Result<series_codec::Frame> frame =
      series_codec::read(in, series_codec::kDeltaMagic, series_codec::kKindOf<Filter>);
  if (!frame) return frame.error();
  Result<std::map<LinkId, Part>> parts = series_links::decode_parts<Filter, Part>(
      *frame, [](const Part& part) { return part.empty(); });
  if (!parts) return parts.error();
  SeriesDelta delta(frame->goal);
  delta.parts_ = *std::move(parts);
  return delta;
}

template class SeriesDelta<GrowBloom>;
template class SeriesDelta<GrowCuckoo>;
template class SeriesDelta<ObservedCuckoo>;

}  // namespace semel
