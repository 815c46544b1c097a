#include "module/types/bloom_value.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <map>
#include <vector>

#include "semel/core/assert.h"
#include "semel/crdt/internal/series_parts.h"
#include "semel/hash/internal/sealed.h"

namespace semel::module {
namespace {

// docs/formats/module_bloom_v1.md
//
//    VALUE   secret (32), chains (4 + 8 each), series with its keys
//    HEADER  of a dump: secret (32), error (8), capacity (8), growth (4)
//    PIECE   of a dump: name of the goal (8), tag (8), link (4), keys (8), first word (8), words
constexpr Format kFormat{"MBF", 1, "Bloom filter of a key"};
constexpr Format kHeader{"MBH", 1, "header of a dump"};
constexpr Format kPiece{"MBP", 1, "piece of a Bloom filter"};
constexpr std::uint64_t kPieceWords = 1 << 17;  // a mebibyte: some hundred microseconds

// A position in a dump is 1 + chain (16 bits), link (8), piece (28). It stays below 2^53, the
// integers that the numbers of every client hold.
constexpr unsigned kPieceBits = 28;

SeriesGoal series_goal(const BloomValue::Goal& goal, HashId hash) {
  return {.fpr = goal.error,
          .first_keys = goal.capacity,
          .sites = SeriesGoal::kMostSites,
          .chains = SeriesChains::apart,
          .growth = goal.expansion,
          .hash = hash};
}

bool is_ours(const SeriesGoal& goal, HashId hash) {
  return goal == series_goal({goal.fpr, goal.first_keys, goal.growth}, hash);
}

}  // namespace

const host::TypeSpec BloomValue::kType = {"SMLbloom-", 1, &BloomValue::decode, "bf"};

Result<std::unique_ptr<BloomValue>> BloomValue::make(const Secret& secret, const Goal& goal) {
  const Hasher hasher = hasher_of(secret);
  GrowBloomSeries series = SEMEL_TRY(GrowBloomSeries::make(series_goal(goal, hasher.id())));
  return std::make_unique<BloomValue>(secret, hasher, std::move(series));
}

bool BloomValue::may_extend(std::uint64_t max_bytes) const {
  if (max_bytes == 0) return true;
  const Result<BloomShape> next = series_.next_shape(*chains_.own());
  return !next || used_bytes() + next->bytes() <= max_bytes;  // add() reports any other error
}

Result<bool> BloomValue::add(Digest key, std::uint64_t max_bytes) {
  SEMEL_ASSERT(chains_.own());
  if (max_bytes != 0 && series_.room(*chains_.own()) == 0 && !may_extend(max_bytes)) {
    if (series_.contains(key)) return false;
    return Error{Errc::full, "a further link would take more memory than allowed"};
  }
  const Result<bool> added = series_.add(key, *chains_.own());
  if (!added) return Error{Errc::limit, "no further link is possible"};
  return *added;
}

Result<void> BloomValue::add(std::span<const Digest> keys, std::span<bool> added,
                             std::uint64_t max_bytes, std::size_t& done) {
  SEMEL_ASSERT(chains_.own());
  for (done = 0; done < keys.size();) {
    // Add the keys for which there is room without a new link, then the key that may open it.
    const std::size_t some =
        std::min<std::uint64_t>(keys.size() - done, series_.room(*chains_.own()));
    done += series_.add(keys.subspan(done, some), *chains_.own(), added.subspan(done, some));
    if (some > 0) continue;
    added[done] = SEMEL_TRY(add(keys[done], max_bytes));
    ++done;
  }
  return {};
}

std::uint64_t BloomValue::items() const { return series_.keys(); }

std::uint64_t BloomValue::capacity() const {
  return std::max(series_.goal().first_keys, series_.capacity());
}

std::uint64_t BloomValue::reach(std::uint64_t items, std::uint64_t max_bytes) const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = used_bytes();
  std::uint64_t room = this->items();
  std::uint64_t last = 0;  // link of the own chain
  if (chains_.own()) {
    room += series_.room(*chains_.own());
    const auto after = series_.links().upper_bound({*chains_.own(), SeriesGoal::kMostLinks});
    if (after != series_.links().begin() && std::prev(after)->first.chain == *chains_.own()) {
      last = std::prev(after)->first.link;
    }
  }
  for (std::uint64_t link = last + 1; link <= SeriesGoal::kMostLinks && room < items; ++link) {
    const auto number = static_cast<std::uint8_t>(link);
    const Result<BloomShape> shape = series_.shape_of(number);
    const Result<std::uint64_t> more = series_.goal().capacity(number);
    if (!shape || !more) break;
    bytes += shape->bytes();
    if (max_bytes != 0 && bytes > max_bytes) break;
    room = *more < kMost - std::min(room, kMost) ? room + *more : kMost;
  }
  return room;
}

std::vector<std::string> BloomValue::describe_links() const {
  std::vector<std::string> lines;
  const auto describe = [&](std::uint8_t link, std::uint64_t keys) {
    const BloomShape shape = *series_.shape_of(link);
    const std::uint64_t capacity = *series_.goal().capacity(link);
    std::array<char, 200> line{};
    std::snprintf(line.data(), line.size(),
                  "bytes:%" PRIu64 " bits:%" PRIu64 " hashes:%" PRIu32
                  " hashwidth:64 capacity:%" PRIu64 " size:%" PRIu64 " ratio:%g",
                  shape.bytes(), shape.bits, shape.probes, capacity, keys,
                  shape.expected_fpr(capacity));
    lines.emplace_back(line.data());
  };
  if (series_.links().empty()) describe(1, 0);
  for (const auto& [id, keys] : series_.link_keys()) describe(id.link, keys);
  return lines;
}

double BloomValue::error_now() const {
  double silent = 0;  // the logarithm of the probability that no link claims a new key
  for (const auto& [id, filter] : series_.links()) {
    silent += std::log1p(-std::min(0.999999, filter.sampled_fpr()));
  }
  return -std::expm1(silent);
}

std::unique_ptr<BloomValue> BloomValue::twin() const {
  auto twin = std::make_unique<BloomValue>(secret_, hasher_, series_);
  twin->chains_ = chains_;
  return twin;
}

std::unique_ptr<host::Value> BloomValue::clone() const { return twin(); }

std::unique_ptr<host::Value> BloomValue::copy() const {
  auto copied = twin();
  copied->chains_.disown();
  return copied;
}

void BloomValue::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    write(w, secret_);
    chains_.encode(w);
    series_.encode_counted(w.sink());
  });
}

Result<std::unique_ptr<host::Value>> BloomValue::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Secret secret = read_secret(r);
  ChainTags chains = SEMEL_TRY(ChainTags::decode(r));
  GrowBloomSeries series =
      SEMEL_TRY(decoded_part(GrowBloomSeries::decode_counted(r.view(r.rest()))));
  const Hasher hasher = hasher_of(secret);
  if (!is_ours(series.goal(), hasher.id())) return corrupt(kFormat, "goal");
  if (!series.links().empty() && std::prev(series.links().end())->first.chain >= chains.size()) {
    return corrupt(kFormat, "a chain without a tag");
  }
  auto value = std::make_unique<BloomValue>(secret, hasher, std::move(series));
  value->chains_ = std::move(chains);
  return std::unique_ptr<host::Value>(std::move(value));
}

BloomValue::Chunk BloomValue::dump(std::uint64_t position) const {
  Chunk chunk{0, {}};
  if (position == 0) {
    seal(chunk.bytes, kHeader, [&](Writer& w) {
      write(w, secret_);
      w.f64(series_.goal().fpr);
      w.u64(series_.goal().first_keys);
      w.u32(series_.goal().growth);
    });
    chunk.next = 1;
    return chunk;
  }
  if (const std::optional<Piece> found = piece(position)) return {found->next, encoded(*found)};
  return chunk;
}

std::optional<BloomValue::Piece> BloomValue::piece(std::uint64_t position) const {
  const std::uint64_t place = position - 1;
  if (place >> (kPieceBits + 24) != 0) return std::nullopt;
  std::uint64_t piece = place & ((std::uint64_t{1} << kPieceBits) - 1);
  const LinkId wanted{static_cast<SiteId>(place >> (kPieceBits + 8)),
                      static_cast<std::uint8_t>(place >> kPieceBits)};
  auto link = series_.links().lower_bound(wanted);
  if (link == series_.links().end()) return std::nullopt;
  if (link->first != wanted || piece * kPieceWords >= link->second.words().size()) {
    if (link->first == wanted) ++link;
    if (link == series_.links().end()) return std::nullopt;
    piece = 0;
  }
  const auto& [id, filter] = *link;
  const std::uint64_t first = piece * kPieceWords;
  const auto words =
      filter.words().subspan(first, std::min(kPieceWords, filter.words().size() - first));
  return Piece{2 + ((std::uint64_t{id.chain} << 8 | id.link) << kPieceBits | piece),
               chains_.tag(id.chain),
               id.link,
               {first, words, series_.link_keys().at(id)}};
}

Bytes BloomValue::encoded(const Piece& piece) const {
  Bytes bytes;
  bytes.reserve(8 * piece.part.words.size() + 64);
  seal(bytes, kPiece, [&](Writer& w) {
    w.u64(goal_name());
    w.u64(piece.chain);
    w.u32(piece.link);
    w.u64(piece.part.keys);
    w.u64(piece.part.first);
    w.words(piece.part.words);
  });
  return bytes;
}

bool BloomValue::is_chunk(ByteView bytes) {
  return begins_like(bytes, kHeader) || begins_like(bytes, kPiece);
}

Result<std::unique_ptr<BloomValue>> BloomValue::load_header(ByteView chunk) {
  Reader r = SEMEL_TRY(open_sealed(chunk, kHeader));
  const Secret secret = read_secret(r);
  Goal goal{};
  goal.error = r.f64();
  goal.capacity = r.u64();
  goal.expansion = r.u32();
  if (!r.at_end()) return corrupt(kHeader, "size");
  return make(secret, goal);
}

Result<bool> BloomValue::load(ByteView chunk, std::uint64_t max_bytes) {
  Reader r = SEMEL_TRY(open_sealed(chunk, kPiece));
  const std::uint64_t goal = r.u64();
  const std::uint64_t tag = r.u64();
  const std::uint32_t link = r.u32();
  const std::uint64_t keys = r.u64();
  const std::uint64_t first = r.u64();
  if (!r.ok() || r.rest() % 8 != 0) return corrupt(kPiece, "size");
  if (goal != goal_name()) return Error{Errc::mismatch, "a piece of a filter with another goal"};
  const bool named = link > 0 && link <= SeriesGoal::kMostLinks;
  const auto number = static_cast<std::uint8_t>(named ? link : 1);
  const Result<BloomShape> shape = series_.shape_of(number);
  if (!named || !shape) return Error{Errc::invalid, "no such link"};
  if (!GrowBloom::can_have(*shape, keys)) return corrupt(kPiece, "keys");
  const std::uint64_t size = r.rest() / 8;
  if (first > shape->bits / 64 || size > shape->bits / 64 - first) {
    return Error{Errc::limit, "a piece that is larger than its link"};
  }
  const ByteView bytes = r.view(r.rest());
  std::vector<std::uint64_t> words(size);
  for (std::size_t i = 0; i < size; ++i) words[i] = load_u64(bytes.data() + 8 * i);
  return take({0, tag, number, {first, words, keys}}, max_bytes);
}

Result<bool> BloomValue::take(const Piece& piece, std::uint64_t max_bytes) {
  ChainTags chains = chains_;
  const SiteId alias = SEMEL_TRY(chains.admit(piece.chain));
  const LinkId id{alias, piece.link};
  if (max_bytes != 0 && !series_.links().contains(id) &&
      used_bytes() + series_.shape_of(piece.link)->bytes() > max_bytes) {
    return Error{Errc::full, "a link that is larger than allowed"};
  }
  if (!SEMEL_TRY(crdt_internal::SeriesParts::merge(series_, id, piece.part))) return false;
  // Another key has added to this chain, so this key must no longer add to it.
  if (chains.own() == id.chain) chains.disown();
  chains_ = std::move(chains);
  return true;
}

}  // namespace semel::module
