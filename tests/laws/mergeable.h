// Mergeable: the calls that tests/laws needs of every replicated structure. MergeableFilter: those
// that a series needs of its filters.
//
// A Mergeable is an element of a join semilattice: merge() is its join, compare() is its order, and
// a delta stands for the least state that holds a change. The compiler checks the calls. The laws
// check their promises:
//   * merge is commutative, associative and idempotent, and gives the least upper bound by compare;
//   * every update gives a state that is greater or equal;
//   * merging deltas into one and then into a state equals merging each into the state; states that
//     merged the deltas equal those that merged the states;
//   * a call that fails changes nothing;
//   * equal states, and only those, give equal bytes and equal digests.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <span>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

template <class D>
concept MergeableDelta = std::copyable<D> && std::equality_comparable<D> &&
    requires(const D& delta, D& own, Bytes& out) {
  { own.merge(delta) } -> std::same_as<Result<void>>;
  { delta.empty() } -> std::same_as<bool>;
  { delta.bytes() } -> std::same_as<std::uint64_t>;
  { delta.encode(out) } -> std::same_as<void>;
  { D::decode(ByteView()) } -> std::same_as<Result<D>>;
};

template <class T>
concept Mergeable = std::copyable<T> && std::equality_comparable<T> &&
    MergeableDelta<typename T::Delta> &&
    requires(const T& state, T& own, const typename T::Delta& delta, Digest key, Bytes& out,
             const Hasher& hasher, std::span<const Digest> keys, std::span<bool> found) {
  { T::kRemoves } -> std::convertible_to<bool>;
  { own.merge(state) } -> std::same_as<Result<bool>>;
  { own.merge(delta) } -> std::same_as<Result<bool>>;
  { state.admits(delta) } -> std::same_as<Result<void>>;
  { state.compare(state) } -> std::same_as<Result<std::partial_ordering>>;
  { state.contains(key) } -> std::same_as<bool>;
  { state.contains(keys, found) } -> std::same_as<void>;
  { state.cardinality() } -> std::convertible_to<double>;
  { state.capacity() } -> std::same_as<std::uint64_t>;
  { state.live_fpr() } -> std::same_as<double>;
  { state.bytes() } -> std::same_as<std::uint64_t>;
  { state.digest(hasher) } -> std::same_as<Digest>;
  { state.encode(out) } -> std::same_as<void>;
  { T::decode(ByteView()) } -> std::same_as<Result<T>>;
};

// A Mergeable of fixed shape. It keeps the error given to shape_for() while keys() is at most the
// number given to shape_for(). A delta has the shape of its filter.
template <class F>
concept MergeableFilter = Mergeable<F> &&
    requires(F& filter, const F& state, const typename F::Delta& delta, std::uint64_t keys,
             double fpr, HashId hash) {
  requires std::constructible_from<F, const typename F::Shape&>;
  requires std::constructible_from<typename F::Delta, const typename F::Shape&>;
  { F::shape_for(keys, fpr, hash) } -> std::same_as<Result<typename F::Shape>>;
  { state.shape() } -> std::same_as<const typename F::Shape&>;
  { delta.shape() } -> std::same_as<const typename F::Shape&>;
  { filter.keys() } -> std::same_as<std::uint64_t>;
};

// A filter to which a key is added at most once.
template <class F>
concept GrowOnlyFilter = MergeableFilter<F> && !F::kRemoves &&
                         requires(F & filter, Digest key, typename F::Delta& delta) {
  { filter.add(key) } -> std::convertible_to<Result<bool>>;
  { filter.add(key, &delta) } -> std::convertible_to<Result<bool>>;
};

// A filter in which every add has its own dot, by which it can be removed.
template <class F>
concept ObservedRemoveFilter = MergeableFilter<F> && F::kRemoves &&
    requires(F& filter, Digest key, SiteLife site, Dot dot, typename F::Delta& delta) {
  { filter.add(key, site, &delta) } -> std::same_as<Result<Dot>>;
  { filter.remove(key, dot, &delta) } -> std::same_as<Result<bool>>;
  filter.dots(key);
  filter.context();
};

}  // namespace semel
