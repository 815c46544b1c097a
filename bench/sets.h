// Sets as the benchmarks see them, and the contenders made from them.
//
// A set is any class with
//
//   add(key)                  one Key
//   contains(key) -> bool     one Key
//   contains(keys, found)     many, if it can: spans of at most kBatch
//   fill(keys)                many at once, if it can: a span of at most kBatch
//   bits()                    of all its memory
//   seal()                    if it must be told that all keys are in
//   add(keys, added)          many, if it can      } where adding is
//   clear()                   as it was when new   } measured
//
// Each hashes keys in its own way, and its time includes that. Ours also take digests, so that the
// part below the hashing can be measured alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/harness.h"
#include "bench/keys.h"
#include "semel/core/assert.h"

namespace semel::bench {

inline constexpr std::size_t kBatch = 512;

// Calls visit(part) for the parts of `all`, at most kBatch long, in order.
template <class T, class Visit>
void for_each_batch(std::span<const T> all, Visit visit) {
  for (; !all.empty(); all = all.subspan(std::min(kBatch, all.size()))) {
    visit(all.first(std::min(kBatch, all.size())));
  }
}

// A filter of ours, with the hashing before it.
template <class Filter>
class Hashed {
 public:
  template <class Shape>
  explicit Hashed(const Shape& shape) : filter_(shape) {}

  bool add(const Key& key) { return put(digest_of(key)); }
  void add(std::span<const Key> keys, std::span<bool> added) {
    std::array<Digest, kBatch> digests;
    filter_.add(hash(keys, digests), added);
  }
  void fill(std::span<const Key> keys) {
    std::array<Digest, kBatch> digests;
    if constexpr (requires { filter_.insert(digests); }) {
      SEMEL_ASSERT(filter_.insert(hash(keys, digests)) == keys.size());
    } else {
      std::array<bool, kBatch> added;
      filter_.add(hash(keys, digests), std::span(added).first(keys.size()));
    }
  }
  bool contains(const Key& key) const { return filter_.contains(digest_of(key)); }
  void contains(std::span<const Key> keys, std::span<bool> found) const {
    std::array<Digest, kBatch> digests;
    filter_.contains(hash(keys, digests), found);
  }
  bool contains(const Digest& digest) const { return filter_.contains(digest); }
  void contains(std::span<const Digest> digests, std::span<bool> found) const {
    filter_.contains(digests, found);
  }
  std::uint64_t bits() const { return filter_.bytes() * 8; }
  void clear() { filter_ = Filter(filter_.shape()); }
  double live_fpr() const { return filter_.live_fpr(); }
  bool remove(const Key& key) { return filter_.remove(digest_of(key)); }

 private:
  bool put(Digest digest) {
    if constexpr (requires { filter_.add(digest); }) {
      return filter_.add(digest);
    } else {
      return filter_.insert(digest).has_value();
    }
  }
  static std::span<const Digest> hash(std::span<const Key> keys,
                                      std::array<Digest, kBatch>& digests) {
    std::transform(keys.begin(), keys.end(), digests.begin(), digest_of);
    return {digests.data(), keys.size()};
  }

  Filter filter_;
};

// Adds the first `keys` keys to each of the sets.
template <class... Sets>
void fill(std::uint64_t keys, Sets&... sets) {
  std::array<Key, kBatch> buffer;
  for (std::uint64_t first = 0; first < keys; first += kBatch) {
    const std::span<Key> some =
        std::span(buffer).first(std::min<std::uint64_t>(kBatch, keys - first));
    for (std::size_t i = 0; i < some.size(); ++i) some[i] = key_of(first + i);
    const auto add_to = [&](auto& set) {
      if constexpr (requires { set.fill(some); }) {
        set.fill(some);
      } else {
        for (const Key& key : some) set.add(key);
      }
    };
    (add_to(sets), ...);
  }
  const auto seal = [](auto& set) {
    if constexpr (requires { set.seal(); }) set.seal();
  };
  (seal(sets), ...);
}

template <class Set>
double bits_per_key(const Set& set, std::uint64_t keys) {
  return static_cast<double>(set.bits()) / static_cast<double>(keys);
}

inline std::uint64_t count_yes(std::span<const bool> answers) {
  return static_cast<std::uint64_t>(std::count(answers.begin(), answers.end(), true));
}

// Lookups, of keys or of digests. `set` must outlive the contender, here and below.
template <class Items, class Set>
std::uint64_t look_up_one_by_one(const Set& set, Items items) {
  std::uint64_t yes = 0;
  for (const auto& item : items) yes += set.contains(item);
  return yes;
}

template <class Items, class Set>
std::uint64_t look_up_in_batches(const Set& set, Items items) {
  std::uint64_t yes = 0;
  std::array<bool, kBatch> found;
  for_each_batch(items, [&](auto part) {
    set.contains(part, std::span(found).first(part.size()));
    yes += count_yes(std::span(found).first(part.size()));
  });
  return yes;
}

template <class Set>
Contender one_by_one(std::string name, const Set& set, std::uint64_t keys) {
  return {std::move(name), [&set](const Slice& s) { return look_up_one_by_one(set, s.keys); },
          bits_per_key(set, keys)};
}
template <class Set>
Contender batched(std::string name, const Set& set, std::uint64_t keys) {
  return {std::move(name), [&set](const Slice& s) { return look_up_in_batches(set, s.keys); },
          bits_per_key(set, keys)};
}
template <class Set>
Contender digests_one_by_one(std::string name, const Set& set, std::uint64_t keys) {
  return {std::move(name), [&set](const Slice& s) { return look_up_one_by_one(set, s.digests); },
          bits_per_key(set, keys)};
}
template <class Set>
Contender digests_batched(std::string name, const Set& set, std::uint64_t keys) {
  return {std::move(name), [&set](const Slice& s) { return look_up_in_batches(set, s.digests); },
          bits_per_key(set, keys)};
}

// Lookups of absent keys, then of present ones, to be measured in the same rounds. `each` is called
// for both with a function that adds a comparison: compare(what, ours, peers).
template <class Each>
std::vector<Comparison> lookups(const std::string& id, std::uint64_t keys, Each each) {
  std::vector<Comparison> comparisons;
  for (const bool there : {false, true}) {
    each([&](const std::string& what, const Contender& ours, const std::vector<Contender>& peers) {
      comparisons.push_back({.id = id + (there ? "/present-" : "/absent-") + what,
                             .workload = there ? present_keys(keys) : absent_keys(keys),
                             .ours = ours,
                             .peers = peers});
    });
  }
  return comparisons;
}

// Adds, and clears the set whenever new_keys(keys) begins again.
template <class Set>
Contender adder(std::string name, Set& set, std::uint64_t keys,
                std::function<std::uint64_t(const Slice&)> work) {
  const std::size_t rounds = keys / new_keys(keys).slice;
  return {std::move(name), std::move(work), bits_per_key(set, keys),
          [&set, rounds](std::size_t round) {
            if (round % rounds == 0) set.clear();
          }};
}

template <class Set>
Contender adding_one_by_one(std::string name, Set& set, std::uint64_t keys) {
  return adder(std::move(name), set, keys, [&set](const Slice& slice) {
    std::uint64_t added = 0;
    for (const Key& key : slice.keys) {
      if constexpr (std::is_void_v<decltype(set.add(key))>) {
        set.add(key);
      } else {
        added += set.add(key);
      }
    }
    return added;
  });
}

template <class Set>
Contender adding_batched(std::string name, Set& set, std::uint64_t keys) {
  return adder(std::move(name), set, keys, [&set](const Slice& slice) {
    std::uint64_t added = 0;
    std::array<bool, kBatch> is_new{};
    for_each_batch(slice.keys, [&](std::span<const Key> part) {
      set.add(part, std::span(is_new).first(part.size()));
      added += count_yes(std::span(is_new).first(part.size()));
    });
    return added;
  });
}

}  // namespace semel::bench
