// SlicedNode: a sliced filter behind the interface of a slice, so that an overloaded node of a tree
// can itself be spread over slices.
//
// Contract  The contract is that of slice.h. start() does all the work. The first slice of each id
//           serves its claims, under a key that differs from that of the sliced filter's own
//           claims. A call of claims fails if a slice that must serve them fails. For test, set and
//           test_and_set the rules of the sliced filter decide how failed slices count.
// Threads   A call needs the object to itself. test_and_set is atomic among producers if the sliced
//           filter says Producers::many, or serves this node alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/assert.h"
#include "semel/slices/slice.h"
#include "semel/slices/sliced_filter.h"

namespace semel {

class SEMEL_API SlicedNode final : public Slice {
 public:
  // `slices` are those of the filter; they serve the claims.
  SlicedNode(SlicedFilter filter, std::vector<Slice*> slices)
      : filter_(std::move(filter)), slices_(std::move(slices)) {
    SEMEL_ASSERT(slices_.size() == filter_.placement().slices());
  }

  void start(SliceCall& call) override;
  void finish(SliceCall&) override {}

  std::uint64_t bytes() const override { return filter_.bytes(); }
  double false_positive_rate() const override { return filter_.false_positive_rate(); }

  const SlicedFilter& filter() const { return filter_; }

 private:
  void serve_claims(SliceCall& call);

  SlicedFilter filter_;
  std::vector<Slice*> slices_;
};

}  // namespace semel
