// Whatever an outside program may do with the public classes links, also with the shared library:
// copies, moves, comparisons, and every function that a header defines itself
// (-fkeep-inline-functions).
#include <compare>
#include <concepts>
#include <cstdio>
#include <type_traits>
#include <utility>

#include "semel/core/api.h"
#include "semel/core/assert.h"
#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/hidden.h"
#include "semel/core/int128.h"
#include "semel/core/limits.h"
#include "semel/core/result.h"
#include "semel/core/sink.h"
#include "semel/crdt/delta_log.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series.h"
#include "semel/crdt/series_goal.h"
#include "semel/crdt/version_vector.h"
#include "semel/filter/bloom_filter.h"
#include "semel/filter/bloom_math.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"
#include "semel/hash/keyed_digest.h"
#include "semel/index/aggregate.h"
#include "semel/index/bit_path.h"
#include "semel/index/entry_digest.h"
#include "semel/index/floret.h"
#include "semel/index/indexed_store.h"
#include "semel/index/nye_trie.h"
#include "semel/sift/claim_table.h"
#include "semel/sift/sifter.h"
#include "semel/slices/bloom_tree.h"
#include "semel/slices/placement.h"
#include "semel/slices/slice.h"
#include "semel/slices/sliced_filter.h"
#include "semel/slices/sliced_node.h"
#include "semel/slices/thread_slice.h"
#include "semel/slices/tree_shape.h"
#include "semel/slices/window_slice.h"
#include "semel/store/key_range.h"
#include "semel/store/memory_store.h"
#include "semel/store/ordered_store.h"
#include "semel/store/range_set.h"
#include "semel/sync/peer.h"
#include "semel/sync/plan.h"
#include "semel/sync/replica.h"
#include "semel/sync/resolver.h"
#include "semel/sync/responder.h"
#include "semel/sync/sync.h"
#include "semel/tally/counters/name_range.h"
#include "semel/tally/members.h"
#include "semel/tally/operation.h"
#include "semel/tally/recognition.h"
#include "semel/tally/store/tally_store.h"
#include "semel/tally/table.h"
#include "semel/tally/table_info.h"
#include "semel/window/client_window.h"
#include "semel/window/window.h"

namespace {

// Takes the address of what the compiler generates for a class where it is used.
template <class T>
int uses() {
  int used = 0;
  const auto use = [&](auto function) {
    volatile auto kept = function;
    used += kept != nullptr ? 1 : 0;
  };
  if constexpr (std::copy_constructible<T>) use(+[](const T& from) { return new T(from); });
  if constexpr (std::move_constructible<T>) use(+[](T&& from) { return new T(std::move(from)); });
  if constexpr (std::is_copy_assignable_v<T>) use(+[](T& to, const T& from) { to = from; });
  if constexpr (std::is_move_assignable_v<T>) use(+[](T& to, T&& from) { to = std::move(from); });
  if constexpr (std::equality_comparable<T>) use(+[](const T& a, const T& b) { return a == b; });
  if constexpr (std::destructible<T>) use(+[](T* old) { delete old; });
  return used;
}

template <class... Types>
int uses_all() {
  return (uses<Types>() + ...);
}

}  // namespace

int main() {
  const int used = uses_all<
      semel::Clock, semel::SystemClock, semel::ManualClock, semel::Pieces, semel::Secret,
      semel::DigestKey, semel::BloomShape, semel::BloomFilter, semel::CuckooShape,
      semel::CuckooFilter, semel::ClientWindow, semel::Window, semel::BloomDelta, semel::GrowBloom,
      semel::CuckooDelta, semel::GrowCuckoo, semel::ObservedDelta, semel::ObservedCuckoo,
      semel::SeriesDelta<semel::GrowBloom>, semel::GrowSeries<semel::GrowBloom>,
      semel::GrowSeries<semel::GrowCuckoo>, semel::ObservedSeries<semel::ObservedCuckoo>,
      semel::SeriesGoal, semel::VersionVector, semel::ClaimTable, semel::Sifter, semel::TreeRules,
      semel::TreeLoad, semel::BloomTree, semel::Placement, semel::Slice, semel::LoadReport,
      semel::SlicedFilter, semel::SlicedNode, semel::ThreadSlice, semel::TreeShape,
      semel::MemoryStore, semel::Merger, semel::Cursor, semel::ChangeObserver, semel::OrderedStore,
      semel::ForwardingStore, semel::RangeSet, semel::BitPath, semel::Floret, semel::IndexedStore,
      semel::NyeTrie, semel::SyncPeer, semel::SyncPrediction, semel::Replica, semel::Resolver,
      semel::Responder, semel::LocalPeer, semel::tally::Members, semel::tally::OperationId,
      semel::tally::Table, semel::tally::TallyStore>();
  std::printf("%d functions\n", used);
}
