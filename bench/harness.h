// The harness: measures ours and its peers in one run, and reports time, error and memory together.
//
// Method    The machine is shared: its neighbours take cache and memory bandwidth at any time. So
//           contenders take turns. In each round all work through the same slice of fresh keys, a
//           few milliseconds long, and each round begins with another one. The rounds of
//           comparisons that belong together are spread over the same minute or two, so that noise
//           hits all of them. Time is the CPU time of the thread, which does not run while another
//           process has the core. The 10th percentile of the rounds counts. Neighbours can only add
//           to a time, so the low end is nearest to the cost of the code, but the minimum may be a
//           fluke of the clock. The median is reported too; the distance of the two shows how quiet
//           the machine was.
// Checks    A contender that does not find a key that was added aborts the program: its time would
//           mean nothing. The share of absent keys that it finds is its measured error rate.
// TSV       Columns id, ours, peer, peer_value, ratio, unit. `ours` and `peer_value` are numbers,
//           `peer` is a name. Less is better in every unit, so that ratio = peer_value / ours, and
//           above 1 ours is better. Units: ns (per key), error_rate, bits_per_key.
//
// A benchmark is a Registration in a file of bench/micro, a peer an adapter in bench/peers.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/keys.h"

namespace semel::bench {

// The keys of one round.
struct Slice {
  std::span<const Key> keys;
  std::span<const Digest> digests;  // of the same keys, without the cost of hashing
};

struct Contender {
  std::string name;  // a letter, then letters, digits, '-': part of an id
  // Processes the slice, and returns for how many keys the answer was yes.
  std::function<std::uint64_t(const Slice&)> work;
  std::optional<double> bits_per_key = {};
  std::function<void(std::size_t round)> prepare = {};  // before each round, not timed
};

// Draws the keys of a round, and knows which answers are right.
struct Workload {
  enum class Answers { any, no, yes };  // no: a yes is an error; yes: a no aborts
  Answers answers;
  std::function<void(std::span<Key>)> draw;
  std::size_t slice = std::size_t{1} << 17;
};
Workload absent_keys(std::uint64_t keys);   // keys beyond the first `keys`, never one twice
Workload present_keys(std::uint64_t keys);  // of the first `keys`, at random
// Returns the first `keys` in order, over and over. A whole number of slices makes `keys`.
Workload new_keys(std::uint64_t keys);

struct Comparison {
  std::string id;  // bloom-lookup/100M/absent-batched
  Workload workload;
  Contender ours;
  std::vector<Contender> peers;
};

// The result of one contender.
struct Outcome {
  double ns;  // per key, at the 10th percentile of the rounds
  double median_ns;
  std::optional<double> error_rate;
  std::optional<double> bits_per_key;
};

class Session {
 public:
  Session(bool quick, std::ostream& table, std::ostream* tsv);

  bool quick() const { return quick_; }
  // A size far beyond any cache, and one within it.
  std::uint64_t large() const { return quick_ ? 2'000'000 : 100'000'000; }
  std::uint64_t small() const { return quick_ ? 200'000 : 1'000'000; }

  // Measures all of them in the same rounds, then reports one after the other. A measurement must
  // not change what they share, so comparisons that add to one set are given one at a time.
  void compare(const std::vector<Comparison>& comparisons);

 private:
  void report(const Comparison& comparison, const std::vector<Outcome>& outcomes);

  bool quick_;
  std::ostream& table_;
  std::ostream* tsv_;  // may be null
};

struct Benchmark {
  std::string name;
  std::string summary;
  std::function<void(Session&)> run;
};
std::vector<Benchmark>& benchmarks();  // in the order of their names

// At namespace scope: const Registration kName("name", "what it measures", [](Session& s) { ... });
struct Registration {
  Registration(std::string name, std::string summary, std::function<void(Session&)> run);
};

std::string in_short(std::uint64_t count);  // 100M, 50k, 123

}  // namespace semel::bench
