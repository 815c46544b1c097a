// SharedEntries: the records of a table's store that sites share, as a store of their own.
//
// Contract  Reads go to the store. Written entries arrive at the table, which joins them with its
//           own and decides what to keep. Nothing can be removed: the table drops entries itself.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/core/result.h"
#include "semel/store/ordered_store.h"
#include "semel/tally/internal/logged_operation.h"
#include "semel/tally/internal/site_view.h"

namespace semel::tally::internal {

// Returns the keys of the records that sites share.
const KeyRange& shared_range();

struct ArrivedEntries {
  std::vector<Operation> operations;
  std::map<SiteId, SiteView> views;

  // Errc::outside for other keys, Errc::unsupported for removals, Errc::corrupt for damage.
  static Result<ArrivedEntries> decode(std::span<const RecordWrite> writes);
};

class SharedEntries final : public ForwardingStore {
 public:
  using Arrive = std::function<Result<void>(ArrivedEntries)>;
  using Sync = std::function<Result<void>()>;

  SharedEntries(OrderedStore& store, Arrive arrive, Sync sync)
      : ForwardingStore(store), arrive_(std::move(arrive)), sync_(std::move(sync)) {}

  Result<void> write(std::span<const RecordWrite> writes) override;
  Result<void> remove_range(const KeyRange& range) override;
  Result<void> sync() override { return sync_(); }
  Result<void> update(std::span<const std::string_view> keys, const Become& become) override;

 private:
  Arrive arrive_;
  Sync sync_;
};

}  // namespace semel::tally::internal
