#include "module/types/cuckoo_value.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "module/types/secret_frame.h"
#include "semel/bits/elias_fano.h"
#include "semel/core/assert.h"
#include "semel/crdt/entry_codec.h"
#include "semel/hash/digest.h"

namespace semel::module {
namespace {

// docs/formats/module_cuckoo_v2.md. All integers little-endian.
//
//    VALUE   magic (4), secret (32), goal (24), chains and lives (4 + 8 each), series, checksum
//    HEADER  of a dump: magic (4), secret (32), goal (24), checksum
//    PIECE   magic (4), goal (8), tags of chain and life (16), link (4), first (8), last (8), entries
//            (8), their numbers from the first on, their pairs and fingerprints, checksum
//    GOAL    error (8), capacity (8), bucket size (2), iterations (2), expansion (4)
constexpr std::uint32_t kMagic = 0x3246434d;        // "MCF2"
constexpr std::uint32_t kHeaderMagic = 0x3148434d;  // "MCH1"
constexpr std::uint32_t kPieceMagic = 0x3250434d;   // "MCP2"
constexpr std::size_t kPieceHeader = 4 + 8 + 8 + 8 + 4 + 8 + 8 + 8;
constexpr std::size_t kTrailerSize = 8;
constexpr std::uint64_t kPieceEntries = ObservedCuckoo::kPartStep;  // some hundred kilobytes

// A position in a dump: 1 + chain (12 bits), link (8), life (16), dots before it (16, in steps);
// within the 53 bits that every client's numbers hold. So a life has at most 2^32 - 1 dots.
constexpr unsigned kDotBits = 16;
constexpr unsigned kLifeBits = 16;
constexpr std::uint64_t kMostDots = (ObservedCuckoo::kPartStep << kDotBits) - 1;

// Growth of less than 2 would make many links, each of which costs a lookup.
SeriesGoal series_goal(const CuckooValue::Goal& goal, HashId hash) {
  return {.fpr = goal.error,
          .first_keys = goal.capacity,
          .sites = SeriesGoal::kMostSites,
          .chains = Chains::apart,
          .growth = goal.expansion == 1 ? 2 : goal.expansion,
          .hash = hash};
}

void write_goal(Sink out, const CuckooValue::Goal& goal) {
  Writer w(out);
  w.u64(std::bit_cast<std::uint64_t>(goal.error));
  w.u64(goal.capacity);
  w.u16(static_cast<std::uint16_t>(goal.bucket_size));
  w.u16(static_cast<std::uint16_t>(goal.max_iterations));
  w.u32(goal.expansion);
}

// Not checked: see Goal::check.
CuckooValue::Goal read_goal(Reader& in) {
  CuckooValue::Goal goal{};
  goal.error = std::bit_cast<double>(in.u64());
  goal.capacity = in.u64();
  goal.bucket_size = in.u16();
  goal.max_iterations = in.u16();
  goal.expansion = in.u32();
  return goal;
}

// Whether the sites of a link are lives, each of which has one life: its tag.
bool are_lives_of(const ChainTags& lives, const ObservedCuckoo& link) {
  const auto is_life = [&](const VersionVector::Site& site) {
    return site.site < lives.size() && site.counter <= kMostDots &&
           link.lives().runs(site.site).size() == 1 &&
           link.lives().runs(site.site).front().life == lives.tag(site.site);
  };
  const auto sites = link.context().sites();
  return std::all_of(sites.begin(), sites.end(), is_life);
}

std::uint64_t bytes_of(const CuckooShape& shape) {
  return shape.slots() * (shape.fingerprint_bits + shape.payload_bits) / 8;
}

}  // namespace

const host::TypeSpec CuckooValue::kType = {"SMLcuckoo", 1, &CuckooValue::decode};

Result<void> CuckooValue::Goal::check() const {
  const bool sound = bucket_size >= 1 && bucket_size <= 255 && max_iterations >= 1 &&
                     max_iterations <= 65'535 && expansion <= 32'768;
  if (!sound) return Error{Errc::invalid, "bucket size, iterations or expansion out of range"};
  return {};
}

Result<std::unique_ptr<CuckooValue>> CuckooValue::make(const Secret& secret, const Goal& goal) {
  if (const Result<void> sound = goal.check(); !sound) return sound.error();
  const Hasher hasher = hasher_of(secret);
  Result<ObservedCuckooSeries> series = ObservedCuckooSeries::make(series_goal(goal, hasher.id()));
  if (!series) return series.error();
  return std::make_unique<CuckooValue>(secret, hasher, goal, *std::move(series));
}

Refusal CuckooValue::add(Digest key, std::uint64_t max_bytes) {
  SEMEL_ASSERT(chains_.own() && lives_.own());
  const SiteId own = *chains_.own();
  if (max_bytes != 0 && series_.room(own) == 0) {
    const Result<CuckooShape> next = series_.next_shape(own);
    const std::uint64_t used = series_.bytes() - series_.reserved_bytes();
    if (next && used + bytes_of(*next) > max_bytes) return Refusal::memory;
  }
  try {
    const SiteLife life{*lives_.own(), lives_.tag(*lives_.own())};
    if (series_.add(key, life, own)) {
      adds_left_ -= adds_left_ != 0 ? 1 : 0;
      return Refusal::none;
    }
  } catch (const std::bad_alloc&) {
    return Refusal::machine;
  }
  return goal_.expansion == 0 ? Refusal::full : Refusal::last;
}

Result<void> CuckooValue::begin(std::uint64_t chain, std::uint64_t life, Begun where) {
  ChainTags chains = chains_;
  ChainTags lives = lives_;
  if (!chains.own() || chains.tag(*chains.own()) != chain) {
    if (const Result<void> begun = chains.begin(chain); !begun) return begun.error();
  }
  if (const Result<void> begun = lives.begin(life); !begun) return begun.error();
  chains_ = std::move(chains);
  lives_ = std::move(lives);
  adds_left_ = where == Begun::here ? kMostDots : 0;
  return {};
}

std::uint64_t CuckooValue::removed() const {
  std::uint64_t sum = 0;
  for (const auto& [id, filter] : series_.links()) {
    for (const VersionVector::Site& life : filter.context().sites()) sum += life.counter;
    sum -= filter.cardinality();
  }
  return sum;
}

std::uint64_t CuckooValue::first_bytes() const { return bytes_of(*series_.shape_of(1)); }

std::uint64_t CuckooValue::buckets() const {
  if (series_.links().empty()) return series_.shape_of(1)->buckets;
  std::uint64_t sum = 0;
  for (const auto& [id, filter] : series_.links()) sum += filter.shape().buckets;
  return sum;
}

std::uint64_t CuckooValue::bytes() const {
  constexpr std::uint64_t kOfLink =
      sizeof(ObservedCuckoo) + 96;  // its node, and its place in the list
  return sizeof(*this) + series_.bytes() + kOfLink * series_.links().size() +
         8 * (chains_.size() + lives_.size());
}

std::uint64_t CuckooValue::unreserved_bytes() const {
  const bool wanted = chains_.own() && series_.links().empty() && series_.reserved_bytes() == 0;
  return wanted ? first_bytes() : 0;
}

void CuckooValue::reserve() {
  if (unreserved_bytes() != 0) series_.reserve(*chains_.own());
}

std::size_t CuckooValue::parts() const {
  constexpr std::uint64_t kPart = 1 << 20;
  return 1 + series_.links().size() + static_cast<std::size_t>(series_.bytes() / kPart);
}

std::unique_ptr<host::Value> CuckooValue::copy() const {
  auto copied = std::make_unique<CuckooValue>(secret_, hasher_, goal_, series_);
  copied->chains_ = chains_;
  copied->chains_.disown();
  copied->lives_ = lives_;
  copied->lives_.disown();
  return copied;
}

void CuckooValue::encode(Sink out) const {
  encode_frame(out, kMagic, secret_, [&](Sink body) {
    write_goal(body, goal_);
    chains_.encode(body);
    lives_.encode(body);
    series_.encode(body);
  });
}

Result<std::unique_ptr<host::Value>> CuckooValue::decode(ByteView in) {
  const Result<Frame> frame = decode_frame(in, kMagic, "a cuckoo filter behind a key");
  if (!frame) return frame.error();
  Reader r(frame->body);
  const Goal goal = read_goal(r);
  if (!r.ok() || !goal.check()) return Error{Errc::corrupt, "a cuckoo filter behind a key: goal"};
  Result<ChainTags> chains = ChainTags::decode(r);
  if (!chains) return chains.error();
  Result<ChainTags> lives = ChainTags::decode(r, ChainTags::kMostLives);
  if (!lives) return lives.error();
  Result<ObservedCuckooSeries> series = ObservedCuckooSeries::decode(frame->body.last(r.rest()));
  if (!series) return Error{Errc::corrupt, series.error().what};
  const Hasher hasher = hasher_of(frame->secret);
  if (series->goal() != series_goal(goal, hasher.id())) {
    return Error{Errc::corrupt, "a cuckoo filter behind a key: goal"};
  }
  if (!series->links().empty() && std::prev(series->links().end())->first.chain >= chains->size()) {
    return Error{Errc::corrupt, "a cuckoo filter behind a key: a chain without a tag"};
  }
  for (const auto& [id, filter] : series->links()) {
    if (!are_lives_of(*lives, filter)) {
      return Error{Errc::corrupt, "a cuckoo filter behind a key: lives"};
    }
  }
  auto value = std::make_unique<CuckooValue>(frame->secret, hasher, goal, *std::move(series));
  value->chains_ = *std::move(chains);
  value->lives_ = *std::move(lives);
  return std::unique_ptr<host::Value>(std::move(value));
}

CuckooValue::Chunk CuckooValue::dump(std::uint64_t position) const {
  Chunk chunk{0, {}};
  if (position == 0) {
    encode_frame(chunk.bytes, kHeaderMagic, secret_, [&](Sink body) { write_goal(body, goal_); });
    chunk.next = 1;
    return chunk;
  }
  const std::uint64_t place = position - 1;
  if (place >> (kDotBits + kLifeBits + 20) != 0) return chunk;
  std::uint64_t from = (place & ((std::uint64_t{1} << kDotBits) - 1)) * ObservedCuckoo::kPartStep;
  auto life = static_cast<SiteId>(place >> kDotBits);
  const LinkId wanted{static_cast<SiteId>(place >> (kDotBits + kLifeBits + 8)),
                      static_cast<std::uint8_t>(place >> (kDotBits + kLifeBits))};
  // The first dots at this place or after it.
  auto link = series_.links().lower_bound(wanted);
  for (; link != series_.links().end(); ++link) {
    if (link->first != wanted) life = 0, from = 0;
    const auto sites = link->second.context().sites();
    const auto site = std::find_if(sites.begin(), sites.end(), [&](const auto& s) {
      return s.site > life || (s.site == life && s.counter > from);
    });
    if (site == sites.end()) continue;
    if (site->site != life) from = 0;
    life = site->site;
    break;
  }
  if (link == series_.links().end()) return chunk;
  const auto& [id, filter] = *link;
  const ObservedPart part = filter.part(life, from, kPieceEntries);
  std::vector<std::uint64_t> numbers;
  numbers.reserve(part.entries.size());
  for (const CuckooEntry& entry : part.entries) numbers.push_back(entry.payload - part.first - 1);
  Writer w(chunk.bytes);
  w.u32(kPieceMagic);
  w.u64(name_of(series_.goal()));
  w.u64(chains_.tag(id.chain));
  w.u64(lives_.tag(life));
  w.u32(id.link);
  w.u64(part.first);
  w.u64(part.last);
  w.u64(part.entries.size());
  elias_fano::encode(chunk.bytes, numbers, part.last - part.first - 1);
  entry_codec::encode_places(chunk.bytes, filter.shape(), part.entries);
  w.u64(checksum(chunk.bytes));
  const std::uint64_t life_place =
      (std::uint64_t{id.chain} << 8 | id.link) << kLifeBits | std::uint64_t{life};
  const bool whole = part.last == filter.context().at(life);
  chunk.next = 1 + (whole ? (life_place + 1) << kDotBits
                          : life_place << kDotBits | part.last / ObservedCuckoo::kPartStep);
  return chunk;
}

Result<std::unique_ptr<CuckooValue>> CuckooValue::load_header(ByteView chunk) {
  const Result<Frame> frame = decode_frame(chunk, kHeaderMagic, "the header of a dump");
  if (!frame) return frame.error();
  Reader r(frame->body);
  const Goal goal = read_goal(r);
  if (!r.ok() || r.rest() != 0) return Error{Errc::corrupt, "the header of a dump: size"};
  return make(frame->secret, goal);
}

Result<bool> CuckooValue::load(ByteView chunk, std::uint64_t max_bytes) {
  constexpr Error kBad{Errc::corrupt, "a piece of a cuckoo filter"};
  if (chunk.size() < kPieceHeader + kTrailerSize) return kBad;
  const ByteView body = chunk.first(chunk.size() - kTrailerSize);
  Reader r(body);
  if (r.u32() != kPieceMagic || load_u64(chunk.data() + body.size()) != checksum(body)) return kBad;
  const std::uint64_t goal = r.u64();
  const std::uint64_t tag = r.u64();
  const std::uint64_t life_tag = r.u64();
  const std::uint32_t link = r.u32();
  ObservedPart part;
  part.first = r.u64();
  part.last = r.u64();
  const std::uint64_t entries = r.u64();
  if (goal != name_of(series_.goal())) {
    return Error{Errc::mismatch, "a piece of a filter of another goal"};
  }
  if (link == 0 || link > SeriesGoal::kMostLinks) return kBad;
  const Result<CuckooShape> shape = series_.shape_of(static_cast<std::uint8_t>(link));
  if (!shape || part.first >= part.last || part.last > kMostDots) return kBad;
  const std::uint64_t span = part.last - part.first;
  // Length before allocation: until here `entries` is only a claim.
  if (entries > span || entries > r.rest() ||
      r.rest() !=
          elias_fano::byte_size(entries, span - 1) + entry_codec::places_size(*shape, entries)) {
    return kBad;
  }
  std::vector<std::uint64_t> numbers;
  if (!elias_fano::decode(r, entries, span - 1, numbers)) return kBad;
  part.entries.reserve(entries);
  for (const std::uint64_t number : numbers) {
    part.entries.push_back({0, 0, part.first + 1 + number});
  }
  part.lives = {{1, part.last, life_tag, 0}};
  if (!entry_codec::decode_places(r, *shape, part.entries) || !part.sound(*shape)) return kBad;

  ChainTags chains = chains_;
  ChainTags lives = lives_;
  const Result<SiteId> alias = chains.admit(tag);
  if (!alias) return alias.error();
  const Result<SiteId> life = lives.admit(life_tag);
  if (!life) return life.error();
  const LinkId id{*alias, static_cast<std::uint8_t>(link)};
  const auto mine = series_.links().find(id);
  const std::uint64_t seen = mine == series_.links().end() ? 0 : mine->second.context().at(*life);
  if (open() && lives.own() == *life && part.last > seen) {
    return Error{Errc::forked, "another filter has added in the life of this one"};
  }
  if (max_bytes != 0 && series_.bytes() - series_.reserved_bytes() +
                                entries * (shape->fingerprint_bits + Dot::kBits) / 8 >
                            max_bytes) {
    return Error{Errc::full, "a piece that takes more memory than allowed"};
  }
  const Result<bool> merged = series_.merge_part(id, *life, part);
  if (!merged) return merged.error();
  if (*merged) {
    chains_ = std::move(chains);
    lives_ = std::move(lives);
  }
  return *merged;
}

}  // namespace semel::module
