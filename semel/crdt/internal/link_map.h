// LinkMap: the links of a series in order, and a flat list of them for fast lookups.
//
// Contract  A map from LinkId to filter, with the capacity of each link. entries() lists the links
//           in ascending order; those of one chain stand together. When memory runs out, nothing
//           changes.
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "semel/crdt/series_goal.h"

namespace semel::crdt_internal {

template <class Filter>
class LinkMap {
 public:
  struct Entry {
    LinkId id;
    std::uint64_t capacity;  // in keys
    Filter* filter;

    // Returns how many more keys the link takes.
    std::uint64_t room() const {
      const std::uint64_t keys = filter->keys();
      return keys < capacity ? capacity - keys : 0;
    }
  };

  LinkMap() = default;
  LinkMap(const LinkMap& other) : map_(other.map_), entries_(other.entries_) { point(); }
  LinkMap(LinkMap&& other) noexcept
      : map_(std::move(other.map_)), entries_(std::exchange(other.entries_, {})) {}
  LinkMap& operator=(LinkMap other) noexcept {
    map_.swap(other.map_);
    entries_.swap(other.entries_);
    return *this;
  }
  ~LinkMap() = default;

  const std::map<LinkId, Filter>& map() const { return map_; }
  std::span<const Entry> entries() const { return entries_; }
  std::span<const Entry> chain(SiteId chain) const {
    const auto first = std::partition_point(entries_.begin(), entries_.end(),
                                            [&](const Entry& e) { return e.id.chain < chain; });
    const auto last = std::partition_point(first, entries_.end(),
                                           [&](const Entry& e) { return e.id.chain == chain; });
    return {first, last};
  }
  // Returns nullptr if there is no such link.
  Filter* find(LinkId id) const {
    const auto entry = std::partition_point(entries_.begin(), entries_.end(),
                                            [&](const Entry& e) { return e.id < id; });
    return entry == entries_.end() || entry->id != id ? nullptr : entry->filter;
  }

  // Takes these links. REQUIRES: none of them is here, and the goal has a capacity for each.
  void take(std::map<LinkId, Filter>&& links, const SeriesGoal& goal) {
    entries_.reserve(entries_.size() + links.size());
    const auto middle = static_cast<std::ptrdiff_t>(entries_.size());
    for (auto& [id, filter] : links) entries_.push_back({id, *goal.capacity(id.link), &filter});
    map_.merge(links);  // moves nodes, not filters
    std::inplace_merge(entries_.begin(), entries_.begin() + middle, entries_.end(),
                       [](const Entry& a, const Entry& b) { return a.id < b.id; });
  }

  // Allocates the link of entry `index` anew. REQUIRES: there is one.
  void renew(std::size_t index) {
    Entry& entry = entries_[index];
    std::map<LinkId, Filter> fresh;
    fresh.emplace(entry.id, *entry.filter);
    map_.erase(entry.id);
    entry.filter = &fresh.begin()->second;
    map_.merge(fresh);  // moves the node
  }

  bool operator==(const LinkMap& other) const { return map_ == other.map_; }

 private:
  void point() {
    auto entry = entries_.begin();
    for (auto& [id, filter] : map_) (entry++)->filter = &filter;
  }

  std::map<LinkId, Filter> map_;
  std::vector<Entry> entries_;
};

// SpareLink: a link that is made before its first key comes. It does not belong to the state: a
// copy has no spare link, and all spare links are equal.
template <class Filter>
class SpareLink {
 public:
  SpareLink() = default;
  SpareLink(const SpareLink& /*other*/) {}
  SpareLink(SpareLink&& other) noexcept : link_(std::exchange(other.link_, {})) {}
  SpareLink& operator=(SpareLink other) noexcept {
    link_.swap(other.link_);
    return *this;
  }
  ~SpareLink() = default;

  void put(std::map<LinkId, Filter> link) { link_ = std::move(link); }
  void drop() { link_.clear(); }
  // Hands over the link if it is this one. Returns an empty map otherwise.
  std::map<LinkId, Filter> take(LinkId id) {
    return link_.contains(id) ? std::exchange(link_, {}) : std::map<LinkId, Filter>();
  }
  std::uint64_t bytes() const { return link_.empty() ? 0 : link_.begin()->second.bytes(); }

  bool operator==(const SpareLink& /*other*/) const { return true; }

 private:
  std::map<LinkId, Filter> link_;
};

// The state of a series beside its goal.
template <class Filter>
struct Links {
  LinkMap<Filter> links;  // none is in its initial state
  SpareLink<Filter> spare;

  bool operator==(const Links&) const = default;
};

}  // namespace semel::crdt_internal
