// Recognition: how a table recognises the retries of its operations.
//
// Kinds     clients   the default: numbered ids meet a window with an entry for each client, opaque
//                     ids meet a filter
//           filter    all ids meet a filter: no memory for each client
//           exact     all ids are kept, with what they did: an id that comes again with another
//                     counter or delta is a conflict, not a retry
#pragma once

#include <cstdint>

#include "semel/core/clock.h"
#include "semel/hash/digest.h"
#include "semel/window/window.h"

namespace semel::tally {

struct Recognition {
  enum class Kind : std::uint8_t { clients = 0, filter = 1, exact = 2 };

  Kind kind = Kind::clients;
  TimeMs window_ms = 600'000;        // retries are recognised for this long
  double fpr = 1e-6;                 // of new opaque ids taken for retries; exact: none
  std::uint64_t ids = 1 << 16;       // expected in a window; more may come
  std::uint64_t max_bytes = kNoCap;  // kLeastBytes or more
  OnFull on_full = OnFull::refuse;
  HashId hash = {};  // of the hasher that makes the digests of ids
  bool operator==(const Recognition&) const = default;

  static constexpr std::uint64_t kLeastBytes = 8192;
};

}  // namespace semel::tally
