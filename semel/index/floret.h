// Floret: how many records two stores do not share, from one byte for each of a thousand counters.
//
// Contract  Every record counts in one counter, which its digest picks. Counters are kept modulo
//           256, so records are added, removed and whole florets subtracted in any order.
//           estimate() of two florets of one shape gives both one-sided differences and what
//           follows from them. The total difference d is unbiased, with a standard error of
//           sqrt(2 d (d - 1) / (counters - 1)): 4.4 % for 1024 counters, nothing for one record.
//           The errors that it gives are by this formula, with the estimate for d.
//           Exactly zero for equal sets; but zero does not prove them equal, a digest does. A
//           one-sided difference near zero is half as uncertain as the total is; it is never below
//           zero.
// Limit     1500 differing records for each counter, 1.5 million for 1024, wherever they are: the
//           counts tell the mean of the counters, so that only their spread has to fit into 8 bits.
//           Beyond it the estimate is too low, and estimate() tells (`reliable`), with 64 counters
//           or more beyond doubt.
// Parallel  The mean of k florets with independent keys has 1 / sqrt(k) of the error; so has one
//           floret of k times as many counters, for a kth of the work.
// Cost      add: about 34 ns, a keyed hash of the digest. estimate: 1.3 us for 1024 counters.
// Source    Trutna, section 4. With the unbiased sample variance the factor n / (n - 1) of the
//           paper does not belong there (docs/math/floret.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/hash/keyed_digest.h"

namespace semel {

class Floret {
 public:
  static constexpr std::uint32_t kCounters = 1024;

  // REQUIRES: 2 <= counters <= 2^20.
  explicit Floret(std::uint32_t counters = kCounters);
  // Errc::limit if there are too few or too many counters.
  static Result<Floret> of_bytes(ByteView counters);

  // `key` is one of KeyPurpose::floret, the same for all florets that meet.
  void add(const Digest& entry, const DigestKey& key);
  void remove(const Digest& entry, const DigestKey& key);
  // REQUIRES: as many counters. The floret of both together, and of this without the other.
  Floret& operator+=(const Floret& other);
  Floret& operator-=(const Floret& other);

  ByteView bytes() const { return counters_; }
  bool operator==(const Floret&) const = default;

 private:
  std::vector<std::uint8_t> counters_;
};

struct Estimated {
  double value = 0;
  double error = 0;  // standard error
};

// Of sets A and B.
struct Estimate {
  Estimated only_a;       // |A - B|
  Estimated only_b;       // |B - A|
  Estimated total;        // |A - B| + |B - A|
  Estimated shared;       // |A and B|
  Estimated together;     // |A or B|
  Estimated jaccard;      // shared / together; 1 if both are empty
  Estimated containment;  // shared / |A|; 1 if A is empty
  bool reliable = true;   // false if counters may have wrapped: the difference is larger
};

// The counts are exact, and so is |A - B| less |B - A|. REQUIRES: as many counters.
Estimate estimate(const Floret& a, std::uint64_t count_a, const Floret& b, std::uint64_t count_b);
// What follows from the total difference and the counts, whatever way it was estimated.
Estimate estimate_of_total(Estimated total, std::uint64_t count_a, std::uint64_t count_b);

}  // namespace semel
