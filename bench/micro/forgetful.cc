// Checks of a forgetful filter, by the number of its lanes, beside one Bloom filter of the same
// layout and beside a Bloom filter for each lane; and inserts, with the lanes turning over.
//
// All are made for an error of 1e-3. Lanes of 3 take words of 8 bits, so that they have more memory
// than they need; the larger numbers fill their words.
#include <array>

#include "bench/harness.h"
#include "bench/peers/separate_filters.h"
#include "bench/sets.h"
#include "semel/filter/bloom_filter.h"
#include "semel/window/internal/forgetful_filter.h"

namespace semel::bench {
namespace {

constexpr double kError = 1e-3;

// A forgetful filter as a set. Time stands still: lanes rotate because they are full, and the
// oldest is dropped when all are.
class Lanes {
 public:
  Lanes(std::uint64_t keys, std::uint32_t lanes, BloomLayout layout)
      : goal_{.window_ms = 1'000'000,
              .fpr = kError,
              .ids = keys,
              .past_lanes = lanes - 1,
              .layout = layout,
              .grows = false,
              .on_full = OnFull::forget},
        filter_(*window_internal::ForgetfulFilter::make(goal_, 0)) {}

  bool add(const Key& key) { return filter_.test_and_insert(digest_of(key)) == Verdict::fresh; }
  void add(std::span<const Key> keys, std::span<bool> added) {
    std::array<Digest, kBatch> digests;
    std::array<Verdict, kBatch> verdicts;
    const auto some = std::span(verdicts).first(keys.size());
    filter_.test_and_insert(hash(keys, digests), some);
    std::transform(some.begin(), some.end(), added.begin(),
                   [](Verdict verdict) { return verdict == Verdict::fresh; });
  }
  void fill(std::span<const Key> keys) {
    std::array<bool, kBatch> added;
    add(keys, std::span(added).first(keys.size()));
  }
  void clear() {}  // it forgets by itself

  bool contains(const Key& key) const { return contains(digest_of(key)); }
  bool contains(const Digest& digest) const { return filter_.test(digest) == Verdict::duplicate; }
  void contains(std::span<const Key> keys, std::span<bool> found) const {
    std::array<Digest, kBatch> digests;
    contains(hash(keys, digests), found);
  }
  void contains(std::span<const Digest> digests, std::span<bool> found) const {
    std::array<Verdict, kBatch> verdicts;
    const auto some = std::span(verdicts).first(digests.size());
    filter_.test(digests, some);
    std::transform(some.begin(), some.end(), found.begin(),
                   [](Verdict verdict) { return verdict == Verdict::duplicate; });
  }
  std::uint64_t bits() const { return filter_.bytes() * 8; }

 private:
  static std::span<const Digest> hash(std::span<const Key> keys,
                                      std::array<Digest, kBatch>& digests) {
    std::transform(keys.begin(), keys.end(), digests.begin(), digest_of);
    return {digests.data(), keys.size()};
  }

  window_internal::ForgetfulFilter::Goal goal_;
  window_internal::ForgetfulFilter filter_;
};

void compare_checks(Session& session, std::uint64_t keys, BloomLayout layout, const char* name) {
  Lanes three(keys, 3, layout), eight(keys, 8, layout), sixteen(keys, 16, layout),
      most(keys, 64, layout);
  Hashed<BloomFilter> bloom(*BloomShape::for_goal({.keys = keys, .fpr = kError, .layout = layout}));
  SeparateFilters separate8(keys, 8, kError, BloomLayout::plain);
  SeparateFilters separate16(keys, 16, kError, BloomLayout::plain);
  SeparateFilters blocked8(keys, 8, kError, BloomLayout::blocked);
  SeparateFilters blocked16(keys, 16, kError, BloomLayout::blocked);
  fill(keys, three, eight, sixteen, most, bloom, separate8, separate16, blocked8, blocked16);

  const std::string id = "forgetful-check/" + in_short(keys) + '/' + name;
  session.compare(lookups(id, keys, [&](auto compare) {
    const auto all = [&](const char* how, auto contender) {
      compare(how, contender("lanes-8", eight, keys),
              {contender("lanes-3", three, keys), contender("lanes-16", sixteen, keys),
               contender("lanes-64", most, keys), contender("one-bloom", bloom, keys),
               contender("separate-8", separate8, keys), contender("separate-16", separate16, keys),
               contender("separate-8-blocked", blocked8, keys),
               contender("separate-16-blocked", blocked16, keys)});
    };
    all("one-by-one", [](const char* contender, const auto& set, std::uint64_t n) {
      return digests_one_by_one(contender, set, n);
    });
    all("batched", [](const char* contender, const auto& set, std::uint64_t n) {
      return digests_batched(contender, set, n);
    });
  }));
}

// new_keys() recur, and are forgotten in between, because there is room for only a quarter of them.
void compare_inserts(Session& session, std::uint64_t keys) {
  const std::uint64_t room = keys / 4;
  Lanes two(room, 8, BloomLayout::blocked2), three(room, 8, BloomLayout::blocked3),
      sixteen(room, 16, BloomLayout::blocked3), plain(room, 8, BloomLayout::plain);
  Hashed<BloomFilter> bloom(
      *BloomShape::for_goal({.keys = room, .fpr = kError, .layout = BloomLayout::blocked3}));
  const auto compare = [&](const char* how, auto contender) {
    session.compare({{.id = "forgetful-insert/" + in_short(room) + '/' + how,
                      .workload = new_keys(keys),
                      .ours = contender("lanes-8-blocked3", three, keys),
                      .peers = {contender("lanes-8-blocked2", two, keys),
                                contender("lanes-16-blocked3", sixteen, keys),
                                contender("lanes-8-plain", plain, keys),
                                contender("one-bloom", bloom, keys)}}});
  };
  const auto one_by_one = [](const char* name, auto& set, std::uint64_t n) {
    return adding_one_by_one(name, set, n);
  };
  const auto batched = [](const char* name, auto& set, std::uint64_t n) {
    return adding_batched(name, set, n);
  };
  compare("one-by-one", one_by_one);
  compare("batched", batched);
}

const Registration kSmall("forgetful-check-small", "checks over lanes, within the cache",
                          [](Session& s) {
                            compare_checks(s, s.small(), BloomLayout::blocked2, "blocked2");
                            compare_checks(s, s.small(), BloomLayout::blocked3, "blocked3");
                          });
const Registration kLarge("forgetful-check-large", "checks over lanes, larger than the cache",
                          [](Session& s) {
                            compare_checks(s, s.large() / 5, BloomLayout::blocked2, "blocked2");
                            compare_checks(s, s.large() / 5, BloomLayout::blocked3, "blocked3");
                          });
const Registration kInsert("forgetful-insert", "test-and-insert with lanes that turn over",
                           [](Session& s) { compare_inserts(s, s.large() / 5); });

}  // namespace
}  // namespace semel::bench
