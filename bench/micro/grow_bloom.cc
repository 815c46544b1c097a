// GrowBloom: the cost of an addition and a lookup beside BloomFilter, and of a merge.
//
// A merge has no keys. Its time is given for each KiB of the filter, in the place of a key: one
// merge of 1 GiB is 2^20 of them.
#include "semel/crdt/grow_bloom.h"

#include <cstring>

#include "bench/harness.h"
#include "bench/sets.h"
#include "semel/bits/internal/line_array.h"
#include "semel/filter/bloom_filter.h"

namespace semel::bench {
namespace {

GrowBloom filter_of(const BloomShape& shape, std::uint64_t keys) {
  GrowBloom filter(shape);
  for (std::uint64_t n = 0; n < keys; ++n) filter.add(digest_of(key_of(n)));
  return filter;
}

void compare_lookups(Session& session, std::uint64_t keys) {
  const BloomShape shape = *GrowBloom::shape_for(keys, 0.01, {});
  Hashed<GrowBloom> ours(shape);
  Hashed<BloomFilter> bloom(shape);
  fill(keys, ours, bloom);
  session.compare(lookups("grow-bloom-lookup/" + in_short(keys), keys, [&](auto compare) {
    compare("one-by-one", one_by_one("semel-grow", ours, keys),
            {one_by_one("semel-blocked", bloom, keys)});
    compare("batched", batched("semel-grow", ours, keys), {batched("semel-blocked", bloom, keys)});
  }));
}

void compare_merge(Session& session) {
  const std::uint64_t bytes = std::uint64_t{1} << (session.quick() ? 26 : 30);
  const BloomShape shape{BloomLayout::blocked, 7, bytes * 8, {}};
  GrowBloom here(shape);
  const GrowBloom there = filter_of(shape, bytes / 1024);
  LineArray<std::uint8_t> copy(bytes), source(bytes);
  for (std::uint8_t& byte : source) byte = 1;

  const Workload kibibytes{
      .answers = Workload::Answers::any, .draw = [](std::span<Key>) {}, .slice = bytes / 1024};
  session.compare(
      {{.id = "grow-bloom-merge/" + std::to_string(bytes >> 20) + "MiB",
        .workload = kibibytes,
        .ours = {"semel-grow", [&](const Slice&) { return std::uint64_t{*here.merge(there)}; }},
        .peers = {{"memcpy", [&](const Slice&) {
                     std::memcpy(copy.data(), source.data(), bytes);
                     return std::uint64_t{copy[bytes / 2]};
                   }}}}});
}

// The last 1000 adds to a filter arrive at another site: as a delta, or as the whole state.
void compare_delta(Session& session) {
  constexpr std::uint64_t kAdds = 1000;
  const std::uint64_t keys = session.large() / 10;
  GrowBloom sender = filter_of(*GrowBloom::shape_for(keys, 0.01, {}), keys - kAdds);
  GrowBloom receiver = sender;
  BloomDelta delta(sender.shape());
  for (std::uint64_t n = keys - kAdds; n < keys; ++n) sender.add(digest_of(key_of(n)), &delta);

  Bytes delta_bytes, state_bytes;
  delta.encode(delta_bytes);
  sender.encode(state_bytes);
  const auto receiving = [&receiver](const std::string& name, auto decode, const Bytes& bytes) {
    return Contender{name,
                     [&receiver, &bytes, decode](const Slice&) {
                       return std::uint64_t{*receiver.merge(*decode(bytes))};
                     },
                     static_cast<double>(8 * bytes.size()) / static_cast<double>(kAdds)};
  };
  session.compare({{.id = "grow-bloom-delta/" + in_short(keys),
                    .workload = {.answers = Workload::Answers::any,
                                 .draw = [](std::span<Key>) {},
                                 .slice = kAdds},
                    .ours = receiving("semel-delta", BloomDelta::decode, delta_bytes),
                    .peers = {receiving("semel-state", GrowBloom::decode, state_bytes)}}});
}

const Registration kLookup("grow-bloom-lookup", "lookups in GrowBloom, beside the filter inside it",
                           [](Session& s) { compare_lookups(s, s.large()); });
const Registration kMerge("grow-bloom-merge", "merging two GrowBloom of 1 GiB, for each KiB",
                          compare_merge);
const Registration kDelta("grow-bloom-delta", "receiving 1000 adds, by a delta and by the state",
                          compare_delta);

}  // namespace
}  // namespace semel::bench
