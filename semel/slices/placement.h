// Placement: decides which slices know an id, and under which key. FROZEN, because the contents of
// slices depend on it.
//
// Contract  An id has `spread` probes: k1 hash functions, each of which chooses a slice and a key.
//           The key is all that the slice sees of the id. Every function makes another key, so the
//           answers for one id are independent, even if two functions choose one slice. If a slice
//           takes a new key for a known one at the rate s, an id has the rate s^k1. So each slice
//           is made for the k1-th root of the error (docs/math/slices.md).
// Layouts   There are S slices, or S groups of S' slices when diced:
//
//             horizontal   one slice of S, which knows the whole id
//             vertical     k1 slices of S, each with a part of what is known about it
//             h_v          one group of S, then k1 slices inside it. A failed slice concerns only
//                          the ids of its group
//             v_h          k1 groups of S, and one slice in each
//
// Threads   const.
// Source    Koloniari, Ntarmos, Pitoura & Souravlias, 'One is Enough', sections 3.1 and 3.3: k1 is
//           the same here, and k2 is the number of functions inside a slice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/core/api.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"

namespace semel {

enum class SliceLayout : std::uint8_t { horizontal = 0, vertical = 1, h_v = 2, v_h = 3 };

struct SliceProbe {
  std::size_t slice;
  Digest key;
};

class SEMEL_API Placement {
 public:
  struct Shape {
    SliceLayout layout;
    std::uint32_t slices;      // S: slices, or groups of slices if diced
    std::uint32_t parts = 1;   // S': slices of a group; 1 unless diced
    std::uint32_t spread = 1;  // k1: 1 if horizontal
    bool operator==(const Shape&) const = default;
  };
  static constexpr std::uint32_t kMostSpread = 32;
  static constexpr std::uint64_t kMostSlices = 1 << 16;

  // Errors: Errc::invalid for another shape; Errc::limit for more than kMostSlices in all.
  static Result<Placement> make(const Shape& shape);

  // REQUIRES: function < spread().
  SliceProbe probe(Digest id, std::uint32_t function) const;

  const Shape& shape() const { return shape_; }
  std::uint32_t spread() const { return shape_.spread; }
  std::size_t slices() const { return std::size_t{shape_.slices} * shape_.parts; }  // in all

 private:
  explicit Placement(const Shape& shape) : shape_(shape) {}

  Shape shape_;
};

}  // namespace semel
