// An index made from scratch, for comparison with one that has followed its store.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>

#include "semel/index/floret.h"
#include "semel/index/indexed_store.h"
#include "semel/index/nye_trie.h"
#include "semel/store/ordered_store.h"

namespace semel {

inline Secret numbered_secret(std::uint8_t number) {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  bytes.fill(number);
  return Secret(bytes);
}

// REQUIRES: the cursor does not fail.
inline NyeTrie rebuilt_trie(Cursor& cursor, std::uint32_t burst_bytes, const Secret& secret,
                            RecordMeasure measure = nullptr) {
  NyeTrie trie(burst_bytes, EntryDigest(secret), measure);
  EXPECT_TRUE(trie.refresh(cursor));
  return trie;
}

inline Floret rebuilt_floret(Cursor& cursor, const KeyRange& range, const Secret& secret) {
  const DigestKey key(secret, KeyPurpose::floret);
  EntryDigest digest(secret);
  Floret floret;
  for (cursor.seek(range.first); cursor.valid() && range.contains(cursor.key()); cursor.next()) {
    floret.add(digest(cursor.key(), cursor.value()), key);
  }
  return floret;
}

// Expects that the index, brought up to date, equals one that is made from scratch.
inline void expect_equals_rebuilt(IndexedStore& index) {
  Result<IndexedStore::View> view = index.view();
  ASSERT_TRUE(view) << view.error().message();
  Cursor& cursor = view->cursor();
  const NyeTrie& trie = view->trie();
  EXPECT_EQ(trie, rebuilt_trie(cursor, trie.burst_bytes(), index.secret(), trie.measured_by()));
  const auto floret = index.floret(*view, KeyRange::all(), IndexedStore::Fresh::exact);
  ASSERT_TRUE(floret) << floret.error().message();
  EXPECT_EQ(floret->unknown, 0U);
  EXPECT_EQ(floret->floret, rebuilt_floret(cursor, KeyRange::all(), index.secret()));
}

}  // namespace semel
