// A public object that was moved from: it can be copied, moved, assigned to and destroyed, whatever
// the class keeps behind its header.
#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

#include "semel/core/hidden.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series.h"
#include "semel/filter/bloom_filter.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/index/nye_trie.h"
#include "semel/sift/sifter.h"
#include "semel/store/memory_store.h"
#include "semel/tally/table.h"
#include "semel/window/client_window.h"
#include "semel/window/window.h"
#include "tests/support/index.h"
#include "tests/support/keys.h"
#include "tests/support/site_life.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;

template <class T, class Make>
void can_be_used_again(Make make) {
  const T sound = make();
  T first = make();
  const T moved = std::move(first);
  EXPECT_TRUE(moved == sound);
  T again = std::move(first);  // from one that was moved from
  again = std::move(first);
  if constexpr (std::copy_constructible<T>) {
    T copy = first;
    const std::vector<T> many(3, first);
    again = copy;
    copy = sound;
    EXPECT_TRUE(copy == sound);
  }
  first = make();
  EXPECT_TRUE(first == sound);
  again = std::move(first);
  EXPECT_TRUE(again == sound);
  std::swap(first, again);
  EXPECT_TRUE(first == sound);
}

template <class T>
void can_be_used_again(const T& sound) {
  static_assert(std::copy_constructible<T>);
  can_be_used_again<T>([&] { return sound; });
}

Window::Goal goal_of(Window::Structure structure, TimeMs window_ms) {
  return {.structure = structure,
          .window_ms = window_ms,
          .fpr = structure == Window::Structure::exact ? 0 : 0.01,
          .ids = 20,
          .hash = kTestHash};
}

TEST(MovedFrom, AWindowOfAnyStructure) {
  for (const auto structure :
       {Window::Structure::forgetful, Window::Structure::timers, Window::Structure::exact}) {
    for (const TimeMs window_ms : {TimeMs{1000}, kForever}) {
      Result<Window> window = Window::make(goal_of(structure, window_ms), kNow);
      if (!window) continue;  // timers need an end
      window->insert(key(1));
      can_be_used_again(*window);
    }
  }
  ClientWindow clients = *ClientWindow::make({.window_ms = 1000}, kNow);
  clients.insert({key(1), 1});
  can_be_used_again(clients);
}

TEST(MovedFrom, AFilter) {
  BloomFilter bloom(*BloomShape::for_goal({.keys = 20, .fpr = 0.01, .hash = kTestHash}));
  bloom.add(key(1));
  can_be_used_again(bloom);
  CuckooFilter cuckoo(*CuckooShape::for_goal({.keys = 20, .fpr = 0.01, .hash = kTestHash}));
  ASSERT_TRUE(cuckoo.insert(key(1)));
  can_be_used_again(cuckoo);
}

template <class Filter>
void filter_of_sites(Filter filter) {
  typename Filter::Delta delta(filter.shape());
  if constexpr (Filter::kRemoves) {
    ASSERT_TRUE(filter.add(key(1), at(0), &delta));
  } else {
    ASSERT_TRUE(filter.add(key(1), &delta));
  }
  can_be_used_again(filter);
  can_be_used_again(delta);
}

template <class Series>
void series_of_sites() {
  Series series = *Series::make({.fpr = 0.01, .first_keys = 20, .sites = 2, .hash = kTestHash});
  typename Series::Delta delta(series.goal());
  ASSERT_TRUE(series.add(key(1), by<Series>(0), &delta));
  can_be_used_again(series);
  can_be_used_again(delta);
}

TEST(MovedFrom, AFilterOfSeveralSites) {
  filter_of_sites(GrowCuckoo(*GrowCuckoo::shape_for(20, 0.01, kTestHash)));
  filter_of_sites(ObservedCuckoo(*ObservedCuckoo::shape_for(20, 0.01, kTestHash)));
  series_of_sites<GrowBloomSeries>();
  series_of_sites<GrowCuckooSeries>();
  series_of_sites<ObservedCuckooSeries>();
}

TEST(MovedFrom, WhatIsMadeOfTheseClasses) {
  Sifter sifter = *Sifter::make({goal_of(Window::Structure::forgetful, 1000), 1000}, kNow);
  sifter.test_and_insert(key(1), kNow);
  can_be_used_again(sifter);
  can_be_used_again<tally::Table>([] {
    return *tally::Table::make({.recognition = {.window_ms = 1000, .hash = kTestHash}}, kNow);
  });
  MemoryStore store;
  const RecordWrite write{"key", "value"};
  ASSERT_TRUE(store.write({&write, 1}));
  can_be_used_again<NyeTrie>(
      [&] { return rebuilt_trie(**store.cursor(), NyeTrie::kLeastBurst, numbered_secret(1)); });
}

}  // namespace
}  // namespace semel
