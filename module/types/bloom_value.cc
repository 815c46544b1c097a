#include "module/types/bloom_value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <new>
#include <vector>

#include "module/types/secret_frame.h"
#include "semel/core/assert.h"
#include "semel/hash/digest.h"

namespace semel::module {
namespace {

// docs/formats/module_bloom_v1.md. All integers little-endian.
//
//    VALUE   magic (4), secret (32), chains (4 + 8 each), links (4), keys of each (8), series,
//            checksum
//    HEADER  of a dump: magic (4), secret (32), error (8), capacity (8), growth (4), checksum
//    PIECE   magic (4), goal (8), tag (8), link (4), keys (8), first word (8), words, checksum
constexpr std::uint32_t kMagic = 0x3146424d;        // "MBF1"
constexpr std::uint32_t kHeaderMagic = 0x3148424d;  // "MBH1"
constexpr std::uint32_t kPieceMagic = 0x3150424d;   // "MBP1"
constexpr std::size_t kPieceHeader = 4 + 8 + 8 + 4 + 8 + 8;
constexpr std::size_t kTrailerSize = 8;
constexpr std::uint64_t kPieceWords = 1 << 17;  // a mebibyte: some hundred microseconds

// A position in a dump: 1 + chain (16 bits), link (8), piece (28); within the 53 bits that every
// client's numbers hold.
constexpr unsigned kPieceBits = 28;

SeriesGoal series_goal(const BloomValue::Goal& goal, HashId hash) {
  return {.fpr = goal.error,
          .first_keys = goal.capacity,
          .sites = SeriesGoal::kMostSites,
          .chains = Chains::apart,
          .growth = goal.expansion,
          .hash = hash};
}

bool is_ours(const SeriesGoal& goal, HashId hash) {
  return goal == series_goal({goal.fpr, goal.first_keys, goal.growth}, hash);
}

}  // namespace

const host::TypeSpec BloomValue::kType = {"SMLbloom-", 1, &BloomValue::decode};

Result<std::unique_ptr<BloomValue>> BloomValue::make(const Secret& secret, const Goal& goal) {
  const Hasher hasher = hasher_of(secret);
  Result<GrowBloomSeries> series = GrowBloomSeries::make(series_goal(goal, hasher.id()));
  if (!series) return series.error();
  return std::make_unique<BloomValue>(secret, hasher, *std::move(series));
}

bool BloomValue::may_extend(std::uint64_t max_bytes) const {
  if (max_bytes == 0) return true;
  const Result<BloomShape> next = series_.next_shape(*chains_.own());
  // add() says what else is wrong.
  return !next || series_.bytes() - series_.reserved_bytes() + next->bits / 8 <= max_bytes;
}

Refusal BloomValue::refusal(std::uint64_t max_bytes) const {
  if (!may_extend(max_bytes)) return Refusal::memory;
  return series_.goal().growth == 0 ? Refusal::full : Refusal::last;
}

BloomValue::Added BloomValue::add(Digest key, std::uint64_t max_bytes) {
  SEMEL_ASSERT(chains_.own());
  if (max_bytes != 0 && series_.room(*chains_.own()) == 0 && !may_extend(max_bytes)) {
    return {false, series_.contains(key) ? Refusal::none : Refusal::memory};
  }
  try {
    const Result<bool> added = series_.add(key, *chains_.own());
    if (!added) return {false, refusal(0)};
    return {*added, Refusal::none};
  } catch (const std::bad_alloc&) {
    return {false, Refusal::machine};
  }
}

std::pair<std::size_t, Refusal> BloomValue::add(std::span<const Digest> keys, std::span<bool> added,
                                                std::uint64_t max_bytes) {
  SEMEL_ASSERT(chains_.own());
  std::size_t done = 0;
  while (done < keys.size()) {
    // As many as open no link; then the one that may.
    const std::size_t some =
        std::min<std::uint64_t>(keys.size() - done, series_.room(*chains_.own()));
    done += series_.add(keys.subspan(done, some), *chains_.own(), added.subspan(done, some));
    if (some > 0) continue;
    const Added one = add(keys[done], max_bytes);
    if (one.refusal != Refusal::none) return {done, one.refusal};
    added[done++] = one.added;
  }
  return {done, Refusal::none};
}

std::uint64_t BloomValue::items() const {
  std::uint64_t sum = 0;
  for (const auto& [id, keys] : series_.link_keys()) sum += keys;
  return sum;
}

std::uint64_t BloomValue::capacity() const {
  return std::max(series_.goal().first_keys, series_.capacity());
}

double BloomValue::error_now() const {
  // Small links differ from the mean: their bits are looked at. Large ones do not, and a look at them
  // would take long.
  constexpr std::uint64_t kCounted = std::uint64_t{1} << 25;  // bits, a millisecond
  double silent = 0;  // the logarithm of the chance that no link claims a key it never saw
  const std::map<LinkId, std::uint64_t> keys = series_.link_keys();
  for (const auto& [id, filter] : series_.links()) {
    const double error = filter.shape().bits <= kCounted ? filter.live_fpr()
                                                         : filter.shape().expected_fpr(keys.at(id));
    silent += std::log1p(-std::min(0.999999, error));
  }
  return -std::expm1(silent);
}

std::uint64_t BloomValue::bytes() const {
  constexpr std::uint64_t kOfLink = sizeof(GrowBloom) + 96;  // its node, and its place in the list
  return sizeof(*this) + series_.bytes() + kOfLink * series_.links().size() + 8 * chains_.size();
}

std::uint64_t BloomValue::unreserved_bytes() const {
  const bool wanted = chains_.own() && series_.links().empty() && series_.reserved_bytes() == 0;
  return wanted ? first_bytes() : 0;
}

void BloomValue::reserve() {
  if (unreserved_bytes() != 0) series_.reserve(*chains_.own());
}

std::size_t BloomValue::parts() const {
  constexpr std::uint64_t kPart = 1 << 20;
  return 1 + series_.links().size() + static_cast<std::size_t>(series_.bytes() / kPart);
}

std::unique_ptr<host::Value> BloomValue::copy() const {
  auto copied = std::make_unique<BloomValue>(secret_, hasher_, series_);
  copied->chains_ = chains_;
  copied->chains_.disown();
  return copied;
}

void BloomValue::encode(Sink out) const {
  encode_frame(out, kMagic, secret_, [&](Sink body) {
    chains_.encode(body);
    Writer w(body);
    const std::map<LinkId, std::uint64_t> link_keys = series_.link_keys();
    w.u32(static_cast<std::uint32_t>(link_keys.size()));
    for (const auto& [id, keys] : link_keys) w.u64(keys);
    series_.encode(body);
  });
}

Result<std::unique_ptr<host::Value>> BloomValue::decode(ByteView in) {
  const Result<Frame> frame = decode_frame(in, kMagic, "a Bloom filter behind a key");
  if (!frame) return frame.error();
  Reader r(frame->body);
  Result<ChainTags> chains = ChainTags::decode(r);
  if (!chains) return chains.error();
  const std::uint32_t links = r.u32();
  if (!r.ok() || r.rest() / 8 < links) {
    return Error{Errc::corrupt, "a Bloom filter behind a key: size"};
  }
  std::vector<std::uint64_t> keys(links);
  for (std::uint64_t& count : keys) count = r.u64();

  Result<GrowBloomSeries> series = GrowBloomSeries::decode(frame->body.last(r.rest()));
  if (!series) return Error{Errc::corrupt, series.error().what};
  const Hasher hasher = hasher_of(frame->secret);
  if (!is_ours(series->goal(), hasher.id())) {
    return Error{Errc::corrupt, "a Bloom filter behind a key: goal"};
  }
  if (links != series->links().size()) {
    return Error{Errc::corrupt, "a Bloom filter behind a key: number of links"};
  }
  if (links > 0 && std::prev(series->links().end())->first.chain >= chains->size()) {
    return Error{Errc::corrupt, "a Bloom filter behind a key: a chain without a tag"};
  }
  auto value = std::make_unique<BloomValue>(frame->secret, hasher, *std::move(series));
  value->chains_ = *std::move(chains);
  auto count = keys.begin();
  for (const auto& [id, filter] : value->series_.links())
    value->series_.set_link_keys(id, *count++);
  return std::unique_ptr<host::Value>(std::move(value));
}

BloomValue::Chunk BloomValue::dump(std::uint64_t position) const {
  Chunk chunk{0, {}};
  Writer w(chunk.bytes);
  if (position == 0) {
    encode_frame(chunk.bytes, kHeaderMagic, secret_, [&](Sink body) {
      Writer fields(body);
      fields.u64(std::bit_cast<std::uint64_t>(series_.goal().fpr));
      fields.u64(series_.goal().first_keys);
      fields.u32(series_.goal().growth);
    });
    chunk.next = 1;
    return chunk;
  }
  const std::uint64_t place = position - 1;
  if (place >> (kPieceBits + 24) != 0) return chunk;
  std::uint64_t piece = place & ((std::uint64_t{1} << kPieceBits) - 1);
  const LinkId wanted{static_cast<SiteId>(place >> (kPieceBits + 8)),
                      static_cast<std::uint8_t>(place >> kPieceBits)};
  auto link = series_.links().lower_bound(wanted);
  if (link == series_.links().end()) return chunk;
  if (link->first != wanted || piece * kPieceWords >= link->second.words().size()) {
    if (link->first == wanted) ++link;
    if (link == series_.links().end()) return chunk;
    piece = 0;
  }
  const auto& [id, filter] = *link;
  const std::uint64_t first = piece * kPieceWords;
  const auto words =
      filter.words().subspan(first, std::min(kPieceWords, filter.words().size() - first));
  chunk.bytes.reserve(kPieceHeader + 8 * words.size() + kTrailerSize);
  w.u32(kPieceMagic);
  w.u64(name_of(series_.goal()));
  w.u64(chains_.tag(id.chain));
  w.u32(id.link);
  w.u64(series_.link_keys().at(id));
  w.u64(first);
  const std::size_t at = chunk.bytes.size();
  chunk.bytes.resize(at + 8 * words.size());
  for (std::size_t i = 0; i < words.size(); ++i) store_u64(&chunk.bytes[at + 8 * i], words[i]);
  w.u64(checksum(chunk.bytes));
  chunk.next = 2 + ((std::uint64_t{id.chain} << 8 | id.link) << kPieceBits | piece);
  return chunk;
}

Result<std::unique_ptr<BloomValue>> BloomValue::load_header(ByteView chunk) {
  const Result<Frame> frame = decode_frame(chunk, kHeaderMagic, "the header of a dump");
  if (!frame) return frame.error();
  Reader r(frame->body);
  Goal goal{};
  goal.error = std::bit_cast<double>(r.u64());
  goal.capacity = r.u64();
  goal.expansion = r.u32();
  if (!r.ok() || r.rest() != 0) return Error{Errc::corrupt, "the header of a dump: size"};
  return make(frame->secret, goal);
}

Result<bool> BloomValue::load(ByteView chunk, std::uint64_t max_bytes) {
  constexpr Error kBad{Errc::corrupt, "a piece of a Bloom filter"};
  if (chunk.size() < kPieceHeader + kTrailerSize || chunk.size() % 8 != 0) return kBad;
  const ByteView body = chunk.first(chunk.size() - kTrailerSize);
  Reader r(body);
  if (r.u32() != kPieceMagic || load_u64(chunk.data() + body.size()) != checksum(body)) return kBad;
  const std::uint64_t goal = r.u64();
  const std::uint64_t tag = r.u64();
  const std::uint32_t link = r.u32();
  const std::uint64_t keys = r.u64();
  const std::uint64_t first = r.u64();
  if (goal != name_of(series_.goal())) {
    return Error{Errc::mismatch, "a piece of a filter of another goal"};
  }
  constexpr Error kNoLink{Errc::invalid, "no such link"};
  if (link == 0 || link > SeriesGoal::kMostLinks) return kNoLink;
  const Result<BloomShape> shape = series_.shape_of(static_cast<std::uint8_t>(link));
  if (!shape) return kNoLink;
  const std::uint64_t size = r.rest() / 8;
  if (first > shape->bits / 64 || size > shape->bits / 64 - first) {
    return Error{Errc::limit, "a piece that is larger than its link"};
  }

  ChainTags chains = chains_;
  const Result<SiteId> alias = chains.admit(tag);
  if (!alias) return alias.error();
  const LinkId id{*alias, static_cast<std::uint8_t>(link)};
  const auto mine = series_.links().find(id);
  const bool fresh = mine == series_.links().end();
  if (fresh && max_bytes != 0 &&
      series_.bytes() - series_.reserved_bytes() + shape->bits / 8 > max_bytes) {
    return Error{Errc::full, "a link that is larger than allowed"};
  }
  std::vector<std::uint64_t> words(size);
  for (std::uint64_t& word : words) word = r.u64();
  const std::uint64_t before = fresh ? 0 : series_.link_keys().at(id);
  const Result<bool> merged = series_.merge_part(id, first, std::span<const std::uint64_t>(words));
  if (!merged) return merged.error();
  if (fresh && !*merged) return false;  // a piece without a bit
  series_.set_link_keys(id, std::max(before, keys));
  // Somebody else added to this chain: here nobody does any more.
  if (*merged && chains.own() == id.chain) chains.disown();
  chains_ = std::move(chains);
  return *merged || keys > before;
}

}  // namespace semel::module
