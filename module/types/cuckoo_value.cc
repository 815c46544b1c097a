#include "module/types/cuckoo_value.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "semel/bits/internal/elias_fano.h"
#include "semel/core/assert.h"
#include "semel/crdt/internal/entry_codec.h"
#include "semel/crdt/internal/observed_part.h"
#include "semel/crdt/internal/series_parts.h"
#include "semel/hash/internal/sealed.h"

namespace semel::module {

using crdt_internal::ObservedPart;
using crdt_internal::ObservedParts;

namespace {

// docs/formats/module_cuckoo_v1.md
//
//    VALUE   secret (32), goal (24), chains and lives (4 + 8 each), series
//    HEADER  of a dump: secret (32), goal (24)
//    PIECE   of a dump: name of the goal (8), tags of chain and life (16), link (4), first (8),
//            last (8), entries (8), their numbers from the first on, their places
//    GOAL    error (8), capacity (8), bucket size (2), iterations (2), expansion (4)
constexpr Format kFormat{"MCF", 1, "cuckoo filter of a key"};
constexpr Format kHeader{"MCH", 1, "header of a dump"};
constexpr Format kPiece{"MCP", 1, "piece of a cuckoo filter"};

// A position in a dump is 1 + chain (12 bits), link (8), life (16), dots before it (16, in steps).
// It stays below 2^53, the integers that the numbers of every client hold. So a life has at most
// 2^32 - 1 dots.
constexpr unsigned kDotBits = 16;
constexpr unsigned kLifeBits = 16;
constexpr std::uint64_t kMostDots = (ObservedPart::kStep << kDotBits) - 1;
static_assert(CuckooValue::kDumpEntries >= ObservedPart::kStep);

// A growth of less than 2 would make many links, and each link costs a lookup.
SeriesGoal series_goal(const CuckooValue::Goal& goal, HashId hash) {
  return {.fpr = goal.error,
          .first_keys = goal.capacity,
          .sites = SeriesGoal::kMostSites,
          .chains = SeriesChains::apart,
          .growth = goal.expansion == 1 ? 2 : goal.expansion,
          .hash = hash};
}

void write(Writer& w, const CuckooValue::Goal& goal) {
  w.f64(goal.error);
  w.u64(goal.capacity);
  w.u16(static_cast<std::uint16_t>(goal.bucket_size));
  w.u16(static_cast<std::uint16_t>(goal.max_iterations));
  w.u32(goal.expansion);
}

// The caller calls Goal::check.
CuckooValue::Goal read_goal(Reader& in) {
  CuckooValue::Goal goal{};
  goal.error = in.f64();
  goal.capacity = in.u64();
  goal.bucket_size = in.u16();
  goal.max_iterations = in.u16();
  goal.expansion = in.u32();
  return goal;
}

// Returns true if each site of a link is the alias of a life, and has one life: that of the tag.
bool are_lives_of(const ChainTags& lives, const ObservedCuckoo& link) {
  const auto is_life = [&](const VersionVector::Site& site) {
    if (site.site >= lives.size() || site.counter > kMostDots) return false;
    const auto runs = ObservedParts::lives(link).runs(site.site);
    return runs.size() == 1 && runs.front().life == lives.tag(site.site);
  };
  const auto sites = link.context().sites();
  return std::all_of(sites.begin(), sites.end(), is_life);
}

}  // namespace

const host::TypeSpec CuckooValue::kType = {"SMLcuckoo", 1, &CuckooValue::decode, "cf"};

Result<void> CuckooValue::Goal::check() const {
  const bool sound = bucket_size >= 1 && bucket_size <= 255 && max_iterations >= 1 &&
                     max_iterations <= 65'535 && expansion <= 32'768;
  if (!sound) return Error{Errc::invalid, "bucket size, iterations or expansion out of range"};
  return {};
}

Result<std::unique_ptr<CuckooValue>> CuckooValue::make(const Secret& secret, const Goal& goal) {
  SEMEL_TRY(goal.check());
  const Hasher hasher = hasher_of(secret);
  ObservedCuckooSeries series =
      SEMEL_TRY(ObservedCuckooSeries::make(series_goal(goal, hasher.id())));
  return std::make_unique<CuckooValue>(secret, hasher, goal, std::move(series));
}

Result<void> CuckooValue::add(Digest key, std::uint64_t max_bytes) {
  SEMEL_ASSERT(chains_.own() && lives_.own());
  const SiteId own = *chains_.own();
  const SiteLife life{*lives_.own(), lives_.tag(*lives_.own())};
  // A link may refuse a key long before it is full: it has room for two buckets of its copies.
  if (!series_.add_within(own, key, life)) {
    const Result<CuckooShape> next = series_.next_shape(own);
    if (next && max_bytes != 0 && bytes_when_full() + next->bytes() > max_bytes) {
      return Error{Errc::full, "a further link would take more memory than allowed"};
    }
    if (!series_.add_to(own, key, life)) return Error{Errc::limit, "no further link is possible"};
  }
  adds_left_ -= adds_left_ != 0 ? 1 : 0;
  return {};
}

// A link takes the memory of a full link as soon as an eighth of it is in use.
std::uint64_t CuckooValue::bytes_when_full() const {
  std::uint64_t sum = 0;
  for (const auto& [id, filter] : series_.links()) {
    const std::uint64_t full = id.chain == *chains_.own() ? filter.shape().bytes() : 0;
    sum += std::max(filter.bytes(), full);
  }
  return sum;
}

Result<void> CuckooValue::begin(std::uint64_t chain, std::uint64_t life, Begun where) {
  ChainTags chains = chains_;
  ChainTags lives = lives_;
  if (!chains.own() || chains.tag(*chains.own()) != chain) {
    SEMEL_TRY(chains.begin(chain));
  }
  SEMEL_TRY(lives.begin(life));
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

std::uint64_t CuckooValue::first_bytes() const { return series_.shape_of(1)->bytes(); }

std::uint64_t CuckooValue::buckets() const {
  if (series_.links().empty()) return series_.shape_of(1)->buckets;
  std::uint64_t sum = 0;
  for (const auto& [id, filter] : series_.links()) sum += filter.shape().buckets;
  return sum;
}

std::unique_ptr<CuckooValue> CuckooValue::twin() const {
  auto twin = std::make_unique<CuckooValue>(secret_, hasher_, goal_, series_);
  twin->chains_ = chains_;
  twin->lives_ = lives_;
  twin->adds_left_ = adds_left_;
  return twin;
}

std::unique_ptr<host::Value> CuckooValue::clone() const { return twin(); }

std::unique_ptr<host::Value> CuckooValue::copy() const {
  auto copied = twin();
  copied->chains_.disown();
  copied->lives_.disown();
  copied->adds_left_ = 0;
  return copied;
}

void CuckooValue::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    write(w, secret_);
    write(w, goal_);
    chains_.encode(w);
    lives_.encode(w);
    series_.encode(w.sink());
  });
}

Result<std::unique_ptr<host::Value>> CuckooValue::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Secret secret = read_secret(r);
  const Goal goal = read_goal(r);
  if (!r.ok() || !goal.check()) return corrupt(kFormat, "goal");
  ChainTags chains = SEMEL_TRY(ChainTags::decode(r));
  ChainTags lives = SEMEL_TRY(ChainTags::decode(r, ChainTags::kMostLives));
  ObservedCuckooSeries series =
      SEMEL_TRY(decoded_part(ObservedCuckooSeries::decode(r.view(r.rest()))));
  const Hasher hasher = hasher_of(secret);
  if (series.goal() != series_goal(goal, hasher.id())) return corrupt(kFormat, "goal");
  if (!series.links().empty() && std::prev(series.links().end())->first.chain >= chains.size()) {
    return corrupt(kFormat, "a chain without a tag");
  }
  for (const auto& [id, filter] : series.links()) {
    if (!are_lives_of(lives, filter)) return corrupt(kFormat, "lives");
  }
  auto value = std::make_unique<CuckooValue>(secret, hasher, goal, std::move(series));
  value->chains_ = std::move(chains);
  value->lives_ = std::move(lives);
  return std::unique_ptr<host::Value>(std::move(value));
}

CuckooValue::Chunk CuckooValue::dump(std::uint64_t position) const {
  Chunk chunk{0, {}};
  if (position == 0) {
    seal(chunk.bytes, kHeader, [&](Writer& w) {
      write(w, secret_);
      write(w, goal_);
    });
    chunk.next = 1;
    return chunk;
  }
  if (const std::optional<Piece> found = piece(position, kDumpEntries))
    return {found->next, encoded(*found)};
  return chunk;
}

std::optional<CuckooValue::Piece> CuckooValue::piece(std::uint64_t position,
                                                     std::uint64_t most) const {
  const std::uint64_t place = position - 1;
  if (place >> (kDotBits + kLifeBits + 20) != 0) return std::nullopt;
  std::uint64_t from = (place & ((std::uint64_t{1} << kDotBits) - 1)) * ObservedPart::kStep;
  auto life = static_cast<SiteId>(place >> kDotBits);
  const LinkId wanted{static_cast<SiteId>(place >> (kDotBits + kLifeBits + 8)),
                      static_cast<std::uint8_t>(place >> (kDotBits + kLifeBits))};
  // Look for the first dots at this place or after it.
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
  if (link == series_.links().end()) return std::nullopt;
  const auto& [id, filter] = *link;
  ObservedPart part = ObservedParts::next(filter, life, from, most);
  part.expected = filter.cardinality();
  const std::uint64_t life_place =
      (std::uint64_t{id.chain} << 8 | id.link) << kLifeBits | std::uint64_t{life};
  const bool whole = part.last == filter.context().at(life);
  const std::uint64_t next = 1 + (whole ? (life_place + 1) << kDotBits
                                        : life_place << kDotBits | part.last / ObservedPart::kStep);
  return Piece{next, chains_.tag(id.chain), lives_.tag(life), id.link,
               Hidden<ObservedPart>(std::in_place, std::move(part))};
}

CuckooValue::Piece CuckooValue::Piece::cut() {
  return {next, chain, life, link, Hidden<ObservedPart>(std::in_place, part->cut(kStepEntries))};
}

bool CuckooValue::Piece::empty() const { return part->first == part->last; }

Bytes CuckooValue::encoded(const Piece& piece) const {
  const ObservedPart& part = *piece.part;
  std::vector<std::uint64_t> numbers;
  numbers.reserve(part.entries.size());
  for (const auto& entry : part.entries) numbers.push_back(entry.payload - part.first - 1);
  Bytes bytes;
  seal(bytes, kPiece, [&](Writer& w) {
    w.u64(goal_name());
    w.u64(piece.chain);
    w.u64(piece.life);
    w.u32(piece.link);
    w.u64(part.first);
    w.u64(part.last);
    w.u64(part.entries.size());
    elias_fano::encode(w.sink(), numbers, part.last - part.first - 1);
    crdt_internal::encode_places(w.sink(), *series_.shape_of(piece.link), part.entries);
  });
  return bytes;
}

bool CuckooValue::is_chunk(ByteView bytes) {
  return begins_like(bytes, kHeader) || begins_like(bytes, kPiece);
}

Result<std::unique_ptr<CuckooValue>> CuckooValue::load_header(ByteView chunk) {
  Reader r = SEMEL_TRY(open_sealed(chunk, kHeader));
  const Secret secret = read_secret(r);
  const Goal goal = read_goal(r);
  if (!r.at_end()) return corrupt(kHeader, "size");
  return make(secret, goal);
}

Result<bool> CuckooValue::load(ByteView chunk, std::uint64_t max_bytes) {
  Reader r = SEMEL_TRY(open_sealed(chunk, kPiece));
  const std::uint64_t goal = r.u64();
  const std::uint64_t tag = r.u64();
  const std::uint64_t life_tag = r.u64();
  const std::uint32_t link = r.u32();
  ObservedPart part;
  part.first = r.u64();
  part.last = r.u64();
  const std::uint64_t entries = r.u64();
  if (!r.ok()) return corrupt(kPiece, "size");
  if (goal != goal_name()) return Error{Errc::mismatch, "a piece of a filter with another goal"};
  if (link == 0 || link > SeriesGoal::kMostLinks) return corrupt(kPiece, "link");
  const Result<CuckooShape> shape = series_.shape_of(static_cast<std::uint8_t>(link));
  if (!shape || part.first >= part.last || part.last > kMostDots) {
    return corrupt(kPiece, "dots");
  }
  const std::uint64_t span = part.last - part.first;
  // The lengths are compared before anything is allocated for `entries`.
  if (entries > span || entries > r.rest() ||
      r.rest() !=
          elias_fano::byte_size(entries, span - 1) + crdt_internal::places_size(*shape, entries)) {
    return corrupt(kPiece, "size");
  }
  const auto numbers = elias_fano::decode(r, entries, span - 1);
  if (!numbers) return corrupt(kPiece, "numbers");
  part.entries.reserve(entries);
  for (const std::uint64_t number : *numbers) {
    part.entries.push_back({0, 0, part.first + 1 + number});
  }
  part.lives = {{1, part.last, life_tag, 0}};
  if (!crdt_internal::decode_places(r, *shape, part.entries) || !part.sound(*shape)) {
    return corrupt(kPiece, "entries");
  }
  return take({0, tag, life_tag, static_cast<std::uint8_t>(link),
               Hidden<ObservedPart>(std::in_place, std::move(part))},
              max_bytes);
}

Result<bool> CuckooValue::take(const Piece& piece, std::uint64_t max_bytes) {
  ChainTags chains = chains_;
  ChainTags lives = lives_;
  const SiteId alias = SEMEL_TRY(chains.admit(piece.chain));
  const SiteId life = SEMEL_TRY(lives.admit(piece.life));
  const LinkId id{alias, piece.link};
  const auto mine = series_.links().find(id);
  const bool fresh = mine == series_.links().end();
  const std::uint64_t seen = fresh ? 0 : mine->second.context().at(life);
  if (open() && lives.own() == life && piece.part->last > seen) {
    return Error{Errc::forked, "another filter has added in the life of this one"};
  }
  const CuckooShape shape = *series_.shape_of(piece.link);
  std::uint64_t more = piece.part->entries.size() * (shape.fingerprint_bits + Dot::kBits) / 8;
  if (fresh && piece.part->expected > shape.slots() / 8) more = shape.bytes();
  if (max_bytes != 0 && used_bytes() + more > max_bytes) {
    return Error{Errc::full, "a piece that takes more memory than allowed"};
  }
  const bool merged = SEMEL_TRY(crdt_internal::SeriesParts::merge(series_, id, life, *piece.part));
  if (merged) {
    chains_ = std::move(chains);
    lives_ = std::move(lives);
  }
  return merged;
}

}  // namespace semel::module
